// TimerPeriod: the period of a repeated timer, and the limits of all timers of actors and systems.
//
//   Timers timers(context);
//   timers.StartFixedRate("tick", Tick{}, {.period = absl::Seconds(1)}).IgnoreError();              // 1, 2, 3 s
//   timers.StartFixedDelay("poll", Poll{}, {.period = absl::Seconds(1), .initial_delay = absl::ZeroDuration()})
//       .IgnoreError();
#ifndef FRAKTOR_ACTOR_TIMER_TIMER_PERIOD_H_
#define FRAKTOR_ACTOR_TIMER_TIMER_PERIOD_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

struct TimerPeriod {
  // Must be positive.
  absl::Duration period = absl::ZeroDuration();
  // The time until the first firing; one period by default. At once if it is not positive.
  std::optional<absl::Duration> initial_delay = std::nullopt;

  absl::Duration first() const { return initial_delay.value_or(period); }
};

// Longer delays and periods are refused: above a hundred years they are mistakes, or mean "never".
inline constexpr absl::Duration kMaxTimerDelay = absl::Hours(24 * 36500);

// A fixed rate makes up for periods that it missed because the clock lagged, but for no more than
// this number at once. A periodic timer of an actor has no more than this number of messages in the
// mailbox.
inline constexpr uint64_t kMaxCatchUp = 1000;

// InvalidArgument with `what`, the value and the limit.
absl::Status CheckTimerDelay(std::string_view what, absl::Duration delay);
absl::Status CheckTimerPeriod(std::string_view what, const TimerPeriod& period);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TIMER_TIMER_PERIOD_H_
