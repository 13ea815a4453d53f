#include "fraktor/cluster/grain/cluster.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/cluster/grain/cluster_metrics.h"
#include "fraktor/cluster/grain/quarantine_warden.h"
#include "fraktor/cluster/identity/check_authority.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/placement/placement_duties.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct ClusterExtension {
  struct Delete {
    void operator()(const Cluster* cluster) const { delete cluster; }
  };
  // Who starts a cluster has it until that has failed; or for good.
  class Claim {
   public:
    explicit Claim(ClusterExtension& extension) : extension_(extension) {
      MutexLock lock(extension_.mutex);
      is_mine_ = !std::exchange(extension_.is_claimed, true);
    }
    ~Claim() {
      if (!is_mine_ || is_kept_) return;
      MutexLock lock(extension_.mutex);
      extension_.is_claimed = false;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    bool is_mine() const { return is_mine_; }
    void Keep() { is_kept_ = true; }

   private:
    ClusterExtension& extension_;
    bool is_mine_ = false;
    bool is_kept_ = false;
  };

  explicit ClusterExtension(ActorSystem&) {}
  Mutex mutex;
  bool is_claimed ABSL_GUARDED_BY(mutex) = false;
  // These two are of the one who has claimed it.
  std::unique_ptr<Cluster, Delete> cluster;
  // Of starts that have failed: their routers may still be called while they end.
  std::vector<std::unique_ptr<Cluster, Delete>> failed;
  // The same. Released when it is complete; acquired by Of, on whatever thread.
  std::atomic<Cluster*> started{nullptr};
};

namespace {

absl::Status CheckFilters(const std::string& option, const GrainCallFilters& filters) {
  for (const std::shared_ptr<GrainCallFilter>& filter : filters) {
    if (filter == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(option, " has a filter that is null"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKinds(const std::vector<GrainKind>& kinds) {
  std::set<std::string> names;
  for (const GrainKind& kind : kinds) {
    if (!GrainKey(kind.name, "x").Check().ok()) {
      return absl::InvalidArgumentError(absl::StrCat("ClusterOptions::kinds: the name of a kind has 1 to ",
                                                     GrainKey::kMaxKindBytes, " bytes and no '/', and is not \"",
                                                     kind.name.substr(0, 100), "\""));
    }
    if (!names.insert(kind.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("kind \"", kind.name, "\" is twice in ClusterOptions::kinds"));
    }
    if (kind.make == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "kind \"", kind.name, "\": GrainKind::make is not set; GrainKindOf<A>() sets it for a typed actor"));
    }
    FRAKTOR_RETURN_IF_ERROR(CheckFilters(absl::StrCat("kind \"", kind.name, "\": GrainKind::filters"), kind.filters));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const ClusterOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive(
      {{"ClusterOptions::max_wait", options.max_wait}, {"ClusterOptions::locate_timeout", options.locate_timeout}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"ClusterOptions::max_waiting_calls", options.max_waiting_calls}}));
  FRAKTOR_RETURN_IF_ERROR(options.placement.Validate());
  FRAKTOR_RETURN_IF_ERROR(options.session.Validate());
  FRAKTOR_RETURN_IF_ERROR(CheckFilters("ClusterOptions::incoming_filters", options.incoming_filters));
  FRAKTOR_RETURN_IF_ERROR(CheckFilters("ClusterOptions::outgoing_filters", options.outgoing_filters));
  return CheckKinds(options.kinds);
}

// What happens to the membership when all that runs on a node has ended.
class EndOfNode {
 public:
  void Watch(const std::shared_ptr<MembershipSession>& session) {
    {
      MutexLock lock(mutex_);
      session_ = session;
      if (!has_come_) return;
    }
    session->Abandon();
  }
  void Come() {
    std::shared_ptr<MembershipSession> session;
    {
      MutexLock lock(mutex_);
      has_come_ = true;
      session = session_.lock();
    }
    if (session != nullptr) session->Abandon();
  }

 private:
  Mutex mutex_;
  bool has_come_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<MembershipSession> session_ ABSL_GUARDED_BY(mutex_);
};

// The system outlives its session.
std::function<void(int failures, const absl::Status& why)> JoinWarning(ActorSystem& system, std::string authority,
                                                                       const MembershipSessionOptions& options) {
  return
      [&system, authority = std::move(authority), pause = options.join_pause](int failures, const absl::Status& why) {
        const std::string text = absl::StrCat("\"", authority, "\" could not join the cluster, ", failures,
                                              failures == 1 ? " time so far: " : " times so far: ", why.message(),
                                              "; it is tried again after ", absl::FormatDuration(pause),
                                              ", and until then no grain runs here");
        system.log().Log(LogLevel::kWarning, {.at = system.toolbox().WallNow(), .path = "cluster", .text = text});
      };
}

// At most one in so long: two nodes with one authority take the place of each other again and again.
constexpr absl::Duration kLossPause = absl::Seconds(10);

// The system outlives its session.
std::function<void(const absl::Status& why)> LossWarning(ActorSystem& system, std::string authority) {
  return [&system, authority = std::move(authority),
          said_at = Instant::InfinitePast()](const absl::Status& why) mutable {
    const Instant now = system.toolbox().Now();
    if (now - said_at < kLossPause) return;
    said_at = now;
    const std::string text = absl::StrCat("\"", authority, "\" is no member of the cluster any more: ", why.message(),
                                          "; its grains end, and it joins again");
    system.log().Log(LogLevel::kWarning, {.at = system.toolbox().WallNow(), .path = "cluster", .text = text});
  };
}

// Others would look for this node where it is not.
absl::Status CheckIsOwn(const std::string& authority, const std::string& of_remoting) {
  if (authority == of_remoting) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ClusterOptions::authority is \"", authority, "\", and the remoting of the system is reached as \"",
                   of_remoting, "\" (RemotingConfig::canonical_hostname and canonical_port): leave the first empty"));
}

// By a router, to those of the other members.
std::function<Future<void>(std::string member)> SayingFarewell(ActorRef router) {
  return [router](std::string member) {
    auto [promise, future] = MakePromise<void>();
    Tell(router, SayFarewell{.member = std::move(member), .said = std::move(promise)});
    return std::move(future);
  };
}

// Where a member is; none if that is no host and port.
std::optional<PathAuthority> AuthorityOf(const Member& member, const Remoting& remoting) {
  const size_t colon = member.authority.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(member.authority.substr(colon + 1), &port)) return std::nullopt;
  absl::StatusOr<PathAuthority> authority = PathAuthority::Create(
      remoting.address().authority()->protocol(), member.authority.substr(0, colon), static_cast<uint16_t>(port));
  if (!authority.ok()) return std::nullopt;
  return *std::move(authority);
}

// Members that are not among the newer ones: their grains are elsewhere from now on.
MembersLeft LeavesOf(const ClusterTopology& older, ClusterTopologyPtr newer, const Remoting* remoting) {
  MembersLeft change{.topology = std::move(newer), .left = {}, .ids = {}};
  if (remoting == nullptr || change.topology->epoch() < older.epoch()) return change;
  for (const Member& member : ChangeOf(older, change.topology, Instant()).left) {
    change.ids.push_back(member.id());
    if (std::optional<PathAuthority> authority = AuthorityOf(member, *remoting)) {
      change.left.push_back(*std::move(authority));
    }
  }
  return change;
}

}  // namespace

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
  if (const std::optional<RemotingConfig>& remoting = system.options().config.remoting; remoting.has_value()) {
    const std::string own = absl::StrCat(remoting->canonical_hostname, ":", remoting->canonical_port);
    if (authority.empty()) authority = own;
    if (options.peers == nullptr) FRAKTOR_RETURN_IF_ERROR(CheckIsOwn(authority, own));
  }
  if (authority.empty()) {
    return absl::InvalidArgumentError(
        "ClusterOptions::authority is empty, and the system has no remoting that has one: say how others reach this "
        "node, "
        "as \"host:port\"");
  }
  FRAKTOR_RETURN_IF_ERROR(CheckAuthority("ClusterOptions::authority", authority));
  std::shared_ptr<GrainPeers> peers = options.peers;
  if (peers == nullptr) {
    if (system.remote_provider() == nullptr) {
      return absl::InvalidArgumentError(
          "a cluster needs remoting to reach other nodes: start it first, or set ClusterOptions::peers");
    }
    if (CodecsOf(system).Find<GrainCall>() == nullptr) {
      return absl::InvalidArgumentError(
          "the system cannot send grains anything: add ClusterCodecs() to ActorSystemOptions::codecs");
    }
    peers = std::make_shared<RemoteGrainPeers>(system);
  }
  FRAKTOR_RETURN_IF_ERROR(CheckOptions(options));
  if (system.IsTerminated()) return absl::FailedPreconditionError("the actor system has ended already");
  auto& extension = system.Extension<ClusterExtension>();
  // Ends behind what was made and is given up.
  ClusterExtension::Claim claim(extension);
  if (!claim.is_mine()) {
    return absl::FailedPreconditionError(
        "the system has its cluster already, or is being given one by another thread; one that has left does not come "
        "back: make another ActorSystem");
  }

  Remoting* const remoting = Remoting::Of(system);
  std::unique_ptr<Cluster, ClusterExtension::Delete> cluster(new Cluster(options));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->executor_, SerialExecutor::Make(system.toolbox(), {.name = "cluster"}));
  cluster->parts_ = std::make_shared<GrainRouterParts>(
      GrainRouterParts{.authority = authority,
                       .kinds = options.kinds,
                       .peers = peers,
                       .codecs = &CodecsOf(system),
                       .is_untrusted = remoting != nullptr && remoting->is_untrusted(),
                       .executor = cluster->executor_.get(),
                       .max_waiting = options.max_waiting_calls,
                       .max_wait = options.max_wait,
                       .locate_timeout = options.locate_timeout,
                       .min_backoff = options.placement.min_backoff,
                       .max_backoff = options.placement.max_backoff,
                       .incoming_filters = options.incoming_filters,
                       .outgoing_filters = options.outgoing_filters});
  if (remoting != nullptr) {
    cluster->parts_->give_back = [remoting](const std::vector<PathAuthority>& left) {
      for (const PathAuthority& node : left) {
        remoting->GiveBack(node, {MessageTypeOf<GrainCall>(), MessageTypeOf<LocateGrain>()});
      }
    };
  }
  // It may come before there is a session.
  const auto ending = std::make_shared<EndOfNode>();
  cluster->parts_->on_ended = [ending] { ending->Come(); };
  FRAKTOR_RETURN_IF_ERROR(system.OnTermination([ending] { ending->Come(); }));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->gate_, GrainGate::Make(authority));
  cluster->parts_->gate = cluster->gate_;
  // The router tries again itself, for as long as somebody waits, and says why it had to.
  PlacementDriverOptions placement = options.placement;
  placement.max_retries = 0;
  for (const GrainKind& kind : options.kinds) {
    if (kind.is_kept) placement.placement.kept_kinds.push_back(kind.name);
  }
  const auto activations = std::make_shared<GrainActivations>();
  FRAKTOR_ASSIGN_OR_RETURN(cluster->driver_, PlacementCoordinatorDriver::Make({.toolbox = system.toolbox(),
                                                                               .executor = *cluster->executor_,
                                                                               .lock = options.lock,
                                                                               .storage = options.storage,
                                                                               .activations = activations,
                                                                               .events = &system.events()},
                                                                              placement));
  cluster->parts_->driver = cluster->driver_.get();
  // Users' calls go through it: it is as busy as they are. Membership and leases are the executor's. It has all that it
  // needs by now: others may call it from its first moment on.
  const PropsPtr props = MakeProps<GrainRouter>({.dispatcher = DispatcherChoice::kDefault},
                                                std::shared_ptr<const GrainRouterParts>(cluster->parts_));
  FRAKTOR_ASSIGN_OR_RETURN(cluster->router_, system.TrySpawnSystemActor(*props, "grains"));
  activations->set_router(cluster->router_);
  cluster->gate_->Open(cluster->router_, cluster->parts_);
  MemberCandidate candidate{.authority = authority};
  if (remoting != nullptr) candidate.system_uid = remoting->system_uid();
  for (const GrainKind& kind : options.kinds) {
    candidate.kinds.push_back(kind.name);
    if (kind.is_on_oldest) candidate.oldest_kinds.push_back(kind.name);
  }
  MembershipSessionOptions session = options.session;
  session.min_term = std::max(session.min_term, options.placement.placement.membership_margin);
  absl::StatusOr<std::shared_ptr<MembershipSession>> made = MembershipSession::Make(
      {.toolbox = system.toolbox(),
       .executor = *cluster->executor_,
       .provider = options.membership,
       .duties = std::make_shared<PlacementDuties>(cluster->driver_, SayingFarewell(cluster->router_)),
       .on_join_failed = JoinWarning(system, authority, session),
       .on_lost = LossWarning(system, authority)},
      std::move(candidate), session);
  if (!made.ok()) {
    system.Stop(cluster->router_);
    extension.failed.push_back(std::move(cluster));
    return made.status();
  }
  cluster->session_ = *std::move(made);
  ending->Watch(cluster->session_);
  peers->Announce(authority, cluster->router_);
  if (remoting != nullptr) {
    remoting->OpenDoor(cluster->router_, MessageTypeOf<GrainCall>(), *cluster->gate_);
    cluster->warden_ =
        QuarantineWarden::Make(system, *remoting, *cluster->executor_,
                               [driver = cluster->driver_, membership = options.membership](const std::string& node) {
                                 if (driver->topology()->FindAuthority(node) != nullptr) return true;
                                 const std::vector<std::string> others = membership->Authorities();
                                 return std::find(others.begin(), others.end(), node) != others.end();
                               });
  }
  cluster->listening_ = options.membership->Listen(
      [remoting, router = cluster->router_,
       weak = std::weak_ptr<PlacementCoordinatorDriver>(cluster->driver_)](ClusterTopologyPtr topology) {
        const std::shared_ptr<PlacementCoordinatorDriver> driver = weak.lock();
        if (driver == nullptr) return;
        MembersLeft change = LeavesOf(*driver->topology(), std::move(topology), remoting);
        if (change.ids.empty()) {
          driver->UpdateTopology(std::move(change.topology));
        } else {
          Tell(router, std::move(change));
        }
      });
  if (options.leaves_on_shutdown) {
    // Phases of one's own need not have it.
    system.coordinated_shutdown()
        .AddTask(shutdown_phase::kClusterLeave, "leave the cluster",
                 [weak = std::weak_ptr<MembershipSession>(cluster->session_)] {
                   const std::shared_ptr<MembershipSession> leaving = weak.lock();
                   return leaving != nullptr ? leaving->Leave() : MakeReadyFuture();
                 })
        .status()
        .IgnoreError();
  }
  if (const absl::Status added = AddClusterMetrics(system.hub(),
                                                   {.driver = cluster->driver_,
                                                    .session = cluster->session_,
                                                    .counts = cluster->parts_->counts,
                                                    .gate = cluster->gate_},
                                                   cluster->metrics_);
      !added.ok()) {
    const std::string text = absl::StrCat("some metrics of the cluster are missing: ", added.message());
    system.log().Log(LogLevel::kWarning, {.at = system.toolbox().WallNow(), .path = "cluster", .text = text});
  }
  // Before it joins: grains find it from their first moment on.
  extension.cluster = std::move(cluster);
  Cluster* const started = extension.cluster.get();
  extension.started.store(started, std::memory_order_release);
  if (absl::Status joined = started->session_->Join(); !joined.ok()) {
    extension.started.store(nullptr, std::memory_order_release);
    system.Stop(started->router_);
    extension.failed.push_back(std::move(extension.cluster));
    return joined;
  }
  claim.Keep();
  return started;
}

Cluster* Cluster::Of(ActorSystem& system) {
  return system.Extension<ClusterExtension>().started.load(std::memory_order_acquire);
}

const GrainKind* Cluster::FindKind(std::string_view name) const {
  const auto found = std::find_if(parts_->kinds.begin(), parts_->kinds.end(),
                                  [name](const GrainKind& kind) { return kind.name == name; });
  return found == parts_->kinds.end() ? nullptr : &*found;
}

Cluster::~Cluster() {
  if (gate_ != nullptr) gate_->Close();
  if (listening_.value != 0) membership_->StopListening(listening_);
}

}  // namespace fraktor::inline v0
