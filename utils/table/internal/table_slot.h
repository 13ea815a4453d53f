// TableSlot: the base of every class that is kept in a SlotTable. It holds the generation.
//
// A thread that has the address of a slot may read its generation at any time, without knowing the
// kind of the slot and its current user: see slot_table.h.
#ifndef FRAKTOR_UTILS_TABLE_INTERNAL_TABLE_SLOT_H_
#define FRAKTOR_UTILS_TABLE_INTERNAL_TABLE_SLOT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::utils_internal {

template <typename T, size_t kChunkBytes, typename Atomics>
class SlotTable;
template <typename T, size_t kChunkBytes, typename Atomics>
class SlotPool;

// It has four bytes; the members of the derived class follow directly.
template <typename Atomics = StdAtomics>
class BasicTableSlot {
 public:
  // True if the slot is still in the use that `generation` names. Relaxed: enough to reject a stale
  // reference early, and for a thread that holds the slot by other means. A thread that goes on to
  // read the slot's ordinary members calls SlotTable::Resolve instead.
  bool IsAt(uint32_t generation) const { return generation_.load(std::memory_order_relaxed) == generation; }

  // The current generation: odd in use, even free.
  uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

 protected:
  BasicTableSlot() = default;

 private:
  template <typename, size_t, typename>
  friend class SlotTable;
  template <typename, size_t, typename>
  friend class SlotPool;

  // Only the thread that allocates or frees the slot writes it, one thread at a time. So a load and
  // a store are enough, except in TryDeactivate. The release of Activate pairs with the acquire of
  // Resolve.
  typename Atomics::template Atomic<uint32_t> generation_{0};
};

using TableSlot = BasicTableSlot<>;

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_TABLE_INTERNAL_TABLE_SLOT_H_
