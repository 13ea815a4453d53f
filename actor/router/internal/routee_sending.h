// The ways from a router to its routees, on the thread of the sender: what the strategies share.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_SENDING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_SENDING_H_

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0::actor_internal {

using RefList = absl::InlinedVector<ActorRef, 16>;

// A copy of the routees and the plan. Both are empty if the router has ended.
struct AllRoutees {
  RoutingPlan plan;
  RefList refs;
};
AllRoutees ReadAll(const RoutingTable& table, ActorRef router);

// Makes the message a dead letter whose recipient is the router. Returns NotFound, for TryTell.
absl::Status LoseRouted(ActorRef router, EnvelopePtr message, DeadLetterReason reason);

[[gnu::always_inline]] inline absl::Status SendToRoutee(ActorRef to, EnvelopePtr message) {
  ActorWorker* const worker = ActorWorker::Current();
  if (worker == nullptr) return SendForeign(to, std::move(message));
  return worker->TrySend(to, message.release());
}

NodeCache& CacheOfThisThread();

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_SENDING_H_
