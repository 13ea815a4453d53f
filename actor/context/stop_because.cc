#include "fraktor/actor/context/stop_because.h"

#include "fraktor/actor/ask/internal/end_cause.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::RememberEndCause;

void StopBecause(ActorContext& context, const absl::Status& cause) {
  // The cause may be an error of another actor. Its kind would tell askers what happened to that
  // actor.
  absl::Status of_this_actor = cause;
  of_this_actor.ErasePayload(ToAbsl(ErrorKindTraits<ActorErrorKind>::kTypeUrl));
  RememberEndCause(context.self(), of_this_actor);
  context.Stop();
}

}  // namespace fraktor::inline v0
