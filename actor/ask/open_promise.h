// Reads a reply promise that has no reply yet: its asker, its target and its deadline.
//
//   const bool is_late = DeadlineOf(context.sender()) < toolbox.Now();
//
// Called by: handlers that reply to asks, routers, grains, watching, paths, and the parts of
// actor/ask. Thread: any. The promise may be claimed, and its slot used again, while a thread reads
// it: the generation decides afterwards, and the reader gets the result for a promise that is over.
#ifndef FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_
#define FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// The actor that waits for the reply; no one if the promise is over, or the actor has ended.
ActorRef AskerOf(ActorRef promise);

// The actor of this process that was asked; no one if the promise is over, or the actor has ended.
ActorRef TargetOf(ActorRef promise);

// The time at which the ask times out; the infinite past if the promise is over.
Instant DeadlineOf(ActorRef promise);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_
