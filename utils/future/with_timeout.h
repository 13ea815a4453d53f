// WithTimeout: a future that fails if another is not ready in time. SleepFor: a future that is
// ready later.
//
//   Future<Page> page = WithTimeout(toolbox, Fetch(url), absl::Seconds(2));   // or DeadlineExceeded, kNotInTime
//   Future<void> pause = SleepFor(toolbox, absl::Milliseconds(100));
//   absl::Status over = co_await pause;
//   Future<TimedResult<Page>> timed = TimedResultOf(toolbox, Fetch(url), absl::Seconds(2));
//
// The inner future may fail with kNotInTime itself, if it waits for another timeout or for another
// node. Code that must know whose timeout has passed uses TimedResultOf, which says so outside of
// the error.
//
// The inner future is dropped when the outer one is taken or dropped. Maps of the inner future run
// when the outer one is taken. If the toolbox has no timer left, its error is the result.
//
// Thread safety: as any future. The toolbox must outlive the future.
#ifndef FRAKTOR_UTILS_FUTURE_WITH_TIMEOUT_H_
#define FRAKTOR_UTILS_FUTURE_WITH_TIMEOUT_H_

#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/future_word.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

enum class FutureTimeoutKind : uint8_t {
  kNotInTime = 0,  // The timeout of this WithTimeout, or of one inside the inner future, has passed.
};
template <>
struct ErrorKindTraits<FutureTimeoutKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/future_timeout";
  static constexpr FutureTimeoutKind kLast = FutureTimeoutKind::kNotInTime;
};

// The result of a future that had limited time.
template <class T>
struct TimedResult {
  FutureResult<T> result;
  // The timeout has passed, and `result` is an error that says so. False for any error of the
  // future itself.
  bool is_late = false;
};

Future<void> SleepFor(RuntimeToolbox& toolbox, absl::Duration duration);

namespace with_timeout_internal {

absl::Status NotInTime(absl::Duration timeout);

// The inner future or the timer completes the outer future, whichever is first. The outer future
// gives an R: a T, or a TimedResult<T>.
template <class T, class R>
class TimeoutSource final : public FutureSource<R> {
 public:
  TimeoutSource(RuntimeToolbox& toolbox, Future<T> inner, absl::Duration timeout)
      : toolbox_(toolbox), inner_(std::move(inner)), timeout_(timeout) {}

  // Called once, when the outer future has its owner.
  void Arm() {
    references_.fetch_add(1, std::memory_order_relaxed);
    is_polled_ = !inner_.Poll(Waker{.function = &OnInner, .target = this});
    if (!is_polled_) {
      references_.fetch_sub(1, std::memory_order_relaxed);  // Not the last: the outer future has one.
      Win(Winner::kInner);
      return;
    }
    if (timeout_ == absl::InfiniteDuration()) return;
    absl::StatusOr<TimerId> timer =
        toolbox_.ScheduleAfter(timeout_, [reference = Reference(*this)] { reference.source->Win(Winner::kTimer); });
    if (timer.ok()) {
      timer_ = *timer;
      has_timer_ = true;
    } else {
      refused_ = timer.status();
      Win(Winner::kTimer);
    }
  }

  bool IsReady() const override { return word_.IsReady(); }
  bool Poll(const Waker& waker) override { return word_.Poll(waker); }
  bool StopWaking() override { return word_.StopWaking(); }
  bool Cancel() override {
    if (!word_.Cancel()) return false;
    LetGo();
    return true;
  }
  FutureResult<R> Take() override {
    if (word_.WasCancelled()) return future_internal::FutureCancelledError();
    // Acquire: pairs with the acq_rel of Win. The word has ordered the writes of the winner
    // already.
    const bool is_timer = winner_.load(std::memory_order_acquire) == Winner::kTimer;
    const bool is_late = is_timer && refused_.ok();
    FutureResult<T> result = is_late ? NotInTime(timeout_) : is_timer ? refused_ : inner_.Take();
    if constexpr (std::is_same_v<R, T>) {
      return result;
    } else {
      return R{.result = std::move(result), .is_late = is_late};
    }
  }
  void Drop() noexcept override {
    word_.Cancel();
    LetGo();
    Release();
  }

 private:
  enum class Winner : uint8_t { kNone, kInner, kTimer };

  // A pending timer keeps this alive.
  struct Reference {
    explicit Reference(TimeoutSource& of) : source(&of) { of.references_.fetch_add(1, std::memory_order_relaxed); }
    Reference(Reference&& other) noexcept : source(std::exchange(other.source, nullptr)) {}
    Reference& operator=(Reference&&) = delete;
    ~Reference() {
      if (source != nullptr) source->Release();
    }
    TimeoutSource* source;
  };

  ~TimeoutSource() override = default;

  static void OnInner(void* target, uint64_t, uint64_t) noexcept {
    auto* const source = static_cast<TimeoutSource*>(target);
    source->Win(Winner::kInner);
    source->Release();
  }

  void Win(Winner winner) {
    Winner none = Winner::kNone;
    if (winner_.compare_exchange_strong(none, winner, std::memory_order_acq_rel)) word_.Complete();
  }

  // Called by the side of the future.
  void LetGo() {
    if (std::exchange(is_polled_, false) && inner_.valid() && inner_.StopWaking()) {
      references_.fetch_sub(1, std::memory_order_acq_rel);  // Not the last: the outer future has one.
    }
    inner_ = Future<T>();
    if (std::exchange(has_timer_, false)) toolbox_.CancelTimer(timer_);
  }

  void Release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  RuntimeToolbox& toolbox_;
  Future<T> inner_;
  const absl::Duration timeout_;
  FutureWord<> word_;
  // Set by the first side. Pairs with itself: only one of the two completes the word.
  std::atomic<Winner> winner_{Winner::kNone};
  // The outer future, the inner future that has our waker, and the timer. acq_rel: pairs with
  // itself, for the deletion.
  std::atomic<int> references_{1};
  bool is_polled_ = false;
  bool has_timer_ = false;
  TimerId timer_;
  absl::Status refused_;
};

}  // namespace with_timeout_internal

namespace with_timeout_internal {

template <class R, class T>
Future<R> MakeTimed(RuntimeToolbox& toolbox, Future<T> future, absl::Duration timeout) {
  auto* const source = new TimeoutSource<T, R>(toolbox, std::move(future), timeout);
  Future<R> whole = Future<R>::FromSource(*source);
  source->Arm();
  return whole;
}

}  // namespace with_timeout_internal

// An infinite timeout means none.
template <class T>
Future<T> WithTimeout(RuntimeToolbox& toolbox, Future<T> future, absl::Duration timeout) {
  return with_timeout_internal::MakeTimed<T>(toolbox, std::move(future), timeout);
}

// The same, and says whether the timeout has passed. The future fails only if it is cancelled.
template <class T>
Future<TimedResult<T>> TimedResultOf(RuntimeToolbox& toolbox, Future<T> future, absl::Duration timeout) {
  return with_timeout_internal::MakeTimed<TimedResult<T>>(toolbox, std::move(future), timeout);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_WITH_TIMEOUT_H_
