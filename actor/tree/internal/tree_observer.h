// TreeObserver: hears of each actor that is spawned or ends, and of each dead letter, by
// references. Simulations and tests implement it (ActorSystemOptions::tree_observer).
//
// Thread safety: workers and foreign threads call it at the same time, some with locks held. It
// must not send, spawn or throw.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_OBSERVER_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_OBSERVER_H_

#include <string_view>

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

class TreeObserver {
 public:
  virtual ~TreeObserver() = default;

  // Called before the first turn of the actor. The parent of a root is no one.
  virtual void OnSpawned(ActorRef actor, ActorRef parent, std::string_view type) = 0;
  // Called after the last hook of the actor. Its references are stale.
  virtual void OnEnded(ActorRef actor) = 0;
  // Called for user messages, and for replies that came too late.
  virtual void OnDeadLetter(ActorRef recipient, const Envelope& message, DeadLetterReason reason) = 0;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_OBSERVER_H_
