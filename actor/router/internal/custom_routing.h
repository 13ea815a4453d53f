// RouterStrategy::Using: calls a RoutingLogic of the program, and sends to the routees that it
// chose.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTING_H_

#include <cstdint>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/consistent_hashing.h"
#include "fraktor/actor/router/internal/routing_table.h"

namespace fraktor::inline v0::actor_internal {

// Any thread. `key` is that of a Keyed message. A failure of the logic makes the message a dead
// letter: see routing_logic.h.
absl::Status RouteByLogic(const RoutingTable& table, ActorRef router, uint64_t ticket, RoutingKeyResult key,
                          EnvelopePtr message);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_CUSTOM_ROUTING_H_
