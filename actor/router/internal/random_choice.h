// RouterStrategy::Random: each routee is equally likely.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_RANDOM_CHOICE_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_RANDOM_CHOICE_H_

#include <cstdint>

namespace fraktor::inline v0::actor_internal {

// Maps a random number to a routee without a division. `size` is not 0.
[[gnu::always_inline]] inline uint32_t RandomRoutee(uint32_t size, uint64_t random) {
  return static_cast<uint32_t>((random >> 32) * size >> 32);
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_RANDOM_CHOICE_H_
