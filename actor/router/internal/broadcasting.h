// RouterStrategy::Broadcasting, and Broadcast messages: every routee gets a copy.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_BROADCASTING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_BROADCASTING_H_

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routee_sending.h"

namespace fraktor::inline v0::actor_internal {

// Sends copies to all of `to`, and the message itself to the last one. It becomes a dead letter if
// `to` is empty, or if there are several and the message is not copyable. If a copy throws, the
// routees after it get nothing, and the message is one dead letter. Returns an error only if no
// routee has taken the message: the error of the copy, or else that of the first routee.
absl::Status SendToAll(ActorRef router, const RefList& to, EnvelopePtr message);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_BROADCASTING_H_
