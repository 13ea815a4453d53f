// Sending to routers: references that carry ActorRef::kRouter. What is sent to one goes to others at once, on the
// sender's thread, and not through the router's mailbox; whom to, actor/router knows. Marked messages (PoisonPill,
// Identify, and those by which a router is managed) are for the router itself.
//
// Only such references lead here, so other sends pay nothing for it.
#ifndef FRAKTOR_ACTOR_SEND_ROUTED_SENDING_H_
#define FRAKTOR_ACTOR_SEND_ROUTED_SENDING_H_

#include <cstdint>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// ActorRef::kRouter in ActorSlot::ref_flags.
inline constexpr uint8_t kRouterFlag = static_cast<uint8_t>(ActorRef::kRouter >> 32);

// What sends a message on: any thread; takes it over, with its target word set. ResourceExhausted if the receiver's
// mailbox is full and says so.
using RouteFunction = absl::Status (*)(ActorRef router, EnvelopePtr message);

// What a message was that a router has put into one of its own, to send it on in its turn; others stay as they are.
using UnwrapFunction = EnvelopePtr (*)(EnvelopePtr message);

// Before the first router is spawned; the same ones each time.
void InstallRouting(RouteFunction route, UnwrapFunction unwrap);

absl::Status RouteMessage(ActorRef router, EnvelopePtr message);
// For dead letters: what somebody has sent, whatever has become of it on the way.
EnvelopePtr UnwrapRouted(EnvelopePtr message);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_ROUTED_SENDING_H_
