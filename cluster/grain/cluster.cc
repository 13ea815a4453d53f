#include "fraktor/cluster/grain/cluster.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/cluster/placement/placement_duties.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

struct ClusterExtension {
  explicit ClusterExtension(ActorSystem&) {}
  std::unique_ptr<Cluster> cluster;
};

absl::StatusOr<Cluster*> Cluster::Start(ActorSystem& system, const ClusterOptions& options) {
  if (options.membership == nullptr || options.lock == nullptr || options.storage == nullptr ||
      options.peers == nullptr) {
    return absl::InvalidArgumentError("a cluster needs a membership, a lock, a storage and peers");
  }
  std::set<std::string> names;
  for (const GrainKind& kind : options.kinds) {
    FRAKTOR_RETURN_IF_ERROR(GrainKey(kind.name, "x").Check());
    if (kind.make == nullptr || !names.insert(kind.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("kind \"", kind.name, "\" is there twice, or does not say how a grain is made"));
    }
  }
  auto& extension = system.Extension<ClusterExtension>();
  if (extension.cluster != nullptr) return absl::FailedPreconditionError("the system has its cluster already");

  std::unique_ptr<Cluster> cluster(new Cluster(options));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->executor_, SerialExecutor::Make(system.toolbox(), {.name = "cluster"}));
  cluster->parts_ = std::make_shared<GrainRouterParts>(GrainRouterParts{.kinds = options.kinds,
                                                                        .peers = options.peers,
                                                                        .executor = cluster->executor_.get(),
                                                                        .max_waiting = options.max_waiting_calls,
                                                                        .incoming_filters = options.incoming_filters,
                                                                        .outgoing_filters = options.outgoing_filters});
  PlacementDriverOptions placement = options.placement;
  for (const GrainKind& kind : options.kinds) {
    if (kind.is_kept) placement.placement.kept_kinds.push_back(kind.name);
  }
  const PropsPtr props =
      MakeProps<GrainRouter>(PropsOptions(), std::shared_ptr<const GrainRouterParts>(cluster->parts_));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->router_, system.SpawnSystemActor(*props, "grains"));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->driver_, PlacementCoordinatorDriver::Make(
                                                 {.toolbox = system.toolbox(),
                                                  .executor = *cluster->executor_,
                                                  .lock = options.lock,
                                                  .storage = options.storage,
                                                  .activations = std::make_shared<GrainActivations>(cluster->router_),
                                                  .events = &system.events()},
                                                 placement));
  cluster->parts_->driver = cluster->driver_.get();
  MemberCandidate candidate{.authority = options.authority};
  for (const GrainKind& kind : options.kinds) candidate.kinds.push_back(kind.name);
  FRAKTOR_ASSIGN_OR_RETURN(cluster->session_,
                           MembershipSession::Make({.toolbox = system.toolbox(),
                                                    .executor = *cluster->executor_,
                                                    .provider = options.membership,
                                                    .duties = std::make_shared<PlacementDuties>(cluster->driver_)},
                                                   std::move(candidate), options.session));
  options.peers->Announce(options.authority, cluster->router_);
  cluster->listening_ = options.membership->Listen(
      [weak = std::weak_ptr<PlacementCoordinatorDriver>(cluster->driver_)](ClusterTopologyPtr topology) {
        if (const auto driver = weak.lock()) driver->UpdateTopology(std::move(topology));
      });
  FRAKTOR_RETURN_IF_ERROR(cluster->session_->Join());
  extension.cluster = std::move(cluster);
  return extension.cluster.get();
}

Cluster* Cluster::Of(ActorSystem& system) { return system.Extension<ClusterExtension>().cluster.get(); }

Cluster::~Cluster() {
  if (listening_.value != 0) membership_->StopListening(listening_);
}

}  // namespace fraktor::inline v0
