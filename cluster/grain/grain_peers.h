// GrainPeers: how the routers of grains of other members are reached. An extension point.
//
//   std::shared_ptr<GrainPeers> remote = std::make_shared<RemoteGrainPeers>(system);   // what a cluster has by default
//   std::shared_ptr<GrainPeers> local = std::make_shared<LocalGrainPeers>();           // all are systems of this process
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_PEERS_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_PEERS_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class GrainPeers {
 public:
  virtual ~GrainPeers() = default;

  // This node's own has started.
  virtual void Announce(std::string_view authority, ActorRef router) = 0;
  // Unavailable if there is none.
  virtual absl::StatusOr<ActorRef> RouterAt(std::string_view authority) = 0;
};

// By remoting: pekko://<name of the system>@<authority>/system/grains. So all nodes of a cluster have systems of one name.
class RemoteGrainPeers final : public GrainPeers {
 public:
  // The system must outlive it.
  explicit RemoteGrainPeers(ActorSystem& system) : system_(system) {}

  void Announce(std::string_view authority, ActorRef router) override;
  absl::StatusOr<ActorRef> RouterAt(std::string_view authority) override;

 private:
  ActorSystem& system_;
  Mutex mutex_;
  std::map<std::string, ActorRef, std::less<>> routers_ ABSL_GUARDED_BY(mutex_);
};

// Of the nodes of one process, which share it. Messages go from system to system as they are.
class LocalGrainPeers final : public GrainPeers {
 public:
  void Announce(std::string_view authority, ActorRef router) override;
  absl::StatusOr<ActorRef> RouterAt(std::string_view authority) override;

 private:
  Mutex mutex_;
  std::map<std::string, ActorRef, std::less<>> routers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_PEERS_H_
