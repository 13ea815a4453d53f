// PartitionIdentityLookup: the identity lookup that spreads grains over members by rendezvous hashing and activates
// each under a lock.
//
//   PartitionIdentityLookup lookup(driver);
//   FRAKTOR_RETURN_IF_ERROR(lookup.SetupMember(self));
//   lookup.UpdateTopology(topology);
//   absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, toolbox.Now());
//
// A cached answer costs a lock and a probe of a table. Who wants to wait asks the driver.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PARTITION_IDENTITY_LOOKUP_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PARTITION_IDENTITY_LOOKUP_H_

#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/identity_lookup.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class PartitionIdentityLookup final : public IdentityLookup {
 public:
  explicit PartitionIdentityLookup(std::shared_ptr<PlacementCoordinatorDriver> driver) : driver_(std::move(driver)) {}

  absl::Status SetupMember(const Member& self) override { return driver_->StartMember(self); }
  absl::Status SetupClient() override { return driver_->StartClient(); }
  absl::StatusOr<PlacementResolutionPtr> Resolve(const GrainKey& key, Instant now) override {
    return driver_->TryResolve(key, now);
  }
  void UpdateTopology(ClusterTopologyPtr topology) override { driver_->UpdateTopology(std::move(topology)); }
  void RemovePid(const GrainKey& key, std::string_view pid) override { driver_->RemovePid(key, pid); }

  const std::shared_ptr<PlacementCoordinatorDriver>& driver() const { return driver_; }

 private:
  const std::shared_ptr<PlacementCoordinatorDriver> driver_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PARTITION_IDENTITY_LOOKUP_H_
