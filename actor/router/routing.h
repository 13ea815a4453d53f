// What senders do for a router, on their own threads.
#ifndef FRAKTOR_ACTOR_ROUTER_ROUTING_H_
#define FRAKTOR_ACTOR_ROUTER_ROUTING_H_

#include <cstdint>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/routing_table.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// The RouteFunction of all routers.
absl::Status Route(ActorRef router, EnvelopePtr message);
// And their UnwrapFunction.
EnvelopePtr Unwrap(EnvelopePtr message);

// The questions of ScatterGather and TailChopping: sends `message` to some routees, as a question of `promise`. It is a
// dead letter if there are none, or several and it cannot be copied.
void AskRoutees(const RoutingTable& table, ActorRef router, ActorRef promise, EnvelopePtr message,
                RuntimeToolbox& toolbox);

// How busy an actor is, as far as others can see: 0 if it has nothing to do, 1 if it is at something, and one more for
// each message that waits, or for all of them if its mailbox is unbounded. UINT64_MAX of one that has ended.
uint64_t BusinessOf(ActorRef actor);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_ROUTING_H_
