// MemoryMembership: the members of a cluster of one process: for tests, and for nodes that are actor systems of one
// program.
//
//   auto membership = std::make_shared<MemoryMembership>(toolbox, MemberTableOptions{.term = absl::Seconds(10)});
//
// Futures are ready when they are returned. Members whose term is over are removed at that moment.
//
// Thread safety: as MembershipProvider. The toolbox must outlive it.
#ifndef FRAKTOR_CLUSTER_MEMORY_MEMORY_MEMBERSHIP_H_
#define FRAKTOR_CLUSTER_MEMORY_MEMORY_MEMBERSHIP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/membership/member_table.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class MemoryMembership final : public MembershipProvider {
 public:
  explicit MemoryMembership(RuntimeToolbox& toolbox, const MemberTableOptions& options = {});
  ~MemoryMembership() override;

  Future<MembershipTerm> Join(MemberCandidate candidate, Instant now) override;
  Future<MembershipTerm> Renew(std::string member_id, Instant now) override;
  Future<void> BeginLeaving(std::string member_id) override;
  Future<void> Leave(std::string member_id) override;
  MembershipListenerId Listen(Listener listener) override;
  void StopListening(MembershipListenerId id) override;

  ClusterTopologyPtr topology() const;

 private:
  struct Floor;  // shared with the timer

  const std::shared_ptr<Floor> floor_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMORY_MEMORY_MEMBERSHIP_H_
