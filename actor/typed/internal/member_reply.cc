#include "fraktor/actor/typed/internal/member_reply.h"

#include "absl/status/status.h"

namespace fraktor::inline v0::typed_internal {

absl::Status AskedByAnotherClass() {
  return absl::FailedPreconditionError(
      "the function of AskOnReply belongs to another class than the actor; name a function of the class that was "
      "spawned");
}

}  // namespace fraktor::inline v0::typed_internal
