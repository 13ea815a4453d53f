// StopBecause: an actor stops itself because of an error, and its askers get that error.
//
//   StopBecause(context, absl::DataLossError("the journal cannot be read"));      // in a handler
#ifndef FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_
#define FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"

namespace fraktor::inline v0 {

// Stops the actor after the current message, as context.Stop() does. Asks in its mailbox, and later
// asks, fail with `cause`, without its ActorErrorKind: that would tell the asker what happened to
// the actor that the cause came from, not to this one. Must be called in the actor's turn.
void StopBecause(ActorContext& context, const absl::Status& cause);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_STOP_BECAUSE_H_
