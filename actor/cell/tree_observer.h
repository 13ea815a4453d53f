// Who is told of the comings and goings in a tree of actors, by references and not by texts: simulations, tests.
//
// Thread safety: called by many threads at once, where there are many, in the middle of things: it must not send, spawn
// or throw.
#ifndef FRAKTOR_ACTOR_CELL_TREE_OBSERVER_H_
#define FRAKTOR_ACTOR_CELL_TREE_OBSERVER_H_

#include <string_view>

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

class TreeObserver {
 public:
  virtual ~TreeObserver() = default;

  // Before its first turn. No one is the parent of a root.
  virtual void OnSpawned(ActorRef actor, ActorRef parent, std::string_view type) = 0;
  // Its last hook is over, and nobody reaches it any more.
  virtual void OnEnded(ActorRef actor) = 0;
  // User messages, and answers that came too late.
  virtual void OnDeadLetter(ActorRef recipient, const Envelope& message, DeadLetterReason reason) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_TREE_OBSERVER_H_
