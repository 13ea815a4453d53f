// TreeWatching: the watches of actors on actors and promises (death watch).
//
// The watcher keeps the actors that it watches, and the watched actor keeps its watchers
// (CellState). An actor that ends tells its watchers ActorEnded, a system message. The watcher
// turns it into a Terminated at the end of its own mailbox, so the Terminated comes after all
// messages of the ended actor.
//
// Thread safety: in the turn of the actor whose context or slot is given, except TellEnded.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_WATCHING_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_WATCHING_H_

#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/cell/internal/cell_state.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/actor/tree/internal/tree_paths.h"

namespace fraktor::inline v0::actor_internal {

class TreeWatching {
 public:
  explicit TreeWatching(const TreePaths& paths) : paths_(paths) {}

  // See ActorLifecycle::Watch.
  absl::Status Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, ActorLifecycle::SameMessage same);
  void Unwatch(ActorContext& context, ActorRef actor);

  // The system messages of watchers, in the turn of the watched actor.
  void OnWatch(ActorSlot& slot, const WatchActor& watch);
  void OnWatchPromise(ActorSlot& slot, const WatchPromiseOf& watch);
  void OnUnwatch(ActorSlot& slot, const UnwatchActor& unwatch);

  // In the turn of the watcher: puts a Terminated into its mailbox, beyond any limit.
  void OnEnded(Turn turn, const ActorEnded& ended);
  // Takes over a Terminated that the mailbox gives to the actor. Returns the message that the actor
  // receives: the Terminated, or the message of WatchWith; null if the actor no longer watches.
  EnvelopePtr TakeTerminated(Turn turn, EnvelopePtr terminated);
  // The actor does not handle a Terminated. Returns the error that it fails with.
  absl::Status BreakDeathPact(ActorContext& context, const Terminated& terminated) const;

  // Tells a watcher that an actor or promise has ended. Any thread.
  void TellEnded(NodeCache& cache, ActorRef watcher, ActorRef ended) const;
  // Tells the watchers of an actor that has ended, and ends its own watches. `path` was its path.
  void OnActorEnded(NodeCache& cache, ActorRef ended, const CellState& state, const std::string& path) const;

 private:
  const TreePaths& paths_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_WATCHING_H_
