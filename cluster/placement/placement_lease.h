// PlacementLease: the right to decide about one grain, for a while.
//
//   Future<PlacementLease> acquiring = lock.TryAcquire(GrainKey("cart", "alice"), self.id(), now);
//   ...
//   if (now < lease.expires_at) Store(lease.key, lease.token);
//   lock.Release(lease);
//
// Thread safety: a value.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LEASE_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LEASE_H_

#include <compare>
#include <cstdint>
#include <string>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// Which lookup a command belongs to, and its result. From 1.
struct PlacementRequestId {
  uint64_t value = 0;
  friend auto operator<=>(const PlacementRequestId&, const PlacementRequestId&) = default;
};

struct PlacementLease {
  GrainKey key = {};
  // The id of the member that holds it.
  std::string owner = {};
  // On the clock of this node, counted from before the lock was asked for: so it is over here before it is over there.
  Instant expires_at = {};
  // The fencing token: each acquisition of this key has a higher one than all before, however those ended. From 1.
  uint64_t token = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LEASE_H_
