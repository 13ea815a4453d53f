#include "fraktor/cluster/membership/topology_board.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace fraktor::inline v0 {

MembershipListenerId TopologyBoard::Add(Listener listener, ClusterTopologyPtr current) {
  MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  listeners_.emplace(id, std::move(listener));
  messages_.push_back(Message{.only_to = id, .topology = std::move(current)});
  return MembershipListenerId{id};
}

void TopologyBoard::Remove(MembershipListenerId id) {
  MutexLock lock(mutex_);
  listeners_.erase(id.value);
}

void TopologyBoard::Post(ClusterTopologyPtr topology) {
  MutexLock lock(mutex_);
  messages_.push_back(Message{.only_to = 0, .topology = std::move(topology)});
}

void TopologyBoard::Deliver() {
  for (;;) {
    ClusterTopologyPtr topology;
    std::vector<Listener> listeners;
    {
      MutexLock lock(mutex_);
      if (is_delivering_ || messages_.empty()) return;
      is_delivering_ = true;
      const Message message = std::move(messages_.front());
      messages_.pop_front();
      topology = message.topology;
      for (const auto& [id, listener] : listeners_) {
        if (message.only_to == 0 || message.only_to == id) listeners.push_back(listener);
      }
    }
    for (const Listener& listener : listeners) listener(topology);
    MutexLock lock(mutex_);
    is_delivering_ = false;
  }
}

}  // namespace fraktor::inline v0
