#include "fraktor/actor/cell/internal/child_links.h"

#include <algorithm>

#include "fraktor/actor/cell/internal/tree_signals.h"

namespace fraktor::inline v0::actor_internal {

ActorRef UnlinkChild(ActorSlot& parent, ActorSlot& child) {
  const ActorKin& gone = child.kin;
  std::unique_ptr<ChildIndex> unused;  // Destroyed without the lock.
  const KinLock lock(parent);
  ChildList& siblings = *parent.kin.children;
  if (siblings.index != nullptr) [[unlikely]]
    unused = RemoveFromIndex(siblings, child);
  (gone.previous_sibling == ActorKin::kNone ? siblings.first : ChildAt(gone.previous_sibling).kin.next_sibling) =
      gone.next_sibling;
  if (gone.next_sibling != ActorKin::kNone) {
    ChildAt(gone.next_sibling).kin.previous_sibling = gone.previous_sibling;
  }
  --siblings.count;
  bool is_awaited = siblings.count == 0;
  if (std::exchange(child.leaving, false)) is_awaited = --parent.leaving_children == 0 || is_awaited;
  return is_awaited && PhaseOf(parent) != kLiving ? parent.ref() : ActorRef();
}

void FreeChildList(NodeCache& cache, ActorSlot& slot) {
  if (HasNeverHadChildren(slot)) return;
  ChildList* const list = slot.kin.children;
  {
    const KinLock lock(slot);
    // Relaxed: pairs with HasNeverHadChildren. All other readers hold the lock.
    std::atomic_ref<ChildList*>(slot.kin.children).store(nullptr, std::memory_order_relaxed);
  }
  list->~ChildList();
  cache.Free(ChildList::kNodeClass, list);
}

void ExpectForeignChildren(ActorRef parent) {
  ChildListMemory memory(NodeCache::OfThisThread(), *parent.slot());
  const KinLock lock(*parent.slot());
  ChildList& children = memory.GiveTo(*parent.slot());
  if (children.next_number == 0) children.next_number = 1;
}

ActorRef FindParent(ActorRef actor) {
  if (!actor.IsActor() || !actor.IsCurrent()) return {};
  const ActorSlot* const parent = ParentSlotOf(*actor.slot());
  const ActorRef ref = parent == nullptr ? ActorRef() : parent->RefAt(parent->generation());
  // A living actor has a living parent, so the values above belong to these two.
  return actor.IsCurrent() ? ref : ActorRef();
}

std::vector<ActorRef> FindChildren(ActorRef actor) {
  std::vector<ActorRef> children;
  if (!actor.IsActor()) return children;
  ActorSlot& slot = *actor.slot();
  const KinLock lock(slot);
  // Another actor may have taken the slot before this thread got the lock.
  if (!slot.IsAt(actor.generation())) return children;
  children.reserve(CountChildren(slot));
  for (uint32_t at = NewestChild(slot); at != ActorKin::kNone;) {
    ActorSlot& child = ChildAt(at);
    at = child.kin.next_sibling;
    const ActorRef ref = child.ref();
    if (ref.generation() % 2 == 1) children.push_back(ref);
  }
  // The list begins with the newest child.
  std::reverse(children.begin(), children.end());
  return children;
}

std::vector<ActorRef> FindLiving(ActorRef root, size_t limit) {
  std::vector<ActorRef> found;
  if (!root.IsCurrent()) return found;
  found.push_back(root);
  for (size_t at = 0; at < found.size() && found.size() < limit; ++at) {
    for (const ActorRef child : FindChildren(found[at])) {
      if (found.size() >= limit) break;
      found.push_back(child);
    }
  }
  return found;
}

void StopActorNow(ActorRef actor) { TellSystem(actor, MakeEnvelope<StopActor>(ActorRef())); }

void StopChild(ActorSlot& parent, ActorRef child) {
  {
    const KinLock lock(parent);
    ActorSlot& slot = *child.slot();
    if (!slot.IsAt(child.generation()) || ParentSlotOf(slot) != &parent) return;
    if (!slot.leaving) {
      slot.leaving = true;
      ++parent.leaving_children;
    }
  }
  StopActorNow(child);
}

void StopChildren(ActorSlot& parent) {
  for (const ActorRef child : FindChildren(parent.ref())) StopChild(parent, child);
}

}  // namespace fraktor::inline v0::actor_internal
