// InlineRouteeLoad: RouteeLoad without a call, for routers, which read the load of each routee.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_INLINE_ROUTEE_LOAD_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_INLINE_ROUTEE_LOAD_H_

#include <atomic>
#include <cstdint>

#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/routee_load.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

inline uint64_t InlineRouteeLoad(ActorRef actor) {
  if (!MayLive(actor)) return kLoadOfEnded;
  if (!actor.IsActor()) return kUnknownLoad;
  const ActorSlot& slot = *actor.slot();
  if (slot.mailbox.inbox.IsIdle()) return 0;
  // Acquire: pairs with the release that publishes the limits of a mailbox.
  if ((actor.word() & ActorRef::kLimited) != 0) return 1 + slot.limits.load(std::memory_order_acquire)->depth();
  return slot.mailbox.inbox.HasNodes() ? 2 : 1;
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_INLINE_ROUTEE_LOAD_H_
