#include "fraktor/actor/cell/internal/child_list.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace fraktor::inline v0::actor_internal {
namespace {

// Up to this many children, a walk is as fast as an index.
constexpr uint32_t kMaxWalked = 64;
// How many children go into an index while the lock is held.
constexpr size_t kIndexedAtOnce = 256;

ChildIndex::Child Read(ActorSlot& child) {
  const uint64_t number = NumberOf(child);
  return {.number = number & ActorKin::kMaxNumber,
          .is_named = (number & ActorKin::kIsNamed) != 0,
          .next_sibling = child.kin.next_sibling};
}

// No one if the child has ended and is about to be unlinked.
ActorRef LivingRef(ActorSlot& child) {
  const ActorRef ref = child.ref();
  return ref.generation() % 2 == 1 ? ref : ActorRef();
}

bool IsUnnamed(ActorSlot& child, uint64_t number) { return (NumberOf(child) & ~ActorKin::kIsRegistered) == number; }

ActorRef Walk(const ChildList& children, uint64_t number) {
  for (uint32_t at = children.first; at != ActorKin::kNone; at = ChildAt(at).kin.next_sibling) {
    if (IsUnnamed(ChildAt(at), number)) return LivingRef(ChildAt(at));
  }
  return {};
}

}  // namespace

ActorSlot* ParentSlotOf(const ActorSlot& slot) {
  // Acquire: pairs with the release in LinkChild, and in MailboxRegistry::Prepare.
  return std::atomic_ref<ActorSlot*>(const_cast<ActorSlot&>(slot).kin.parent).load(std::memory_order_acquire);
}

uint64_t NumberOf(const ActorSlot& slot) {
  // Acquire: pairs with the release in LinkChild, and in MailboxRegistry::Prepare.
  return std::atomic_ref<uint64_t>(const_cast<ActorSlot&>(slot).kin.number).load(std::memory_order_acquire);
}

ActorRef FindUnnamedChild(ActorRef parent, uint64_t number) {
  ActorSlot& slot = *parent.slot();
  std::unique_ptr<ChildIndex> made;
  for (;;) {
    uint32_t count = 0;
    {
      const KinLock lock(slot);
      if (!slot.IsAt(parent.generation()) || slot.kin.children == nullptr) return {};
      ChildList& children = *slot.kin.children;
      if (children.index == nullptr && children.count <= kMaxWalked) return Walk(children, number);
      if (children.index == nullptr && made != nullptr) {
        children.index = std::move(made);
        children.index->Begin(children.first);
      }
      if (children.index != nullptr) {
        ChildIndex& index = *children.index;
        const std::optional<uint32_t> found =
            index.Find(number, [number](uint32_t at) { return IsUnnamed(ChildAt(at), number); });
        if (found.has_value()) return LivingRef(ChildAt(*found));
        if (index.is_complete()) return {};
        index.Extend(kIndexedAtOnce, [](uint32_t at) { return Read(ChildAt(at)); });
        continue;
      }
      count = children.count;
    }
    // Without the lock: memory for many children takes a while.
    made = std::make_unique<ChildIndex>(count);
  }
}

std::unique_ptr<ChildIndex> AddToIndex(ChildList& children, ActorSlot& child) {
  children.index->OnAdded(ActorSlotTable::IndexOf(&child), Read(child));
  return children.index->IsUnused(children.count) ? std::move(children.index) : nullptr;
}

std::unique_ptr<ChildIndex> RemoveFromIndex(ChildList& children, ActorSlot& child) {
  children.index->OnRemoved(ActorSlotTable::IndexOf(&child), Read(child));
  return children.index->IsUnused(children.count) ? std::move(children.index) : nullptr;
}

}  // namespace fraktor::inline v0::actor_internal
