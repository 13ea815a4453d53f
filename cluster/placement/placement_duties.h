// PlacementDuties: lets a PlacementCoordinatorDriver do what only a member may, while a MembershipSession says that it
// is one.
//
//   auto duties = std::make_shared<PlacementDuties>(driver);
//   auto session = MembershipSession::Make({toolbox, executor, provider, duties}, candidate, {}).value();
//   provider->Listen([driver](ClusterTopologyPtr topology) { driver->UpdateTopology(std::move(topology)); });
//
// A member that has handed over and left is a client from then on.
//
// A grain that does not end, since its handler waits, keeps nobody from leaving or beginning anew. Its key stays busy: who
// calls it here waits until it has ended, and other nodes activate it anew.
//
// Thread safety: as MemberDuties.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class PlacementDuties final : public MemberDuties {
 public:
  // `say_farewell` as SayFarewell, with the id of the member; null: nobody is told.
  explicit PlacementDuties(std::shared_ptr<PlacementCoordinatorDriver> driver,
                           std::function<Future<void>(std::string member)> say_farewell = nullptr)
      : driver_(std::move(driver)), say_farewell_(std::move(say_farewell)) {}

  absl::Status CanBegin() override {
    const PlacementSnapshot left = driver_->Snapshot();
    if (left.activations == 0 && left.waiting_stops == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(std::max(left.activations, left.waiting_stops), " grains of \"", left.self,
                     "\" have not been told to stop yet, since too many do not stop (PlacementOptions::max_stops)"));
  }
  void Begin(const MembershipTerm& term) override {
    member_ = term.member.id();
    // It was stopped before, and CanBegin, so this can only fail for a member that no provider would give.
    if (driver_->StartMember(term.member).ok()) driver_->RenewMembership(term.valid_until);
  }
  void Renew(Instant valid_until) override { driver_->RenewMembership(valid_until); }
  Future<void> HandOver() override {
    has_handed_over_ = true;
    return driver_->Leave();
  }
  Future<void> End() override {
    Future<void> ended = driver_->Stop();
    // A node that leaves goes on as a client: it may call, and what others still send to it finds its way. What does not
    // end goes on being stopped.
    if (has_handed_over_) driver_->StartClient().IgnoreError();
    return ended;
  }

  Future<void> SayFarewell() override {
    return has_handed_over_ && say_farewell_ != nullptr ? say_farewell_(member_) : MakeReadyFuture();
  }

  void Await(const absl::Status& why) override { driver_->SetWhyStopped(std::string(why.message())); }

 private:
  const std::shared_ptr<PlacementCoordinatorDriver> driver_;
  const std::function<Future<void>(std::string member)> say_farewell_;
  std::string member_;
  bool has_handed_over_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_DUTIES_H_
