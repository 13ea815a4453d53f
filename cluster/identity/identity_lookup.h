// IdentityLookup: answers where a grain is. What callers of grains ask before they send.
//
//   absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, toolbox.Now());
//   if (where.ok()) Send(**where, message);
//   else if (IsRetryableLookup(where.status())) TryAgainLater();
//
// Extension point: PartitionIdentityLookup (cluster/placement) is the one that comes with this.
//
// Thread safety: each implementation says.
#ifndef FRAKTOR_CLUSTER_IDENTITY_IDENTITY_LOOKUP_H_
#define FRAKTOR_CLUSTER_IDENTITY_IDENTITY_LOOKUP_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class IdentityLookup {
 public:
  virtual ~IdentityLookup() = default;

  // Takes part as a member that runs the kinds that `self` names. FailedPrecondition if it takes part already.
  virtual absl::Status SetupMember(const Member& self) = 0;
  // Takes part as one that only calls: it owns nothing.
  virtual absl::Status SetupClient() = 0;

  // Where the grain is, as far as it can be said without waiting. LookupError::kPending while it is being found out;
  // asking again comes to an end.
  virtual absl::StatusOr<PlacementResolutionPtr> Resolve(const GrainKey& key, Instant now) = 0;

  // Decides later calls. What is known of members that have left is forgotten. An older one than the last is ignored.
  virtual void UpdateTopology(ClusterTopologyPtr topology) = 0;

  // What was answered has proved wrong: a message was not delivered, or not answered in time. Harmless if it is not
  // known.
  virtual void RemovePid(const GrainKey& key, std::string_view pid) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_IDENTITY_LOOKUP_H_
