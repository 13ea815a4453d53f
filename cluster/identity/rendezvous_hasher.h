// RendezvousHasher: who of the members owns a grain. Every node finds the same one without asking anybody, and a member
// that joins takes its share from all others and moves nothing between them.
//
//   const Member* owner = RendezvousHasher::OwnerOf(*topology, key);       // null: nobody hosts the kind
//
// Kinds that run on the oldest member (Member::oldest_kinds) are not hashed: the owner of all their grains is that one.
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
    const ClusterTopology::Hosts* const hosts = topology.FindHosts(key.kind());
    if (hosts == nullptr) return nullptr;
    if (hosts->is_on_oldest) return &topology.members()[hosts->oldest];
    return &topology.members()[hosts->all[Pick(key.hash(), hosts->all)].member];
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_RENDEZVOUS_HASHER_H_
