// TopologyBoard: tells listeners of each topology, in order, without holding a lock. What providers are made with.
//
//   board.Post(topology);                          // under the provider's own lock
//   board.Deliver();                               // without it
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_MEMBERSHIP_TOPOLOGY_BOARD_H_
#define FRAKTOR_CLUSTER_MEMBERSHIP_TOPOLOGY_BOARD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class TopologyBoard {
 public:
  using Listener = MembershipProvider::Listener;

  // The listener is told of `current` by the next Deliver.
  MembershipListenerId Add(Listener listener, ClusterTopologyPtr current);
  void Remove(MembershipListenerId id);

  void Post(ClusterTopologyPtr topology);
  // Tells all that is posted. One thread does it at a time; others return at once, and theirs is told too.
  void Deliver();

 private:
  struct Message {
    uint64_t only_to = 0;  // 0: everybody
    ClusterTopologyPtr topology;
  };

  Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);
  bool is_delivering_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMBERSHIP_TOPOLOGY_BOARD_H_
