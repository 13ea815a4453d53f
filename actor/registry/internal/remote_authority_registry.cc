#include "fraktor/actor/registry/internal/remote_authority_registry.h"

#include <cstddef>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal::authority_internal {

absl::Status UnknownProtocol(const PathAuthority& authority) {
  return MakeError(absl::StatusCode::kInvalidArgument, ActorPathErrorKind::kUnsupportedAuthority,
                   absl::StrCat("authority ", authority.ToString(), ": protocol ", QuotedForText(authority.protocol()),
                                " is not known; use pekko or pekko.tcp"),
                   {{"authority", authority.ToString()}});
}

absl::Status NoRoom(const PathAuthority& authority, size_t max_authorities) {
  return MakeError(
      absl::StatusCode::kResourceExhausted, PathResolutionErrorKind::kAuthorityUnresolved,
      absl::StrCat("authority ", authority.ToString(), ": ", max_authorities,
                   " others are connected, waited for or in quarantine; raise RemotingConfig.max_authorities"),
      {{"authority", authority.ToString()}});
}

absl::Status QueueFull(const PathAuthority& authority, size_t max_deferred) {
  return MakeError(
      absl::StatusCode::kResourceExhausted, PathResolutionErrorKind::kAuthorityUnresolved,
      absl::StrCat("authority ", authority.ToString(), " is not connected and ", max_deferred,
                   " messages wait for it already; send less, or raise RemotingConfig.max_deferred_per_authority"),
      {{"authority", authority.ToString()}});
}

absl::Status Quarantined(const PathAuthority& authority, std::string_view reason, absl::Duration left) {
  absl::Status status = MakeError(
      absl::StatusCode::kUnavailable, PathResolutionErrorKind::kAuthorityQuarantined,
      absl::StrCat("authority ", authority.ToString(), " is in quarantine for another ", absl::FormatDuration(left),
                   " because of ", QuotedForText(reason), "; restart the peer, or override the quarantine"),
      {{"authority", authority.ToString()}});
  // Callers that handle paths check the kind of path errors.
  const absl::string_view url = ToAbsl(ErrorKindTraits<ActorPathErrorKind>::kTypeUrl);
  const absl::Status as_path = MakeError(absl::StatusCode::kUnavailable, ActorPathErrorKind::kQuarantined, "",
                                         {{"authority", authority.ToString()}});
  status.SetPayload(url, *as_path.GetPayload(url));
  return status;
}

absl::Status IllegalTransition(const PathAuthority& authority, std::string_view call,
                               std::optional<AuthorityState> state, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, PathResolutionErrorKind::kIllegalTransition,
                   absl::StrCat("authority ", authority.ToString(),
                                state.has_value() ? absl::StrCat(" is in state ", ToAbsl(NameOf(*state)))
                                                  : std::string(" is not known"),
                                ", which does not allow ", ToAbsl(call), ": ", ToAbsl(why)),
                   {{"authority", authority.ToString()}});
}

absl::Status NotTheSystem(const PathAuthority& authority, std::optional<AuthorityState> state, uint64_t meant,
                          uint64_t met) {
  const std::string last =
      met == 0 ? std::string("no system was met there") : absl::StrCat("system ", met, " was met there last");
  return IllegalTransition(
      authority, "Quarantine", state,
      absl::StrCat("system ", meant, " is meant, but ", last, "; give the uid that the handshake told"));
}

}  // namespace fraktor::inline v0::actor_internal::authority_internal
