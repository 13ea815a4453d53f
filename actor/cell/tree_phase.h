// ActorSlot::phase, as the tree uses it.
#ifndef FRAKTOR_ACTOR_CELL_TREE_PHASE_H_
#define FRAKTOR_ACTOR_CELL_TREE_PHASE_H_

#include <atomic>
#include <cstdint>

#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

enum TreePhase : uint8_t {
  kLiving,
  kStoppingChildren,  // They have been told.
  kRestarting,        // Waits for some of its children to end.
  kEnding,            // All children have ended; its last hook runs.
};

// By the holder, or by whoever has the lock. The acquire pairs with the release of whoever has written it: see
// ActorSlot::phase.
inline uint8_t PhaseOf(const ActorSlot& slot) { return slot.phase.load(std::memory_order_acquire); }

// By the holder, with the lock.
inline void SetPhaseLocked(ActorSlot& slot, uint8_t phase) { slot.phase.store(phase, std::memory_order_release); }

// By the holder.
inline void SetPhase(ActorSlot& slot, uint8_t phase) {
  const KinLock lock(slot);
  SetPhaseLocked(slot, phase);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_TREE_PHASE_H_
