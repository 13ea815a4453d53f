// RouterStrategy::SmallestMailbox: the routee with the least load.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_SMALLEST_MAILBOX_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_SMALLEST_MAILBOX_H_

#include <cstdint>

#include "fraktor/actor/router/internal/inline_routee_load.h"
#include "fraktor/actor/router/internal/routing_table.h"

namespace fraktor::inline v0::actor_internal {

// The search begins at a routee that depends on the ticket, so that equally busy ones take turns.
// It ends at the first idle one, or when the snapshot is being reused: then Read calls again.
// `size` is not 0.
inline uint32_t LeastBusyRoutee(const RoutingTable::View& view, uint32_t size, uint64_t ticket) {
  const auto first = static_cast<uint32_t>(ticket);
  uint32_t best = first % size;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < size && least > 0; ++i) {
    const uint32_t at = (first + i) % size;
    const RoutingTable::RawRoutee routee = view.routee(at);
    // A torn routee leads anywhere; a whole one leads to its slot, which is never unmapped.
    if (!view.IsWhole()) break;
    const uint64_t load = InlineRouteeLoad(routee.ref());
    if (load < least) {
      least = load;
      best = at;
    }
  }
  return best;
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_SMALLEST_MAILBOX_H_
