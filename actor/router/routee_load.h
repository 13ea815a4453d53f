// How busy a routee is, for RouterStrategy::SmallestMailbox, for resizers, and for a RoutingLogic.
//
//   const bool first_is_less_busy = RouteeLoad(first) < RouteeLoad(second);
//
// Thread safety: any thread. The result may be out of date at once.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTEE_LOAD_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTEE_LOAD_H_

#include <cstdint>

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The load of an actor that has ended, and of a recipient whose load is not known: a remote actor.
inline constexpr uint64_t kLoadOfEnded = UINT64_MAX;
inline constexpr uint64_t kUnknownLoad = UINT64_MAX - 1;

// 0 if the actor is idle, 1 if it handles a message and no other waits. With a bounded mailbox, one
// more for each message that waits. With an unbounded one, 2 if any messages wait: nobody counts
// them.
uint64_t RouteeLoad(ActorRef actor);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTEE_LOAD_H_
