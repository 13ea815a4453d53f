// PlacementDuties: lets a PlacementCoordinatorDriver do what only a member may, while a MembershipSession says that it
// is one.
//
//   auto duties = std::make_shared<PlacementDuties>(driver);
//   auto session = MembershipSession::Make({..., .provider = provider, .duties = duties}, candidate, {}).value();
//   provider->Listen([driver](ClusterTopologyPtr topology) { driver->UpdateTopology(std::move(topology)); });
//
// Thread safety: as MemberDuties.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class PlacementDuties final : public MemberDuties {
 public:
  explicit PlacementDuties(std::shared_ptr<PlacementCoordinatorDriver> driver) : driver_(std::move(driver)) {}

  void Begin(const MembershipTerm& term) override {
    // It was stopped before, so this can only fail for a member that no provider would give.
    if (driver_->StartMember(term.member).ok()) driver_->RenewMembership(term.valid_until);
  }
  void Renew(Instant valid_until) override { driver_->RenewMembership(valid_until); }
  Future<void> HandOver() override { return driver_->Leave(); }
  Future<void> End() override { return driver_->Stop(); }

 private:
  const std::shared_ptr<PlacementCoordinatorDriver> driver_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_
