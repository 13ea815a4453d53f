// RouterStrategy::SmallestMailbox: the routee with the least load.
#ifndef FRAKTOR_ACTOR_ROUTER_SMALLEST_MAILBOX_H_
#define FRAKTOR_ACTOR_ROUTER_SMALLEST_MAILBOX_H_

#include <cstdint>

#include "fraktor/actor/router/routee_load.h"
#include "fraktor/actor/router/routing_table.h"

namespace fraktor::inline v0 {

// The search begins at a routee that depends on the ticket, so that equally busy ones take turns.
// It ends at the first idle one. `size` is not 0.
inline uint32_t LeastBusyRoutee(const RoutingTable::View& view, uint32_t size, uint64_t ticket) {
  const auto first = static_cast<uint32_t>(ticket);
  uint32_t best = first % size;
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < size && least > 0; ++i) {
    const uint32_t at = (first + i) % size;
    const uint64_t load = RouteeLoad(view.routee(at));
    if (load < least) {
      least = load;
      best = at;
    }
  }
  return best;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ROUTER_SMALLEST_MAILBOX_H_
