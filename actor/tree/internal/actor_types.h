// ActorTypes: the numbers that ActorSlot::type has for the types of actors, their names, and the
// numbers of actors that have metrics of their own.
//
// The spawner reads the number of a recipe from the recipe (ActorProps::memo), so a spawn takes no
// lock.
//
// Thread safety: any thread, except Forget.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TYPES_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TYPES_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/tree/internal/tree_paths.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

class ActorTypes {
 public:
  // A null `hub`: types have numbers, but no metrics. `slots` has the actors of the tree.
  ActorTypes(ObservabilityHub* hub, const ActorSlotPool& slots, const TreePaths& paths);

  // The number of a type. 0 stands for all types beyond the limit.
  uint16_t NumberOf(const ActorProps& props) {
    const uint64_t memo = props.memo().load(std::memory_order_relaxed);
    return memo >> kTypeBits == serial_ ? static_cast<uint16_t>(memo) : FindNumberOf(props);
  }
  // The name of a number in a slot or a WorkerStall; "other" for 0.
  std::string NameOf(uint16_t type) const;

  // Gives one actor metrics of its own: see ActorSystem::Observe.
  absl::Status Observe(ActorRef actor);
  static void StopObserving(ActorRef actor);
  // The actor counts for its type again. In the actor's turn.
  void Forget(ActorSlot& slot);
  // The actor has ended before it got its number.
  void Release(ObservedId id) { hub_->Release(id); }

 private:
  static constexpr int kTypeBits = 16;

  uint16_t FindNumberOf(const ActorProps& props);
  bool HasMetrics() const { return hub_ != nullptr && hub_->enabled(); }

  ObservabilityHub* const hub_;
  const ActorSlotPool& slots_;
  const TreePaths& paths_;
  // Another one for each tree of the process: a recipe may remember the number of another tree.
  const uint64_t serial_;

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, uint16_t> types_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint16_t, std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_ACTOR_TYPES_H_
