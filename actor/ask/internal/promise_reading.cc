#include "fraktor/actor/ask/internal/promise_reading.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

ActorRef LivingTarget(const PromiseSlot::Target& target) {
  // Without the flags of its references.
  const ActorRef ref(target.slot, target.low_word);
  return !target.is_remote && ref.IsCurrent() ? ref : ActorRef();
}

}  // namespace fraktor::inline v0::actor_internal
