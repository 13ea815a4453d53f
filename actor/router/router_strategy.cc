#include "fraktor/actor/router/router_strategy.h"

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

absl::Status RouterStrategy::Validate() const {
  if (kind() == RoutingKind::kCustom && logic_ == nullptr) {
    return absl::InvalidArgumentError("RouterStrategy::Using has a null logic; give it a RoutingLogic");
  }
  if (virtual_nodes_ < 1 || virtual_nodes_ > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("ConsistentHashingOptions.virtual_nodes is ", virtual_nodes_, "; it must be from 1 to 1000"));
  }
  if (within_ <= absl::ZeroDuration() || within_ == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the strategy's within is ", absl::FormatDuration(within_), "; it must be positive and finite"));
  }
  if (interval_ <= absl::ZeroDuration() || interval_ == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("TailChoppingOptions.interval is ", absl::FormatDuration(interval_),
                                                   "; it must be positive and finite"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
