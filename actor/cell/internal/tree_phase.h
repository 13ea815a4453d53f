// TreePhase: how far an actor has come in restarting or ending (ActorSlot::phase). Called by the
// classes of the tree.
#ifndef FRAKTOR_ACTOR_CELL_INTERNAL_TREE_PHASE_H_
#define FRAKTOR_ACTOR_CELL_INTERNAL_TREE_PHASE_H_

#include <atomic>
#include <cstdint>

#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

enum TreePhase : uint8_t {
  kLiving,
  kStoppingChildren,  // The actor has told its children to stop, and waits for their end.
  kRestarting,        // PreRestart has run. The actor waits for the children that it stopped.
  kEnding,            // All children have ended. PostStop runs, or has run.
};

// In the actor's turn, or with its KinLock. Acquire: pairs with the release in SetPhaseLocked.
inline uint8_t PhaseOf(const ActorSlot& slot) { return slot.phase.load(std::memory_order_acquire); }

// In the actor's turn, with its KinLock. Release: pairs with the acquire in PhaseOf.
inline void SetPhaseLocked(ActorSlot& slot, uint8_t phase) { slot.phase.store(phase, std::memory_order_release); }

// In the actor's turn, without its KinLock.
inline void SetPhase(ActorSlot& slot, uint8_t phase) {
  const KinLock lock(slot);
  SetPhaseLocked(slot, phase);
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CELL_INTERNAL_TREE_PHASE_H_
