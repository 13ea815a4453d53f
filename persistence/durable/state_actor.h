// StateActor: the one actor of a system that talks to a store of durable states; all others talk to it, by
// state_messages.h.
//
// It serves many clients at once and waits for none. What a store throws is its answer. When it stops or is restarted,
// everything that is under way is answered with a failure.
//
// Thread safety: an actor.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_
#define FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_

#include <memory>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/state/state_storage.h"

namespace fraktor::inline v0 {

class StateActor final : public ActorInstance {
 public:
  explicit StateActor(std::shared_ptr<StateStorage> storage);

  absl::Status Receive(ActorContext& context, Envelope& message) override;
  void PostStop(ActorContext& context) override;

 private:
  const std::shared_ptr<StateStorage> storage_;
  PendingOperations operations_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_STATE_ACTOR_H_
