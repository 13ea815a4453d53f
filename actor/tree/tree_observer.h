// TreeObserver: hears of each actor that is spawned or ends, and of each dead letter, by
// references. Simulations and tests implement it.
//
//   class SpawnCount final : public TreeObserver {
//    public:
//     void OnSpawned(ActorRef, ActorRef, std::string_view) override { ++spawned; }
//     void OnEnded(ActorRef) override {}
//     void OnDeadLetter(ActorRef, const Envelope&, DeadLetterReason) override {}
//
//     std::atomic<int> spawned = 0;
//   };
//
//   SpawnCount count;
//   ActorSystemOptions options{.tree_observer = &count};
//
// Thread safety: workers and foreign threads call it at the same time, some with locks held. It
// must not send, spawn or throw.
#ifndef FRAKTOR_ACTOR_TREE_TREE_OBSERVER_H_
#define FRAKTOR_ACTOR_TREE_TREE_OBSERVER_H_

#include <string_view>

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

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

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TREE_TREE_OBSERVER_H_
