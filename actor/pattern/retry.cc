#include "fraktor/actor/pattern/retry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

absl::Status RetryOptions::Validate() const {
  if (max_retries < 0) {
    return absl::InvalidArgumentError(absl::StrCat("RetryOptions.max_retries is ", max_retries, "; it is 0 or more"));
  }
  if (delay < absl::ZeroDuration() || delay == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("RetryOptions.delay is ", absl::FormatDuration(delay), "; it is finite and not negative"));
  }
  if (!(factor >= 1.0) || !std::isfinite(factor)) {
    return absl::InvalidArgumentError(absl::StrCat("RetryOptions.factor is ", factor, "; it is 1 or more"));
  }
  if (max_delay < delay) {
    return absl::InvalidArgumentError(absl::StrCat("RetryOptions.max_delay is ", absl::FormatDuration(max_delay),
                                                   "; it is not less than the delay, ", absl::FormatDuration(delay)));
  }
  if (!(jitter >= 0.0 && jitter <= 1.0)) {
    return absl::InvalidArgumentError(absl::StrCat("RetryOptions.jitter is ", jitter, "; it is from 0 to 1"));
  }
  return absl::OkStatus();
}

absl::Duration RetryOptions::DelayBefore(int retry, double chance) const {
  // The loop stops growing at the limit, where a power would overflow.
  absl::Duration pause = delay;
  for (int i = 1; i < retry && pause < max_delay && factor > 1.0; ++i) pause = std::min(pause * factor, max_delay);
  return pause * (1.0 + jitter * chance);
}

}  // namespace fraktor::inline v0
