// ActorTree: the actors of a system as a tree. It implements ActorLifecycle for the invoker and for
// contexts, and hands each call to the class that is responsible for it:
// - TreeSpawning: spawns actors. child_links.h: links parents and children.
// - TreeSupervision: starts, failures, verdicts and restarts.
// - TreeWatching: watches. TreeDeadLetters: lost and unhandled messages.
// - TreePaths: paths as texts. TreeLog: log lines about actors. ActorTypes: types and metrics.
//
// ActorSystem makes the tree. Code that has a context finds it by ActorTree::Of(context).
//
// A parent outlives its children. An actor that stops stops its children first, and ends after the
// last of them. An actor that fails is suspended with all its descendants until its parent decides.
// All of this happens by system messages: no thread waits.
//
// Thread safety: any thread, except for calls with a context or a slot, which belong to the turn of
// the actor.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/actor/tree/internal/actor_tree_options.h"
#include "fraktor/actor/tree/internal/actor_types.h"
#include "fraktor/actor/tree/internal/tree_clock.h"
#include "fraktor/actor/tree/internal/tree_dead_letters.h"
#include "fraktor/actor/tree/internal/tree_log.h"
#include "fraktor/actor/tree/internal/tree_paths.h"
#include "fraktor/actor/tree/internal/tree_spawning.h"
#include "fraktor/actor/tree/internal/tree_supervision.h"
#include "fraktor/actor/tree/internal/tree_watching.h"

namespace fraktor::inline v0::actor_internal {

class ActorTree final : public ActorLifecycle {
 public:
  explicit ActorTree(const ActorTreeOptions& options);
  // No worker runs any more. Actors that are left end without their hooks.
  ~ActorTree() override;

  // The tree of the actor whose turn this is.
  static ActorTree& Of(ActorContext& /*context*/) { return static_cast<ActorTree&>(ActorContext::worker().lifecycle); }

  // Spawns a child in the turn of its parent: see ActorContext::TrySpawn.
  absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props, std::string_view name = {}) override;
  // Spawns a child of an actor from any thread, after ExpectForeignChildren. `usual` is the meaning
  // of DispatcherChoice::kAutomatic. Further error: Unavailable with kTerminating if the parent has
  // ended.
  absl::StatusOr<ActorRef> SpawnChildOf(ActorRef parent, const ActorProps& props, std::string_view name = {},
                                        DispatcherChoice usual = DispatcherChoice::kAutomatic);
  // The same, and `watcher` watches the child.
  absl::StatusOr<ActorRef> TrySpawnWatched(ActorRef parent, ActorRef watcher, const ActorProps& props,
                                           std::string_view name = {});
  // Spawns an actor without a parent.
  absl::StatusOr<ActorRef> SpawnRoot(const ActorProps& props);

  // Ends an actor: see ActorContext::Stop.
  static void Stop(ActorRef actor);

  // See ActorSystem::CanonicalPathOf.
  std::string CanonicalPathOf(ActorRef actor) const { return paths_.CanonicalPathOf(actor); }

  ActorTypes& types() { return types_; }
  const TreeLog& log() const { return log_; }
  const ActorTreeOptions& options() const { return options_; }

  // ActorLifecycle, for contexts.
  void Stop(ActorContext& context, ActorRef actor) override;
  absl::Status Watch(ActorContext& context, ActorRef actor, EnvelopePtr message, SameMessage same) override;
  void Unwatch(ActorContext& context, ActorRef actor) override;
  ActorRef ParentOf(ActorRef actor) const override;
  ActorRef ChildOf(ActorRef actor, std::string_view name) const override;
  std::vector<ActorRef> ChildrenOf(ActorRef actor) const override;
  std::string PathOf(ActorRef actor) const override { return paths_.PathOf(actor); }
  absl::Status OnUnhandled(ActorContext& context, Envelope& message) override;
  std::string DescribeFromOutside(ActorRef actor) const override;
  void OnPromiseEnded(ActorRef promise, ActorRef watcher) override;
  ActorSystem* system() const override { return options_.system; }

 private:
  // ActorLifecycle, for the invoker.
  absl::Status OnStart(ActorSlot& slot) override;
  void OnSystemMessage(Turn turn, Envelope& message) override;
  Envelope* OnInterceptedMessage(Turn turn, Envelope* envelope) override;
  void OnActivity(ActorSlot& slot) override;
  void OnFailure(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) override;
  void OnThrown(ActorRef actor, const absl::Status& error) override;
  bool StopChildrenFirst(ActorSlot& slot) override;
  void OnEnding(Turn turn) override;
  void OnEnded(Turn turn) override;
  bool PublishOrphan(utils_internal::TableSlot* slot, EnvelopePtr& envelope, DeadLetterReason reason) override;
  void OnDeadLetter(NodeCache& cache, EnvelopePtr envelope, utils_internal::TableSlot* slot,
                    DeadLetterReason reason) override;

  // Calls the last hooks of an actor, and ends what they may still use.
  void RunLastHooks(Turn turn);
  // A system message for an actor that has ended.
  void OnLostSystemMessage(NodeCache& cache, const Envelope& message, utils_internal::TableSlot* slot);

  const ActorTreeOptions options_;
  const TreePaths paths_;
  const TreeClock clock_;
  ActorTypes types_;
  const TreeLog log_;
  TreeWatching watching_;
  const TreeSupervision supervision_;
  const TreeDeadLetters dead_letters_;
  TreeSpawning spawning_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TREE_H_
