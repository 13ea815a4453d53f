// WithStop: a future that completes with kCancelled as soon as a stop is requested.
//
//   std::stop_source stop;
//   Future<Page> page = WithStop(Fetch(url), stop.get_token());
//   absl::StatusOr<Page> fetched = co_await page;          // Cancelled after stop.request_stop()
//
// A result that arrives before the stop is kept. The stop cancels the inner future, which tells its
// promise side; so does dropping the whole before it is ready. Maps of the inner future run when
// the whole is taken. A token without a stop source never stops.
//
// Thread safety: as any future. Any thread may request the stop; that thread wakes the waiter.
#ifndef FRAKTOR_UTILS_FUTURE_WITH_STOP_H_
#define FRAKTOR_UTILS_FUTURE_WITH_STOP_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/future_word.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

namespace with_stop_internal {

// The inner future or the stop, whichever comes first, completes the whole.
template <class T>
class StopSource final : public FutureSource<T> {
 public:
  explicit StopSource(Future<T> inner) : inner_(std::move(inner)), node_(inner_.node()) {}

  // Called once, after the whole has its owner.
  void Arm(std::stop_token token) {
    references_.fetch_add(1, std::memory_order_relaxed);
    is_polled_ = !inner_.Poll(Waker{.function = &OnInner, .target = this});
    if (!is_polled_) {
      references_.fetch_sub(1, std::memory_order_relaxed);  // Not the last: the whole has one.
      Win(Winner::kInner);
      return;
    }
    // Runs the callback here if the stop was already requested.
    on_stop_.emplace(std::move(token), OnStop{this});
  }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override { return word_.Poll(waker); }
  bool StopWaking() override { return word_.StopWaking(); }
  bool Cancel() override {
    if (!word_.Cancel()) return false;
    LetGo();
    return true;
  }
  const char* AwaitsThisThread() const override { return word_.IsReady() ? nullptr : node_.AwaitsThisThread(); }
  FutureResult<T> Take() override {
    if (word_.WasCancelled()) return future_internal::FutureCancelledError();
    // Acquire: pairs with the exchange of the winner, which the word has already ordered.
    if (winner_.load(std::memory_order_acquire) == Winner::kStop) return absl::CancelledError("a stop was requested");
    return inner_.Take();
  }
  void Drop() noexcept override {
    word_.Cancel();
    LetGo();
    Release();
  }

 private:
  enum class Winner : uint8_t { kNone, kInner, kStop };

  struct OnStop {
    // The waiter may drop the future at once, on this thread.
    void operator()() const {
      StopSource* const waking = source;
      waking->references_.fetch_add(1, std::memory_order_relaxed);
      waking->Stop();
      waking->Release();
    }
    StopSource* source;
  };

  ~StopSource() override = default;

  static void OnInner(void* target, uint64_t, uint64_t) noexcept {
    auto* const source = static_cast<StopSource*>(target);
    source->Win(Winner::kInner);
    source->Release();
  }

  bool IsFirst(Winner winner) {
    Winner none = Winner::kNone;
    return winner_.compare_exchange_strong(none, winner, std::memory_order_acq_rel);
  }
  void Win(Winner winner) {
    if (IsFirst(winner)) word_.Complete();
  }

  // The inner future belongs to this thread meanwhile: the whole is not ready yet, and who drops it
  // waits for the callback of the stop first.
  void Stop() {
    if (!IsFirst(Winner::kStop)) return;
    inner_.Cancel();
    word_.Complete();
  }

  // Called by the future's side.
  void LetGo() {
    // Waits for a callback that runs on another thread; the callback only wakes.
    on_stop_.reset();
    if (std::exchange(is_polled_, false) && inner_.valid() && inner_.StopWaking()) {
      references_.fetch_sub(1, std::memory_order_acq_rel);  // Not the last: the whole has one.
    }
    inner_ = Future<T>();
  }

  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Future<T> inner_;
  FutureNode& node_;  // The node of the inner future; it lives until the whole is ready.
  std::optional<std::stop_callback<OnStop>> on_stop_;
  FutureWord<> word_;
  // The first one to complete. Pairs with itself: only one of the two completes the word.
  std::atomic<Winner> winner_{Winner::kNone};
  // One for the whole, one for the inner future that has our waker, and one for a running callback.
  // acq_rel: pairs with itself, for the deletion.
  std::atomic<int> references_{1};
  bool is_polled_ = false;
};

}  // namespace with_stop_internal

template <class T>
Future<T> WithStop(Future<T> future, std::stop_token token) {
  auto* const source = new with_stop_internal::StopSource<T>(std::move(future));
  Future<T> whole = Future<T>::FromSource(*source);
  source->Arm(std::move(token));
  return whole;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_WITH_STOP_H_
