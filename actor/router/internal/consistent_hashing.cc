#include "fraktor/actor/router/internal/consistent_hashing.h"

#include <algorithm>
#include <cstddef>

namespace fraktor::inline v0::actor_internal {

std::vector<uint64_t> MakeRing(const ActorLifecycle& lifecycle, const std::vector<ActorRef>& routees, int per_routee) {
  std::vector<uint64_t> ring;
  ring.reserve(routees.size() * static_cast<size_t>(per_routee));
  for (size_t i = 0; i < routees.size(); ++i) {
    const uint64_t base = HashOfRoutingKey(lifecycle.PathOf(routees[i]));
    for (int point = 0; point < per_routee; ++point) {
      const uint64_t hash = HashOfRoutingKey(base + static_cast<uint64_t>(point) * 0x9e3779b97f4a7c15);
      ring.push_back((hash & ~uint64_t{UINT32_MAX}) | i);
    }
  }
  std::sort(ring.begin(), ring.end());
  return ring;
}

}  // namespace fraktor::inline v0::actor_internal
