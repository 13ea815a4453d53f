// ChildList: the children of one actor.
//
// A list is made with the first child and freed when the actor ends, so an actor without children has none. The parent's
// slot points to it (ActorKin::children); the children are linked to each other in their slots.
//
// Thread safety: the KinLock of the parent guards the list, and the pointer to it. The parent also reads the pointer in
// its turn without the lock, to see that it has never had children.
#ifndef FRAKTOR_ACTOR_CELL_CHILD_LIST_H_
#define FRAKTOR_ACTOR_CELL_CHILD_LIST_H_

#include <cstdint>
#include <memory>

#include "fraktor/actor/cell/child_index.h"
#include "fraktor/actor/message/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

struct ChildList {
  // The slot of the newest child, or ActorKin::kNone. ActorKin::next_sibling leads to older ones.
  uint32_t first = ActorKin::kNone;
  uint32_t count = 0;
  // The number of the next child. Numbers never repeat: ActorKin::kMaxNumber of them last for centuries.
  uint64_t next_number = 0;
  // Made by the first lookup among many children; see ChildIndex.
  std::unique_ptr<ChildIndex> index;

  // Where lists come from.
  static constexpr NodeClass kNodeClass = NodeClass::k64;
};

static_assert(sizeof(ChildList) <= NodeBytes(ChildList::kNodeClass));

// The number of children now. The caller holds the KinLock of the slot, or knows that nobody else changes it.
inline uint32_t CountChildren(const ActorSlot& slot) {
  return slot.kin.children == nullptr ? 0 : slot.kin.children->count;
}

// The slot of the newest child, or ActorKin::kNone. The caller holds the KinLock of the slot.
inline uint32_t NewestChild(const ActorSlot& slot) {
  return slot.kin.children == nullptr ? ActorKin::kNone : slot.kin.children->first;
}

// The number of a slot's actor, with the flags of ActorKin::number. Any thread; the slot may be in use by another actor
// when the caller looks at the result.
uint64_t NumberOf(const ActorSlot& slot);

// The living child of that number, if it has no name of its own; otherwise no one. Any thread. Takes a constant time on
// average, see ChildIndex, and the KinLock of the parent.
ActorRef FindUnnamedChild(ActorRef parent, uint64_t number);

// For a list with an index, after a child was linked, and before one is unlinked. The caller holds the KinLock of the
// parent. Returns the index if nobody uses it any more: the caller destroys it without the lock.
[[nodiscard]] std::unique_ptr<ChildIndex> AddToIndex(ChildList& children, ActorSlot& child);
[[nodiscard]] std::unique_ptr<ChildIndex> RemoveFromIndex(ChildList& children, ActorSlot& child);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_CHILD_LIST_H_
