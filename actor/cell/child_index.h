// ChildIndex: finds one of many children by the number of its automatic name.
//
//   auto index = std::make_unique<ChildIndex>(count);          // without the lock: it allocates
//   index->Begin(newest);                                      // with the lock from here on
//   while (!index->is_complete()) index->Extend(256, read);    // may let go of the lock between two calls
//   index->Find(27, accept)                                    // the slot of "$B"
//
// Most parents have none. The first lookup among many children makes an index, which takes one walk over them; later
// lookups take one probe. While there is an index, the parent adds new children to it and removes those that leave. An
// index that nobody has used while as many children came or went as there are is given up, so the walks cost a constant
// time for each child, on average. It takes 11 to 22 bytes per child.
//
// An index is built in steps, so that nobody waits for the lock during a long walk. A step adds the next children to the
// index. Children that come meanwhile are linked before those that the walk has still to see.
//
// Thread safety: the KinLock of the parent guards it.
#ifndef FRAKTOR_ACTOR_CELL_CHILD_INDEX_H_
#define FRAKTOR_ACTOR_CELL_CHILD_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fraktor/actor/registry/path_index.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

class ChildIndex {
 public:
  // What Extend reads of a child.
  struct Child {
    uint64_t number;
    bool is_named;  // It has a name of its own, and is not in the index.
    uint32_t next_sibling;
  };

  // With room for so many children. They may become more.
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

  // The slot of the child of that number which `accept` takes: numbers of other children may have the same hash.
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
    // A child that the walk has not seen yet is not there.
    if (!child.is_named) slots_.Erase(HashOf(child.number), slot);
  }

  // Whether nobody has looked for a child for so long that the next walk costs less than going on.
  bool IsUnused(size_t children) const { return changes_ > std::max(kMinChanges, children); }

 private:
  static constexpr size_t kMinChanges = 1024;

  // Numbers are consecutive. Multiplying scatters them; the upper half is scattered best.
  static uint64_t HashOf(uint64_t number) { return number * 0x9e3779b97f4a7c15u >> 32; }

  path_internal::PathIndex slots_;
  // The first child that is not in the index, and all that follow it.
  uint32_t rest_ = ActorKin::kNone;
  // Children that came or went since the last lookup.
  size_t changes_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_CHILD_INDEX_H_
