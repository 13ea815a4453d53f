// ChildIndex: finds one of many children by the number of its automatic name.
//
// FindUnnamedChild makes an index without the lock, since that allocates, and then calls Begin,
// Extend until the index is complete, and Find, with the lock. It may release the lock between two
// calls of Extend.
//
// Most parents have no index. The first lookup among many children makes one, by one walk over the
// children; later lookups take one probe. The parent adds new children to its index and removes
// those that leave. An index is destroyed if as many children came or went since its last lookup as
// the parent has. So walks cost a constant time for each child, on average. An index takes 11 to 22
// bytes per child.
//
// An index is built in steps, so that no thread waits for the lock during a long walk. Each step
// adds the next children. New children are linked at the front, behind the walk.
//
// Thread safety: the KinLock of the parent guards the index.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_INDEX_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fraktor/actor/registry/internal/path_index.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

class ChildIndex {
 public:
  // The fields of a child that the index needs.
  struct Child {
    uint64_t number;
    bool is_named;  // A child with a name of its own is not in the index.
    uint32_t next_sibling;
  };

  // Has room for `expected` children. It grows if there are more.
  explicit ChildIndex(size_t expected) : slots_(expected) {}

  // The list begins with `newest`. None of the children is in the index yet.
  void Begin(uint32_t newest) { rest_ = newest; }

  bool is_complete() const { return rest_ == ActorKin::kNone; }

  // Adds up to `most` further children. `read` maps a slot to a Child.
  template <class Read>
  void Extend(size_t most, Read read) {
    for (; most > 0 && !is_complete(); --most) {
      const Child child = read(rest_);
      if (!child.is_named) slots_.Insert(HashOf(child.number), rest_);
      rest_ = child.next_sibling;
    }
  }

  // The slot of the child of that number that `accept` accepts: other numbers may have the same
  // hash.
  template <class Accept>
  std::optional<uint32_t> Find(uint64_t number, Accept accept) {
    changes_ = 0;
    return slots_.Find(HashOf(number), accept);
  }

  // A child has been linked before all others.
  void OnAdded(uint32_t slot, const Child& child) {
    ++changes_;
    if (!child.is_named) slots_.Insert(HashOf(child.number), slot);
  }
  // A child is about to be unlinked.
  void OnRemoved(uint32_t slot, const Child& child) {
    ++changes_;
    if (rest_ == slot) rest_ = child.next_sibling;
    // Erases nothing if the walk has not reached the child.
    if (!child.is_named) slots_.Erase(HashOf(child.number), slot);
  }

  // Whether the index has seen no lookup for so long that keeping it costs more than another walk.
  bool IsUnused(size_t children) const { return changes_ > std::max(kMinChanges, children); }

 private:
  static constexpr size_t kMinChanges = 1024;

  // Numbers are consecutive. The multiplication scatters them, the upper half best.
  static uint64_t HashOf(uint64_t number) { return number * 0x9e3779b97f4a7c15u >> 32; }

  path_internal::PathIndex slots_;
  // The first child that the walk has not reached.
  uint32_t rest_ = ActorKin::kNone;
  // How many children came or went since the last lookup.
  size_t changes_ = 0;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_CHILD_INDEX_H_
