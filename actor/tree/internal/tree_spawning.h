// TreeSpawning: makes actors of recipes (ActorProps): slot, mailbox, name, instance, and the link
// to the parent.
//
// Most actors have no name and the usual mailbox: Spawn makes them without a lock but that of the
// parent's children. All others take the slow path.
//
// Thread safety: any thread, except Spawn, which is called in the turn of the parent.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SPAWNING_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SPAWNING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/tree/internal/actor_tree_options.h"
#include "fraktor/actor/tree/internal/actor_types.h"
#include "fraktor/actor/tree/internal/instance_making.h"
#include "fraktor/actor/tree/internal/tree_paths.h"

namespace fraktor::inline v0::actor_internal {

class ActorTree;

class TreeSpawning {
 public:
  // All must outlive this object. Routers get `tree` to spawn their routees.
  TreeSpawning(ActorTree& tree, const ActorTreeOptions& options, ActorTypes& types, const TreePaths& paths)
      : tree_(tree), options_(options), types_(types), paths_(paths) {}

  // See ActorTree. `worker` is the worker of this thread if it runs actors of this tree; otherwise
  // null: a worker of another system has free slots of that system, which end with it.
  absl::StatusOr<ActorRef> Spawn(ActorContext& parent, const ActorProps& props, std::string_view name);
  absl::StatusOr<ActorRef> SpawnChildOf(ActorWorker* worker, ActorRef parent, const ActorProps& props,
                                        std::string_view name, DispatcherChoice usual);
  absl::StatusOr<ActorRef> SpawnRoot(const ActorProps& props);

 private:
  MailboxSpec SpecOf(const ActorProps& props, ActorInstance* instance, uint16_t dispatcher);
  // A slot without an instance, with the dispatcher and the mailbox of the props.
  template <class Register>
  absl::StatusOr<ActorSlot*> TakeSlot(const ActorProps& props, DispatcherChoice usual, Register register_slot);
  // `made_before` is the instance, if the caller has made it; null otherwise.
  absl::StatusOr<ActorRef> SpawnSlowly(ActorRef parent, ActorWorker* worker, const ActorProps& props,
                                       std::string_view name, MadeInstance* made_before,
                                       DispatcherChoice usual = DispatcherChoice::kAutomatic);
  // Publishes a new actor: it has its first turn, or waits for its first message.
  ActorRef Begin(ActorSlot& slot, bool must_run);
  // Frees the slot of an actor that could not be spawned.
  void GiveUp(ActorSlot& slot, const ActorProps& props);

  ActorTree& tree_;
  const ActorTreeOptions& options_;
  ActorTypes& types_;
  const TreePaths& paths_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_SPAWNING_H_
