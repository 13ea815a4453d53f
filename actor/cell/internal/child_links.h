// The links between an actor and its children: link, unlink, walk, tell, stop.
//
// ChildList is the list itself; these functions take the locks and change the slots at both ends.
// A parent outlives its children: an actor that stops stops its children first, and ends when the
// last of them has left (UnlinkChild).
//
// Thread safety: each function says who may call it. "In the turn" means the turn of the actor that
// the slot belongs to.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LINKS_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LINKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "fraktor/actor/cell/internal/child_index.h"
#include "fraktor/actor/cell/internal/child_list.h"
#include "fraktor/actor/cell/internal/tree_phase.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

// In the turn, without the lock: only the actor itself links its first child, except for actors
// after ExpectForeignChildren, which have a list from the beginning. Relaxed: pairs with the store
// in ChildListMemory::GiveTo.
inline bool HasNeverHadChildren(ActorSlot& slot) {
  return std::atomic_ref<ChildList*>(slot.kin.children).load(std::memory_order_relaxed) == nullptr;
}

// Memory for the first ChildList of an actor. It goes back to the cache unless the actor takes it.
class ChildListMemory {
 public:
  // Allocates nothing if the actor has a list.
  ChildListMemory(NodeCache& cache, ActorSlot& parent)
      : cache_(cache), memory_(HasNeverHadChildren(parent) ? cache.Allocate(ChildList::kNodeClass) : nullptr) {}
  ~ChildListMemory() {
    if (memory_ != nullptr) [[unlikely]]
      cache_.Free(ChildList::kNodeClass, memory_);
  }
  ChildListMemory(const ChildListMemory&) = delete;
  ChildListMemory& operator=(const ChildListMemory&) = delete;

  // The list of a living actor, made now if it has none. The caller holds the actor's KinLock.
  ChildList& GiveTo(ActorSlot& parent) {
    if (parent.kin.children == nullptr) [[unlikely]] {
      // Relaxed: pairs with HasNeverHadChildren. All other readers hold the lock.
      std::atomic_ref<ChildList*>(parent.kin.children)
          .store(::new (std::exchange(memory_, nullptr)) ChildList, std::memory_order_relaxed);
    }
    return *parent.kin.children;
  }

 private:
  NodeCache& cache_;
  void* memory_;
};

// Links a new child to its parent. Called by the spawner, on any thread. Returns false if the
// parent is stopping, restarting or has ended.
inline bool LinkChild(NodeCache& cache, ActorSlot& parent, uint32_t generation, ActorSlot& child, bool is_named) {
  ActorKin& kin = child.kin;
  const uint32_t index = ActorSlotTable::IndexOf(&child);
  ChildListMemory memory(cache, parent);
  std::unique_ptr<ChildIndex> unused;  // Destroyed without the lock.
  const KinLock lock(parent);
  // Otherwise the child would outlive its parent, or the parent would wait for it for ever. The
  // generation comes last: another actor may have taken the slot.
  if (PhaseOf(parent) != kLiving || !parent.IsAt(generation)) [[unlikely]]
    return false;
  // Release: pairs with ParentSlotOf.
  std::atomic_ref<ActorSlot*>(kin.parent).store(&parent, std::memory_order_release);
  ChildList& siblings = memory.GiveTo(parent);
  const uint64_t number = siblings.next_number++ | (is_named ? ActorKin::kIsNamed : 0);
  // Release: pairs with NumberOf.
  std::atomic_ref<uint64_t>(kin.number).store(number, std::memory_order_release);
  kin.next_sibling = siblings.first;
  if (siblings.first != ActorKin::kNone) ChildAt(siblings.first).kin.previous_sibling = index;
  siblings.first = index;
  ++siblings.count;
  if (siblings.index != nullptr) [[unlikely]]
    unused = AddToIndex(siblings, child);
  return true;
}

// Unlinks a child that has ended, or that could not be spawned. Called in the child's last turn, so
// that its slot is free at once, however busy the parent is. Returns the parent if it waits for
// this child; the caller tells it ChildrenEnded.
ActorRef UnlinkChild(ActorSlot& parent, ActorSlot& child);

// Frees the list of an actor that has ended. Late readers of the slot find no list.
void FreeChildList(NodeCache& cache, ActorSlot& slot);

// Call it before other threads spawn children of an actor.
void ExpectForeignChildren(ActorRef parent);

// Any thread. No one if the actor has ended or has no parent.
ActorRef FindParent(ActorRef actor);
// The living children, oldest first. Any thread. Empty if the actor has ended.
std::vector<ActorRef> FindChildren(ActorRef actor);
// The living descendants of `root` and `root` itself, up to `limit`, parents before their children.
// Any thread. Actors that start or end meanwhile may be missing.
std::vector<ActorRef> FindLiving(ActorRef root, size_t limit);

// Tells an actor to stop: see ActorContext::Stop. Any thread.
void StopActorNow(ActorRef actor);
// The same for a child of `parent`, in the parent's turn. A parent that restarts waits for it.
void StopChild(ActorSlot& parent, ActorRef child);
void StopChildren(ActorSlot& parent);

// Sends a system message M{} to all living children but `except`. In the turn.
template <class M>
void TellChildren(ActorSlot& slot, const ActorSlot* except = nullptr) {
  const KinLock lock(slot);
  for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
    ActorSlot& child = ChildAt(at);
    at = child.kin.next_sibling;
    // The child may be ending at this moment, so its reference is read once. A child that has ended
    // (its generation is even) gets nothing: the slot would take the message for one to itself.
    const ActorRef ref = child.ref();
    if (&child != except && ref.generation() % 2 == 1) TellSystem(ref, MakeEnvelope<M>(ActorRef()));
  }
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_LINKS_H_
