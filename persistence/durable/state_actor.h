// StateActor: the one actor of a system that talks to a store of durable states; all others talk to
// it, by state_messages.h.
//
// It serves many clients at once and waits for none. All goes through a circuit breaker; what a
// store throws is its answer. When the actor stops or is restarted, everything that is under way is
// answered with a failure.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_
#define FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/protocol/store_actor.h"
#include "fraktor/persistence/state/state_storage.h"

namespace fraktor::inline v0 {

struct StateActorOptions {
  // If it does not say which errors are failures, those are that the store is to blame for.
  // A store that works again, as after a full disk, is used again within seconds.
  CircuitBreakerOptions breaker = {.name = "state store",
                                   .max_failures = 10,
                                   .reset_timeout = absl::Seconds(1),
                                   .backoff_factor = 2,
                                   .max_reset_timeout = absl::Seconds(10)};

  // InvalidArgument that names the option.
  absl::Status Validate() const { return breaker.Validate(); }
};

class StateActor final : public protocol_internal::StoreActor<StateStorage, StateActorOptions> {
 public:
  StateActor(std::shared_ptr<StateStorage> storage, const StateActorOptions& options);

  absl::Status Receive(ActorContext& context, Envelope& message) override;

 private:
  // Announces the owner, if it has a token, and then loads.
  void Open(ActorContext& context, LoadState request);
  void Load(ActorContext& context, LoadState request);
  void Change(ActorContext& context, ChangeState& request);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_
