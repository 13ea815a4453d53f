// PendingAnswers: the requests of a simulated process that are not answered yet.
//
// The moment that counts is the one at which the store sets the answer, not the one of Deliver. So
// a store that answers before it commits is caught even if the crash comes in the same step.
//
// Thread safety: one thread.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_PENDING_ANSWERS_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_PENDING_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

class PendingAnswers {
 public:
  // `is_off` says whether the process has crashed; `on_dropped` hears of requests that were dropped
  // without an answer.
  PendingAnswers(std::function<bool()> is_off, std::function<void(const std::string&)> on_dropped)
      : is_off_(std::move(is_off)), on_dropped_(std::move(on_dropped)) {}
  PendingAnswers(const PendingAnswers&) = delete;
  PendingAnswers& operator=(const PendingAnswers&) = delete;

  template <class T, class Fn>
  void Await(std::string what, Future<T> future, Fn on_answer) {
    auto answer = std::make_unique<Answer<T, Fn>>(std::move(what), std::move(future), std::move(on_answer));
    const uint64_t number = next_++;
    Answer<T, Fn>& waiting = *answer;
    waiting_.emplace(number, std::move(answer));
    if (waiting.future.Poll(Waker{.function = &PendingAnswers::OnAnswered, .target = this, .first = number})) {
      OnAnswered(this, number, 0);
    }
  }

  void Deliver() {
    while (!answered_.empty()) {
      const auto [number, heard] = answered_.front();
      answered_.pop_front();
      const auto found = waiting_.find(number);
      const std::unique_ptr<Base> answer = std::move(found->second);
      waiting_.erase(found);
      if (!answer->Deliver(heard)) on_dropped_(answer->what);
    }
  }

  bool empty() const { return waiting_.empty(); }
  size_t size() const { return waiting_.size(); }
  // The oldest one.
  const std::string& first() const { return waiting_.begin()->second->what; }

 private:
  struct Base {
    explicit Base(std::string its_what) : what(std::move(its_what)) {}
    virtual ~Base() = default;
    // False if there was no answer.
    virtual bool Deliver(bool heard) = 0;
    const std::string what;
  };
  template <class T, class Fn>
  struct Answer final : Base {
    Answer(std::string its_what, Future<T> its_future, Fn its_fn)
        : Base(std::move(its_what)), future(std::move(its_future)), on_answer(std::move(its_fn)) {}
    bool Deliver(bool heard) override {
      FutureResult<T> result = future.Take();
      const bool is_answer = !absl::IsCancelled(StatusOf(result));
      on_answer(std::move(result), heard && is_answer);
      return is_answer;
    }
    static const absl::Status& StatusOf(const absl::Status& status) { return status; }
    template <class U>
    static const absl::Status& StatusOf(const absl::StatusOr<U>& result) {
      return result.status();
    }
    Future<T> future;
    Fn on_answer;
  };

  static void OnAnswered(void* target, uint64_t number, uint64_t /*unused*/) noexcept {
    auto& answers = *static_cast<PendingAnswers*>(target);
    answers.answered_.emplace_back(number, !answers.is_off_());
  }

  const std::function<bool()> is_off_;
  const std::function<void(const std::string&)> on_dropped_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::unique_ptr<Base>> waiting_;
  // In the order of their answers, with whether the process could hear them.
  std::deque<std::pair<uint64_t, bool>> answered_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_PENDING_ANSWERS_H_
