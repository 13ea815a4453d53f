// The two strategies that ask several routees and use the first reply: ScatterGather
// (scatter_gather.cc) and TailChopping (tail_chopping.cc).
//
// Both take the reply promise of an asker as the sender of `message`. Timers may run on any thread,
// and after the actor system has ended: they hold nothing that ends with it.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_ASKING_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_ASKING_H_

#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/routee_sending.h"
#include "fraktor/actor/router/internal/routing_table.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

// An ask that goes to routees. The message becomes a dead letter if there are no routees, or if
// there are several and it is not copyable.
struct RouteeAsk {
  ActorRef router;
  ActorRef promise;
  EnvelopePtr message;
  AllRoutees all;
};

// RouterStrategy::ScatterGather: asks all routees at once.
void AskAll(RouteeAsk ask, RuntimeToolbox& toolbox);
// RouterStrategy::TailChopping: asks one routee, and after each interval without a reply one more.
// `random` gives their order.
void AskOneByOne(RouteeAsk ask, uint64_t random, RuntimeToolbox& toolbox);

// Fails the ask because no routee replied within the time limit of the strategy. Does nothing if
// the promise has a reply already.
void FailAsk(ActorRef promise, absl::Duration within);
// The same because a copy of the message threw. Called in a handler that catches everything.
void FailAskThatThrew(ActorRef promise);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUTEE_ASKING_H_
