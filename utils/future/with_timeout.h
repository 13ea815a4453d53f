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

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/race_source.h"
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

// Ready after `duration`. A future that is dropped or cancelled before cancels its timer.
Future<void> SleepFor(RuntimeToolbox& toolbox, absl::Duration duration);

namespace with_timeout_internal {

absl::Status NotInTime(absl::Duration timeout);

// The inner future races against a timer. The outer future gives an R: a T, or a TimedResult<T>.
template <class T, class R>
class TimeoutSource final : public future_internal::RaceSource<TimeoutSource<T, R>, T, R> {
 public:
  TimeoutSource(RuntimeToolbox& toolbox, Future<T> inner, absl::Duration timeout)
      : future_internal::RaceSource<TimeoutSource, T, R>(std::move(inner)), toolbox_(toolbox), timeout_(timeout) {}

  // Called once, when the outer future has its owner.
  void Arm() {
    if (!this->Race() || timeout_ == absl::InfiniteDuration()) return;
    absl::StatusOr<TimerId> timer =
        toolbox_.ScheduleAfter(timeout_, [reference = Reference(*this)] { reference.source->Win(); });
    if (timer.ok()) {
      timer_ = *timer;
      has_timer_ = true;
    } else {
      refused_ = timer.status();
      Win();
    }
  }

  const char* AwaitsThisThread() const override {
    return timeout_ == absl::InfiniteDuration() ? this->InnerAwaitsThisThread() : nullptr;
  }

 private:
  friend class future_internal::RaceSource<TimeoutSource, T, R>;

  // A pending timer keeps this alive.
  struct Reference {
    explicit Reference(TimeoutSource& of) : source(&of) { of.AddReference(); }
    Reference(Reference&& other) noexcept : source(std::exchange(other.source, nullptr)) {}
    Reference& operator=(Reference&&) = delete;
    ~Reference() {
      if (source != nullptr) source->Release();
    }
    TimeoutSource* source;
  };

  ~TimeoutSource() override = default;

  void Win() {
    this->WinAsRival([] {});
  }
  void DropRival() {
    if (std::exchange(has_timer_, false)) toolbox_.CancelTimer(timer_);
  }
  FutureResult<R> TakeFrom(bool timer_won) {
    const bool is_late = timer_won && refused_.ok();
    FutureResult<T> result = is_late ? NotInTime(timeout_) : timer_won ? refused_ : this->inner().Take();
    if constexpr (std::is_same_v<R, T>) {
      return result;
    } else {
      return R{.result = std::move(result), .is_late = is_late};
    }
  }

  RuntimeToolbox& toolbox_;
  const absl::Duration timeout_;
  bool has_timer_ = false;
  TimerId timer_;
  // The error of the toolbox, if it had no timer left.
  absl::Status refused_;
};

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
