#include "fraktor/actor/config/remoting_config.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;

absl::Status RemotingConfig::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(
      Annotate(ActorPathValidator::ValidateHost(canonical_hostname), "RemotingConfig.canonical_hostname"));
  // A peer must be able to read the host in a path.
  if (path_internal::FindHostError(canonical_hostname, path_internal::HostRule::kUri) != std::string_view::npos) {
    return path_internal::PathError(
        ActorPathErrorKind::kUnsupportedAuthority,
        absl::StrCat("RemotingConfig.canonical_hostname: ", QuotedForText(canonical_hostname),
                     " has a '_', which no peer can read in a path; use another name or the address"));
  }
  if (quarantine_duration < absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("RemotingConfig.quarantine_duration: ", absl::FormatDuration(quarantine_duration),
                     " is below one second, which would be no quarantine; use at least 1s"));
  }
  if (max_deferred_per_authority == 0) {
    return absl::InvalidArgumentError(
        "RemotingConfig.max_deferred_per_authority: 0 would lose every first message; use at least 1");
  }
  if (max_authorities == 0) {
    return absl::InvalidArgumentError("RemotingConfig.max_authorities: 0 would allow no peer; use at least 1");
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
