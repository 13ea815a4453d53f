// How a sender routes a message to the routees of a router, on its own thread.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_H_

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

// The RouteFunction of all routers (actor/send/internal/routed_sending.h). Any thread.
absl::Status Route(ActorRef router, EnvelopePtr message);
// The UnwrapFunction of all routers.
EnvelopePtr Unwrap(EnvelopePtr message);

// ScatterGather and TailChopping: sends `message` to some routees, which reply to `promise`. It
// becomes a dead letter if there are no routees, or if there are several and it is not copyable.
void AskRoutees(const RoutingTable& table, ActorRef router, ActorRef promise, EnvelopePtr message,
                RuntimeToolbox& toolbox);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_H_
