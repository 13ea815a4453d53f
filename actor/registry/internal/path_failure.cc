#include "fraktor/actor/registry/internal/path_failure.h"

#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/path_events.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {
namespace {

DeadLetterReason ReasonOf(const absl::Status& error) {
  if (const auto kind = ErrorKindOf<PathResolutionErrorKind>(error); kind.has_value()) {
    switch (*kind) {
      case PathResolutionErrorKind::kAuthorityUnresolved:
        return DeadLetterReason::kUnresolvedFull;
      case PathResolutionErrorKind::kAuthorityQuarantined:
        return DeadLetterReason::kQuarantined;
      case PathResolutionErrorKind::kUidReserved:
        return DeadLetterReason::kUidReserved;
      default:
        return DeadLetterReason::kNoRecipient;
    }
  }
  const auto kind = ErrorKindOf<ActorPathErrorKind>(error);
  if (kind == ActorPathErrorKind::kUnsupportedAuthority) return DeadLetterReason::kUnsupported;
  return DeadLetterReason::kInvalidPath;
}

}  // namespace

absl::Status PathFailureReporter::Report(absl::Status error, const AllDeadLetters& letter, Instant now) const {
  if (error.ok()) return error;
  events_.PublishToAll(PathFailure{.error = error, .sender = letter.sender, .recipient = letter.recipient, .at = now});
  DeadLetter dead{letter};
  dead.reason = ReasonOf(error);
  dead_letters_.Publish(dead, now);
  return error;
}

}  // namespace fraktor::inline v0::actor_internal
