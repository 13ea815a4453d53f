#include "fraktor/cluster/identity/cluster_topology.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/stable_hash.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::StatusOr<ClusterTopologyPtr> ClusterTopology::Make(uint64_t epoch, std::vector<Member> members) {
  if (members.size() > kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(members.size(), " members; ", kMaxMembers, " at most"));
  }
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.authority < b.authority; });
  auto topology = std::shared_ptr<ClusterTopology>(new ClusterTopology());
  topology->epoch_ = epoch;
  for (size_t i = 0; i < members.size(); ++i) {
    const Member& member = members[i];
    FRAKTOR_RETURN_IF_ERROR(CheckMember(member));
    if (i > 0 && members[i - 1].authority == member.authority) {
      return absl::InvalidArgumentError(absl::StrCat("members \"", members[i - 1].id(), "\" and \"", member.id(),
                                                     "\" have one authority: the older one has left"));
    }
    const auto index = static_cast<uint32_t>(i);
    std::string id = member.id();
    topology->hash_ = StableHash64(id, topology->hash_ + static_cast<uint64_t>(member.status));
    topology->by_id_.emplace(std::move(id), index);
    if (member.status != MemberStatus::kUp) continue;
    const Host host{.hash = StableHash64(member.authority), .member = index};
    for (const std::string& kind : member.kinds) {
      Hosts& hosts = topology->hosts_[kind];
      // A kind that is listed twice counts once.
      if (!hosts.all.empty() && hosts.all.back().member == index) continue;
      if (hosts.all.empty() || member.incarnation < members[hosts.oldest].incarnation) hosts.oldest = index;
      hosts.all.push_back(host);
    }
    for (const std::string& kind : member.oldest_kinds) topology->hosts_[kind].is_on_oldest = true;
  }
  topology->members_ = std::move(members);
  return ClusterTopologyPtr(std::move(topology));
}

ClusterTopologyPtr ClusterTopology::Empty() { return Make(0, {}).value(); }

const Member* ClusterTopology::FindId(std::string_view id) const {
  const auto found = by_id_.find(ToAbsl(id));
  return found == by_id_.end() ? nullptr : &members_[found->second];
}

const Member* ClusterTopology::FindAuthority(std::string_view authority) const {
  const auto found = std::lower_bound(members_.begin(), members_.end(), authority,
                                      [](const Member& member, std::string_view a) { return member.authority < a; });
  return found == members_.end() || found->authority != authority ? nullptr : &*found;
}

const ClusterTopology::Hosts* ClusterTopology::FindHosts(std::string_view kind) const {
  const auto found = hosts_.find(ToAbsl(kind));
  return found == hosts_.end() ? nullptr : &found->second;
}

absl::Span<const ClusterTopology::Host> ClusterTopology::HostsOf(std::string_view kind) const {
  const Hosts* const hosts = FindHosts(kind);
  if (hosts == nullptr) return {};
  return hosts->all;
}

}  // namespace fraktor::inline v0
