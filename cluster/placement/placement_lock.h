// PlacementLock: of all nodes that want to activate a grain, one may. An extension point.
//
//   Future<PlacementLease> acquiring = lock.TryAcquire(key, self.id(), toolbox.Now());
//
// A lease is exclusive and ends by itself: one that is over is void, whether or not it was released. Since a node
// cannot know that its own lease ended while it was asleep, the lease has a fencing token, which only grows, and what
// is done under the lease brings the token along (ActivationStorage::Store, a journal's OpenWriter).
//
// Fits what has leases of its own: in etcd the lock is a key with a lease, the token the revision that created it.
//
// Thread safety: any thread. Every call returns at once and answers by a future. The lock must outlive its calls, not
// its futures.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LOCK_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LOCK_H_

#include <string>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class PlacementLock {
 public:
  virtual ~PlacementLock() = default;

  // PlacementLockError::kHeld if somebody has it, also the same owner by an earlier call: it does not wait. `now` is
  // the caller's clock, from which the lease's end is counted. Any other error: it may be held in vain until its end.
  virtual Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) = 0;

  // Before its end. kLost if it does not hold any more, which is as good.
  virtual Future<void> Release(PlacementLease lease) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_LOCK_H_
