// ClusterTopology: who was in the cluster at one moment, and who of them runs which kinds of grains. Never changes; the
// next moment is another one.
//
//   ClusterTopologyPtr topology = ClusterTopology::Make(epoch, {a, b, c}).value();
//   const Member* owner = RendezvousHasher::OwnerOf(*topology, key);
//   bool has_left = topology->FindId(entry.owner) == nullptr;      // that life of a node has ended
//
// Epochs grow with each change and come from the one place that decides on membership. So of two topologies it is known
// which is later, and who has the earlier one knows that there is something that he does not know.
//
// Thread safety: immutable; any thread.
#ifndef FRAKTOR_CLUSTER_IDENTITY_CLUSTER_TOPOLOGY_H_
#define FRAKTOR_CLUSTER_IDENTITY_CLUSTER_TOPOLOGY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "fraktor/cluster/identity/member.h"

namespace fraktor::inline v0 {

class ClusterTopology;
using ClusterTopologyPtr = std::shared_ptr<const ClusterTopology>;

class ClusterTopology {
 public:
  static constexpr size_t kMaxMembers = 10'000;

  // A member that may own grains of a kind.
  struct Host {
    uint64_t hash = 0;    // of its authority
    uint32_t member = 0;  // an index into members()
  };

  // Who hosts a kind: those that are up, by authority; at least one.
  struct Hosts {
    std::vector<Host> all = {};
    // Its grains run on the oldest of them: one of the hosts says so.
    bool is_on_oldest = false;
    uint32_t oldest = 0;  // an index into members()
  };

  // InvalidArgument for a member that CheckMember refuses, for two with one authority, and for more than kMaxMembers.
  static absl::StatusOr<ClusterTopologyPtr> Make(uint64_t epoch, std::vector<Member> members);
  // Nobody, epoch 0.
  static ClusterTopologyPtr Empty();

  uint64_t epoch() const { return epoch_; }
  // By authority.
  const std::vector<Member>& members() const { return members_; }
  bool empty() const { return members_.empty(); }

  // Null if there is none.
  const Member* FindId(std::string_view id) const;
  const Member* FindAuthority(std::string_view authority) const;

  // Null if nobody hosts the kind.
  const Hosts* FindHosts(std::string_view kind) const;
  // Those that are up and host the kind, by authority.
  absl::Span<const Host> HostsOf(std::string_view kind) const;

  // Over ids and states, the same on every node that knows the same.
  uint64_t hash() const { return hash_; }

 private:
  ClusterTopology() = default;

  uint64_t epoch_ = 0;
  std::vector<Member> members_;
  absl::flat_hash_map<std::string, uint32_t> by_id_;
  absl::flat_hash_map<std::string, Hosts> hosts_;
  uint64_t hash_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_CLUSTER_TOPOLOGY_H_
