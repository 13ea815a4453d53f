// TopologyChanged: members have come, or gone, or are about to: an event of each node's own stream.
//
//   EventSubscription listening = system.events().Listen<TopologyChanged>([](const TopologyChanged& change) {
//     for (const Member& member : change.left) Forget(member.authority);
//   });
//   ClusterTopologyPtr members = Cluster::Of(system)->topology();  // as it is now: look after having begun to listen
//
// Each node publishes what it hears of, in the order of epochs; it may miss epochs in between, and then one event has
// all that has changed. A node that has lost its way to the store hears of nothing, until it has found it.
//
// Thread safety: a value.
#ifndef FRAKTOR_CLUSTER_IDENTITY_TOPOLOGY_CHANGED_H_
#define FRAKTOR_CLUSTER_IDENTITY_TOPOLOGY_CHANGED_H_

#include <vector>

#include "fraktor/actor/event/event_type.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct TopologyChanged {
  static constexpr EventInfo<TopologyChanged> kEvent{"TopologyChanged"};
  static constexpr bool kOwnsItsData = true;

  // Who is there now, and the epoch.
  ClusterTopologyPtr topology = nullptr;
  // A node that was started again has left and joined: it is another member.
  std::vector<Member> joined = {};
  std::vector<Member> left = {};
  // They hand over what they have, and leave then.
  std::vector<Member> leaving = {};
  Instant observed_at = {};
};

// What has changed between the two.
TopologyChanged ChangeOf(const ClusterTopology& before, ClusterTopologyPtr after, Instant observed_at);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_TOPOLOGY_CHANGED_H_
