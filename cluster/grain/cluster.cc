#include "fraktor/cluster/grain/cluster.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/placement/placement_duties.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

struct ClusterExtension {
  explicit ClusterExtension(ActorSystem&) {}
  std::unique_ptr<Cluster> cluster;
};

absl::StatusOr<Cluster*> Cluster::Start(ActorSystem& system, const ClusterOptions& options) {
  const std::string_view missing = options.membership == nullptr ? "membership"
                                   : options.lock == nullptr     ? "lock"
                                   : options.storage == nullptr  ? "storage"
                                                                 : "";
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ClusterOptions::", ToAbsl(missing),
        " is not set: an EmbeddedClient (cluster/embedded) is membership, lock and storage; in one process "
        "a MemoryMembership and a MemoryPlacementStore (cluster/memory) are"));
  }
  std::string authority = options.authority;
  if (authority.empty() && system.options().config.remoting.has_value()) {
    const RemotingConfig& remoting = *system.options().config.remoting;
    authority = absl::StrCat(remoting.canonical_hostname, ":", remoting.canonical_port);
  }
  if (authority.empty()) {
    return absl::InvalidArgumentError(
        "ClusterOptions::authority is empty, and the system has no remoting that has one: say how others reach this "
        "node, "
        "as \"host:port\"");
  }
  std::shared_ptr<GrainPeers> peers = options.peers;
  if (peers == nullptr) {
    if (system.remote_provider() == nullptr) {
      return absl::InvalidArgumentError(
          "a cluster needs remoting to reach other nodes: start it first, or set ClusterOptions::peers");
    }
    if (CodecsOf(system).Find<GrainCallFrame>() == nullptr) {
      return absl::InvalidArgumentError(
          "the system cannot send grains anything: add ClusterCodecs() to ActorSystemOptions::codecs");
    }
    peers = std::make_shared<RemoteGrainPeers>(system);
  }
  FRAKTOR_RETURN_IF_ERROR(CheckPositive(
      {{"ClusterOptions::max_wait", options.max_wait}, {"ClusterOptions::locate_timeout", options.locate_timeout}}));
  std::set<std::string> names;
  for (const GrainKind& kind : options.kinds) {
    FRAKTOR_RETURN_IF_ERROR(GrainKey(kind.name, "x").Check());
    if (!names.insert(kind.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("kind \"", kind.name, "\" is twice in ClusterOptions::kinds"));
    }
    if (kind.make == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "kind \"", kind.name, "\": GrainKind::make is not set; GrainKindOf<A>() sets it for a typed actor"));
    }
  }
  auto& extension = system.Extension<ClusterExtension>();
  if (extension.cluster != nullptr) return absl::FailedPreconditionError("the system has its cluster already");

  std::unique_ptr<Cluster> cluster(new Cluster(options));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->executor_, SerialExecutor::Make(system.toolbox(), {.name = "cluster"}));
  cluster->parts_ = std::make_shared<GrainRouterParts>(GrainRouterParts{.authority = authority,
                                                                        .kinds = options.kinds,
                                                                        .peers = peers,
                                                                        .codecs = &CodecsOf(system),
                                                                        .executor = cluster->executor_.get(),
                                                                        .max_waiting = options.max_waiting_calls,
                                                                        .max_wait = options.max_wait,
                                                                        .locate_timeout = options.locate_timeout,
                                                                        .min_backoff = options.placement.min_backoff,
                                                                        .max_backoff = options.placement.max_backoff,
                                                                        .incoming_filters = options.incoming_filters,
                                                                        .outgoing_filters = options.outgoing_filters});
  // Users' calls go through it: it is as busy as they are. Membership and leases are the executor's.
  const PropsPtr props = MakeProps<GrainRouter>({.dispatcher = DispatcherChoice::kUsers},
                                                std::shared_ptr<const GrainRouterParts>(cluster->parts_));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->router_, system.SpawnSystemActor(*props, "grains"));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->gate_, GrainGate::Make(cluster->router_, authority));
  cluster->parts_->gate = cluster->gate_;
  // The router tries again itself, for as long as somebody waits, and says why it had to.
  PlacementDriverOptions placement = options.placement;
  placement.max_retries = 0;
  for (const GrainKind& kind : options.kinds) {
    if (kind.is_kept) placement.placement.kept_kinds.push_back(kind.name);
  }
  FRAKTOR_ASSIGN_OR_RETURN(cluster->driver_, PlacementCoordinatorDriver::Make(
                                                 {.toolbox = system.toolbox(),
                                                  .executor = *cluster->executor_,
                                                  .lock = options.lock,
                                                  .storage = options.storage,
                                                  .activations = std::make_shared<GrainActivations>(cluster->router_),
                                                  .events = &system.events()},
                                                 placement));
  cluster->parts_->driver = cluster->driver_.get();
  cluster->gate_->Open(cluster->parts_);
  MemberCandidate candidate{.authority = authority};
  for (const GrainKind& kind : options.kinds) {
    candidate.kinds.push_back(kind.name);
    if (kind.is_on_oldest) candidate.oldest_kinds.push_back(kind.name);
  }
  FRAKTOR_ASSIGN_OR_RETURN(cluster->session_,
                           MembershipSession::Make({.toolbox = system.toolbox(),
                                                    .executor = *cluster->executor_,
                                                    .provider = options.membership,
                                                    .duties = std::make_shared<PlacementDuties>(cluster->driver_)},
                                                   std::move(candidate), options.session));
  peers->Announce(authority, cluster->router_);
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
  if (gate_ != nullptr) gate_->Close();
  if (listening_.value != 0) membership_->StopListening(listening_);
}

}  // namespace fraktor::inline v0
