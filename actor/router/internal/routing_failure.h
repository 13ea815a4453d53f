// Handles a message when code of the program fails while the message is routed: a
// RoutingLogic, the key of the message, or the copy for one of several routees. The exception must
// not leave Tell, because the sender is not to blame.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_FAILURE_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_FAILURE_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

// Any thread. Makes the message a dead letter (kNoRecipient), fails the ask of its sender, and lets
// the router log a warning: for its first failure, the second, the fourth and so on. `part` names
// the code that failed: "the routing logic". Returns the error, with the path of the router and the
// type of the message, for TryTell.
[[gnu::cold]] absl::Status FailRouting(ActorRef router, EnvelopePtr message, std::string_view part,
                                       const absl::Status& error);

// Called in a handler that catches everything. Returns Internal with the text of the exception.
[[gnu::cold]] absl::Status ErrorOfThrown();

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTING_FAILURE_H_
