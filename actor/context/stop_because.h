// StopBecause: an actor ends itself because it cannot go on, and its askers get the cause.
//
//   StopBecause(context, Annotate(status, "the journal cannot be read"));      // in the actor's turn
#ifndef FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_
#define FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"

namespace fraktor::inline v0 {

// Ends the actor after this message, as context.Stop() does. Those who ask get `cause` without its
// ActorErrorKind, which would tell of another actor, that the cause has come from.
void StopBecause(ActorContext& context, const absl::Status& cause);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_
