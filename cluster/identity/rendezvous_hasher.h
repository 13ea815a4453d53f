// RendezvousHasher: who of the members owns a grain. Every node finds the same one without asking anybody, and a member
// that joins takes its share from all others and moves nothing between them.
//
//   const Member* owner = RendezvousHasher::OwnerOf(*topology, key);       // null: nobody hosts the kind
//
// The owner is the member with the highest score, a mix of the key's and the authority's hash. The incarnation is not
// in it: a node that comes back gets its keys back. Scores are compared with stored ones by a test: they never change,
// since nodes of two versions must agree.
//
// Thread safety: functions of their arguments. Costs: some ns for each member that hosts the kind.
#ifndef FRAKTOR_CLUSTER_IDENTITY_RENDEZVOUS_HASHER_H_
#define FRAKTOR_CLUSTER_IDENTITY_RENDEZVOUS_HASHER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

class RendezvousHasher {
 public:
  static constexpr uint64_t Score(uint64_t key_hash, uint64_t authority_hash) {
    return MixBits(key_hash ^ authority_hash);
  }

  // The index of the best of `hosts`, which are in the order of their authorities: of two equal ones the first. There
  // is at least one.
  static size_t Pick(uint64_t key_hash, absl::Span<const ClusterTopology::Host> hosts) {
    size_t best = 0;
    uint64_t best_score = Score(key_hash, hosts[0].hash);
    for (size_t i = 1; i < hosts.size(); ++i) {
      const uint64_t score = Score(key_hash, hosts[i].hash);
      if (score > best_score) {
        best = i;
        best_score = score;
      }
    }
    return best;
  }

  static const Member* OwnerOf(const ClusterTopology& topology, const GrainKey& key) {
    const absl::Span<const ClusterTopology::Host> hosts = topology.HostsOf(key.kind());
    if (hosts.empty()) return nullptr;
    return &topology.members()[hosts[Pick(key.hash(), hosts)].member];
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_RENDEZVOUS_HASHER_H_
