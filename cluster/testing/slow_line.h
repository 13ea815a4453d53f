// SlowLine: the way from a node of a test to a store. Requests and answers take their time there, or get lost: a request
// is not heard of, or is done and its answer is not. See SlowStore and SlowJournal.
//
//   auto line = SlowLine::Make(toolbox, random, trouble);
//   Future<uint64_t> answer = line->Send<uint64_t>([journal](bool) { return journal->HighestSequenceNr("a"); }, ids);
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_SLOW_LINE_H_
#define FRAKTOR_CLUSTER_TESTING_SLOW_LINE_H_

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

struct StoreTrouble {
  // How likely a request, or an answer, is late, by up to so much.
  double slow = 0;
  absl::Duration max_delay = absl::ZeroDuration();
  // How likely a request, or an answer, is lost.
  double lost = 0;

  bool any() const { return slow > 0 || lost > 0; }
};

class SlowLine final : public std::enable_shared_from_this<SlowLine> {
 public:
  // What is done at the other end. It hears whether it was on its way for a while: then it has left its node.
  template <class T>
  using Request = absl::AnyInvocable<Future<T>(bool is_late)>;

  // The toolbox must outlive it. All that share the trouble have it. What is on its way when the line ends is lost.
  static std::shared_ptr<SlowLine> Make(RuntimeToolbox& toolbox, Random random,
                                        std::shared_ptr<const StoreTrouble> trouble) {
    return std::shared_ptr<SlowLine>(new SlowLine(toolbox, std::move(random), std::move(trouble)));
  }

  // Of the requests that have a row in common, each arrives after those that were sent before it. Those without rows
  // arrive in any order.
  template <class T>
  Future<T> Send(Request<T> request, std::span<const std::string> rows = {}) {
    const Instant now = toolbox_.Now();
    // Two that arrive at one time might be taken in any order.
    Instant earliest = now;
    for (const std::string& row : rows) {
      const auto found = rows_.find(row);
      if (found != rows_.end()) earliest = std::max(earliest, found->second + absl::Nanoseconds(1));
    }
    if (!trouble_->any() && earliest == now) return request(/*is_late=*/false);
    auto [promise, future] = MakePromise<T>();
    auto letter = std::make_shared<Letter<T>>(Letter<T>{.promise = std::move(promise), .request = std::move(request)});
    letter->is_lost = random_.Bernoulli(trouble_->lost);
    letter->is_answer_lost = random_.Bernoulli(trouble_->lost);
    const Instant arrival = std::max(now + Delay(), earliest);
    letter->back = Delay();
    for (const std::string& row : rows) rows_.insert_or_assign(row, arrival);
    if (arrival == now) {
      Arrive(letter, /*is_late=*/false);
    } else {
      After(arrival - now, [letter](SlowLine& self) { self.Arrive(letter, /*is_late=*/true); });
    }
    return std::move(future);
  }

  static absl::Status Lost() { return absl::UnavailableError("lost on the way to the store, or from there"); }

 private:
  template <class T>
  struct Letter {
    Promise<T> promise;
    Request<T> request;
    bool is_lost = false;
    bool is_answer_lost = false;
    absl::Duration back = absl::ZeroDuration();
  };

  SlowLine(RuntimeToolbox& toolbox, Random random, std::shared_ptr<const StoreTrouble> trouble)
      : toolbox_(toolbox),
        trouble_(std::move(trouble)),
        random_(std::move(random)),
        executor_(SerialExecutor::Make(toolbox, {.name = "slow line"}).value()) {}

  template <class T>
  void Arrive(const std::shared_ptr<Letter<T>>& letter, bool is_late) {
    if (letter->is_lost) {
      letter->promise.Set(Lost());
      return;
    }
    answers_.remove_if([](const Future<void>& answer) { return answer.IsReady(); });
    answers_.push_back(letter->request(is_late).Then(*executor_, [this, letter](FutureResult<T> result) {
      auto answer =
          std::make_shared<FutureResult<T>>(letter->is_answer_lost ? FutureResult<T>(Lost()) : std::move(result));
      After(letter->back, [letter, answer](SlowLine&) { letter->promise.Set(std::move(*answer)); });
    }));
  }

  // Later, if this is still there.
  void After(absl::Duration delay, absl::AnyInvocable<void(SlowLine& self)> what) {
    toolbox_
        .ScheduleAfter(delay,
                       [weak = weak_from_this(), what = std::move(what)]() mutable {
                         if (const std::shared_ptr<SlowLine> self = weak.lock()) what(*self);
                       })
        .value();
  }

  absl::Duration Delay() {
    if (!random_.Bernoulli(trouble_->slow)) return absl::ZeroDuration();
    return random_.UniformDuration(absl::ZeroDuration(), trouble_->max_delay);
  }

  RuntimeToolbox& toolbox_;
  const std::shared_ptr<const StoreTrouble> trouble_;
  Random random_;
  const std::unique_ptr<SerialExecutor> executor_;
  // When the last request of each arrives. None is forgotten: a test has few.
  std::map<std::string, Instant> rows_;
  std::list<Future<void>> answers_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_SLOW_LINE_H_
