#include "fraktor/cluster/identity/topology_changed.h"

#include <utility>

namespace fraktor::inline v0 {

TopologyChanged ChangeOf(const ClusterTopology& before, ClusterTopologyPtr after, Instant observed_at) {
  TopologyChanged change{.observed_at = observed_at};
  for (const Member& member : before.members()) {
    if (after->FindId(member.id()) == nullptr) change.left.push_back(member);
  }
  for (const Member& member : after->members()) {
    const Member* const known = before.FindId(member.id());
    if (known == nullptr) change.joined.push_back(member);
    if (member.status == MemberStatus::kLeaving && (known == nullptr || known->status != MemberStatus::kLeaving)) {
      change.leaving.push_back(member);
    }
  }
  change.topology = std::move(after);
  return change;
}

}  // namespace fraktor::inline v0
