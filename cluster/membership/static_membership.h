// StaticMembership: the members are a list that everybody has. Nobody joins who is not on it, and nobody is ever taken
// for dead: grains of a node that is away wait until it comes back.
//
//   auto membership = StaticMembership::Make({{.authority = "10.0.0.7:2552", .kinds = {"account"}},
//                                             {.authority = "10.0.0.8:2552", .kinds = {"account"}}}).value();
//
// All have incarnation 1, whichever life of the node it is. A record that a former life has left is found by whoever is
// sent to the node for it, and replaced.
//
// Thread safety: as MembershipProvider.
#ifndef FRAKTOR_CLUSTER_MEMBERSHIP_STATIC_MEMBERSHIP_H_
#define FRAKTOR_CLUSTER_MEMBERSHIP_STATIC_MEMBERSHIP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/topology_board.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class StaticMembership final : public MembershipProvider {
 public:
  // InvalidArgument for a list that ClusterTopology::Make refuses.
  static absl::StatusOr<std::unique_ptr<StaticMembership>> Make(const std::vector<MemberCandidate>& members);

  // kNotListed, or FailedPrecondition if it hosts other kinds than the list says: others would send it what it cannot
  // run.
  Future<MembershipTerm> Join(MemberCandidate candidate, Instant now) override;
  Future<MembershipTerm> Renew(std::string member_id, Instant now) override;
  // Unimplemented: a list does not change.
  Future<void> BeginLeaving(std::string member_id) override;
  Future<void> Leave(std::string member_id) override;
  MembershipListenerId Listen(Listener listener) override;
  void StopListening(MembershipListenerId id) override;

 private:
  explicit StaticMembership(ClusterTopologyPtr topology);

  const ClusterTopologyPtr topology_;
  TopologyBoard board_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMBERSHIP_STATIC_MEMBERSHIP_H_
