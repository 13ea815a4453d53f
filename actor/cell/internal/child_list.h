// ChildList: the children of one actor.
//
// The first child of an actor makes the list, and the end of the actor frees it, so an actor
// without children has none. The parent's slot points to the list (ActorKin::children); the
// children are linked to each other in their slots. child_links.h changes the links.
//
// Thread safety: the KinLock of the parent guards the list, and the pointer to it. The parent also
// reads the pointer in its turn without the lock, to see whether it has ever had children.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LIST_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LIST_H_

#include <cstdint>
#include <memory>

#include "absl/base/optimization.h"

#include "fraktor/actor/cell/internal/child_index.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

struct ChildList {
  // The slot of the newest child, or ActorKin::kNone. ActorKin::next_sibling leads to older ones.
  uint32_t first = ActorKin::kNone;
  uint32_t count = 0;
  // The number of the next child. Numbers never repeat: ActorKin::kMaxNumber lasts for centuries.
  uint64_t next_number = 0;
  // The first lookup among many children makes it: see ChildIndex.
  std::unique_ptr<ChildIndex> index;

  // The class of the pooled nodes that lists live in.
  static constexpr NodeClass kNodeClass = NodeClass::k64;
};

static_assert(sizeof(ChildList) <= NodeBytes(ChildList::kNodeClass));

// The slot of a child in a list, which names only slots that exist.
inline ActorSlot& ChildAt(uint32_t index) {
  ActorSlot* const slot = ProcessSlots().At(index);
  ABSL_ASSUME(slot != nullptr);
  return *slot;
}

// The number of children now. The caller holds the KinLock of the slot, or no other thread runs.
inline uint32_t CountChildren(const ActorSlot& slot) {
  return slot.kin.children == nullptr ? 0 : slot.kin.children->count;
}

// The slot of the newest child, or ActorKin::kNone. The caller holds the KinLock of the slot.
inline uint32_t NewestChild(const ActorSlot& slot) {
  return slot.kin.children == nullptr ? ActorKin::kNone : slot.kin.children->first;
}

// The parent and the number of the actor of a slot; the number has the flags of ActorKin::number.
// Any thread. Another actor may have taken the slot: the caller checks the generation afterwards,
// see ActorKin.
ActorSlot* ParentSlotOf(const ActorSlot& slot);
uint64_t NumberOf(const ActorSlot& slot);

// The living child of that number, if it has no name of its own; otherwise no one. Any thread.
// Takes the KinLock of the parent, and a constant time on average: see ChildIndex.
ActorRef FindUnnamedChild(ActorRef parent, uint64_t number);

// For a list with an index, after a child was linked, and before a child is unlinked. The caller
// holds the KinLock of the parent. Returns the index if no lookup has used it for long: the caller
// destroys it without the lock.
[[nodiscard]] std::unique_ptr<ChildIndex> AddToIndex(ChildList& children, ActorSlot& child);
[[nodiscard]] std::unique_ptr<ChildIndex> RemoveFromIndex(ChildList& children, ActorSlot& child);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LIST_H_
