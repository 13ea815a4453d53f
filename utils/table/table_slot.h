// TableSlot: the base of everything that is kept in a SlotTable. It holds the generation.
//
// A thread that has the address of a slot may look at its generation at any time, whatever kind of slot it is and
// whoever uses it now: see slot_table.h.
#ifndef FRAKTOR_UTILS_TABLE_TABLE_SLOT_H_
#define FRAKTOR_UTILS_TABLE_TABLE_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

template <typename T, size_t kChunkBytes, typename Atomics>
class SlotTable;
template <typename T, size_t kChunkBytes, typename Atomics>
class SlotPool;

// What is kept in a table derives from this. Four bytes; the members of the derived class follow at once.
template <typename Atomics = StdAtomics>
class BasicTableSlot {
 public:
  // True if the slot is still in the use that `generation` names. Relaxed: enough to refuse what is stale early, and
  // for a thread that holds the slot by other means. Who wants to read the slot's ordinary members on the strength of
  // this calls SlotTable::Resolve.
  bool IsAt(uint32_t generation) const { return generation_.load(std::memory_order_relaxed) == generation; }

  // The generation now: odd in use, even free.
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

 protected:
  BasicTableSlot() = default;

 private:
  template <typename, size_t, typename>
  friend class SlotTable;
  template <typename, size_t, typename>
  friend class SlotPool;

  // Written only by whoever allocates or frees the slot, one thread at a time; so a load and a store do, no
  // read-modify-write. The store of Activate releases what was prepared before, and pairs with the acquire of Resolve.
  typename Atomics::template Atomic<uint32_t> generation_{0};
};

using TableSlot = BasicTableSlot<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TABLE_TABLE_SLOT_H_
