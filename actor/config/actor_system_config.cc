#include "fraktor/actor/config/actor_system_config.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;

absl::Status ActorSystemConfig::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(
      Annotate(ActorPathValidator::ValidateSystemName(system_name), "ActorSystemConfig.system_name"));
  if (system_name.size() > kMaxSystemNameLength) {
    return path_internal::PathError(ActorPathErrorKind::kInvalidSystemName,
                                    absl::StrCat("ActorSystemConfig.system_name: ", QuotedForText(system_name), " has ",
                                                 system_name.size(), " bytes; use at most ", kMaxSystemNameLength),
                                    kMaxSystemNameLength);
  }
  if (!IsKnownProtocol(scheme)) {
    return path_internal::PathError(
        ActorPathErrorKind::kInvalidScheme,
        absl::StrCat("ActorSystemConfig.scheme: ", QuotedForText(scheme), " is not known; use pekko or pekko.tcp"));
  }
  if (default_guardian != Guardian::kUser && default_guardian != Guardian::kSystem) {
    return absl::InvalidArgumentError(
        absl::StrCat("ActorSystemConfig.default_guardian: ", ToAbsl(GuardianSegments::NameOf(default_guardian)),
                     " takes no actors of its own; use Guardian::kUser or Guardian::kSystem"));
  }
  if (uid_reservation < absl::Seconds(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ActorSystemConfig.uid_reservation: ", absl::FormatDuration(uid_reservation),
        " is below one second, and a uid could come back while messages to it are under way; use at least 1s"));
  }
  if (max_uid_reservations == 0) {
    return absl::InvalidArgumentError(
        "ActorSystemConfig.max_uid_reservations: 0 would reserve nothing; use at least 1");
  }
  if (remoting.has_value()) FRAKTOR_RETURN_IF_ERROR(Annotate(remoting->Validate(), "ActorSystemConfig.remoting"));
  return absl::OkStatus();
}

absl::StatusOr<ActorPathParts> ActorSystemConfig::LocalParts() const {
  FRAKTOR_RETURN_IF_ERROR(Validate());
  return ActorPathParts::Local(system_name, scheme);
}

absl::StatusOr<ActorPathParts> ActorSystemConfig::CanonicalParts() const {
  if (!remoting.has_value()) return LocalParts();
  FRAKTOR_RETURN_IF_ERROR(Validate());
  FRAKTOR_ASSIGN_OR_RETURN(PathAuthority authority,
                           PathAuthority::Create(scheme, remoting->canonical_hostname, remoting->canonical_port));
  return ActorPathParts::Remote(system_name, std::move(authority));
}

}  // namespace fraktor::inline v0
