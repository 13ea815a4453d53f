// RouterStrategy::RoundRobin: the routees take turns.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUND_ROBIN_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUND_ROBIN_H_

#include <cstdint>

namespace fraktor::inline v0::actor_internal {

// The routee for the message with this ticket. `size` is not 0.
[[gnu::always_inline]] inline uint32_t RoundRobinRoutee(uint32_t size, uint64_t ticket) {
  return static_cast<uint32_t>(ticket) % size;
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_ROUND_ROBIN_H_
