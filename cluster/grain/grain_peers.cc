#include "fraktor/cluster/grain/grain_peers.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

void RemoteGrainPeers::Announce(std::string_view authority, ActorRef router) {
  MutexLock lock(mutex_);
  routers_.insert_or_assign(std::string(authority), router);
}

absl::StatusOr<ActorRef> RemoteGrainPeers::RouterAt(std::string_view authority) {
  {
    MutexLock lock(mutex_);
    if (const auto known = routers_.find(authority); known != routers_.end()) return known->second;
  }
  FRAKTOR_ASSIGN_OR_RETURN(const ActorRef router,
                           system_.Resolve(absl::StrCat(system_.options().config.scheme, "://", ToAbsl(system_.name()),
                                                        "@", ToAbsl(authority), "/system/grains")));
  MutexLock lock(mutex_);
  if (routers_.size() < ClusterTopology::kMaxMembers) routers_.insert_or_assign(std::string(authority), router);
  return router;
}

void LocalGrainPeers::Announce(std::string_view authority, ActorRef router) {
  MutexLock lock(mutex_);
  routers_.insert_or_assign(std::string(authority), router);
}

absl::StatusOr<ActorRef> LocalGrainPeers::RouterAt(std::string_view authority) {
  MutexLock lock(mutex_);
  const auto found = routers_.find(authority);
  if (found == routers_.end()) {
    return absl::UnavailableError(
        absl::StrCat("no node of this process has the authority \"", ToAbsl(authority), "\""));
  }
  return found->second;
}

}  // namespace fraktor::inline v0
