#include "fraktor/actor/timer/timer_period.h"

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

absl::Status TooLong(std::string_view what, std::string_view name, absl::Duration value) {
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(what), ": ", ToAbsl(name), " is ", absl::FormatDuration(value),
                                                 "; use at most ", absl::FormatDuration(kMaxTimerDelay)));
}

}  // namespace

absl::Status CheckTimerDelay(std::string_view what, absl::Duration delay) {
  return delay > kMaxTimerDelay ? TooLong(what, "the delay", delay) : absl::OkStatus();
}

absl::Status CheckTimerPeriod(std::string_view what, const TimerPeriod& period) {
  if (period.period <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToAbsl(what), ": the period is ", absl::FormatDuration(period.period), "; it must be positive"));
  }
  if (period.period > kMaxTimerDelay) return TooLong(what, "the period", period.period);
  if (period.first() > kMaxTimerDelay) return TooLong(what, "the initial delay", period.first());
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
