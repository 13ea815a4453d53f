// Sending to routers: references with the flag ActorRef::kRouter. The thread of the sender routes a
// message at once; it does not go through the mailbox of the router. actor/router decides on the
// routee. Intercepted messages (PoisonPill, Identify, and those that manage a router) go to the
// router itself.
//
// Only such references lead here, so other sends pay nothing.
//
// Called by: ActorWorker and SendForeign. Thread: any.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_ROUTED_SENDING_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_ROUTED_SENDING_H_

#include <cstdint>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

// ActorRef::kRouter in ActorSlot::ref_flags.
inline constexpr uint8_t kRouterFlag = static_cast<uint8_t>(ActorRef::kRouter >> 32);

// Routes a message, whose target word is set. Takes it over. ResourceExhausted if the mailbox of
// the routee is full and its overflow policy rejects the message. Any thread.
using RouteFunction = absl::Status (*)(ActorRef router, EnvelopePtr message);

// Returns the message inside of a message that a router has sent to itself, in order to route it in
// its own turn. Returns other messages as they are.
using UnwrapFunction = EnvelopePtr (*)(EnvelopePtr message);

// Called before the first router is spawned, always with the same functions.
void InstallRouting(RouteFunction route, UnwrapFunction unwrap);

absl::Status RouteMessage(ActorRef router, EnvelopePtr message);
// For dead letters: the message that the sender has sent.
EnvelopePtr UnwrapRouted(EnvelopePtr message);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_ROUTED_SENDING_H_
