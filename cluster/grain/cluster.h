// Cluster: makes an actor system a node of a cluster, whose grains are reached from every node.
//
//   auto store = EmbeddedClient::Make(system, {.authority = "10.0.0.1:2552"}).value();       // cluster/embedded
//   Cluster& cluster = *Cluster::Start(system, {.kinds = {GrainKindOf<Account>()},
//                                               .membership = store, .lock = store, .storage = store}).value();
//   cluster.Grain<Account>("alice").Tell(Deposit{10});
//   Future<void> left = cluster.Leave();                                     // before the system ends
//
// The system has remoting (fraktor/remote/association/remoting.h, or StartGrpcNode), the codecs of the messages, and
// ClusterCodecs(). All nodes that use the same membership, lock and storage are one cluster; their systems have one name.
//
// A cluster of one process needs no remoting: there the systems share a MemoryMembership, a MemoryPlacementStore and a
// LocalGrainPeers, and messages are not encoded.
//
// It ends with the system, which owns it. When the system is shut down in order (CoordinatedShutdown, so by Terminate, and
// by SIGTERM if coordinated_shutdown.on_sigterm is on, which it is not by itself), the node leaves first: in the phase
// "cluster-leave", for as long as that phase may take. A node that ends without leaving is found out when its term is over.
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_CLUSTER_H_
#define FRAKTOR_CLUSTER_GRAIN_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_gate.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

class QuarantineWarden;

struct ClusterOptions {
  // How others reach this node: "host:port". Empty: as the remoting of the system is reached; only with `peers` it may
  // be another. No two nodes have the same: who joins takes the place of the other, which joins again, and so on.
  std::string authority = {};
  // What it runs. None: it only calls.
  std::vector<GrainKind> kinds = {};
  std::shared_ptr<MembershipProvider> membership = nullptr;
  std::shared_ptr<PlacementLock> lock = nullptr;
  std::shared_ptr<ActivationStorage> storage = nullptr;
  // Null: by remoting.
  std::shared_ptr<GrainPeers> peers = nullptr;
  // Lookups are tried again for as long as somebody waits, with the pauses given here, whatever max_retries says.
  PlacementDriverOptions placement = {};
  MembershipSessionOptions session = {};
  // Calls that wait for their grains.
  size_t max_waiting_calls = 100'000;
  // Around the calls that come to the grains of this node, and those that are made on it: see grain_filter.h.
  GrainCallFilters incoming_filters = {};
  GrainCallFilters outgoing_filters = {};
  // How long a message waits for its grain that expects no answer; a question waits until its timeout.
  absl::Duration max_wait = absl::Seconds(15);
  // An owner that has not said for so long where a grain is is asked again.
  absl::Duration locate_timeout = absl::Seconds(3);
  // Whether a coordinated shutdown of the system leaves the cluster, so that others have the grains when it ends.
  bool leaves_on_shutdown = true;
};

class Cluster final {
 public:
  // Once for each system, to which it belongs: nobody deletes it. InvalidArgument if something is missing, codecs among it,
  // two kinds have one name, or an option makes no sense; FailedPrecondition if the system has one already, or has ended.
  // Of several threads that start one at once one does, and the others get FailedPrecondition, perhaps before it is there.
  static absl::StatusOr<Cluster*> Start(ActorSystem& system, const ClusterOptions& options);
  // Null if it was not started.
  static Cluster* Of(ActorSystem& system);

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // The grain of A's kind with this identity.
  template <class A>
  GrainRef<A> Grain(std::string_view identity) const {
    return GrainRef<A>(gate_->ref(), GrainKey(A::kGrainKind, identity));
  }

  // Of grains that run on this node, mostly asked for by themselves; of others nothing happens.
  //
  // Ends the grain after what has been sent to it. What comes later activates it anew.
  void Passivate(const GrainKey& key) { driver_->Passivate(key); }
  // Does not end it for being idle for so long, whatever was said before; zero: as long as others. A use counts as well.
  void Keep(const GrainKey& key, absl::Duration duration) { driver_->Keep(key, duration); }

  // Ready when this node is a member, at once if it is one; Cancelled if it leaves, or its system ends. While it cannot join
  // the log says why. Calls need not wait for it: they do
  // so by themselves, for as long as their timeout.
  Future<void> Joined() { return session_->Joined(); }
  // OK while this node is a member. Otherwise Unavailable, which names the reason of the last attempt to join; calls
  // that are answered meanwhile name it too. Cancelled when it has left: then it is a client, whose calls go to other
  // members as long as there are any.
  absl::Status WhyNoMember() const { return session_->WhyNoMember(); }
  // Hands over what runs here and leaves; ready when that is done.
  Future<void> Leave() { return session_->Leave(); }

  // The members that this node knows of, at once. Changes are events of the system (TopologyChanged, in
  // fraktor/cluster/identity/topology_changed.h):
  //   auto listening = system.events().Listen<TopologyChanged>([](const TopologyChanged& change) { ... });
  ClusterTopologyPtr topology() const { return driver_->topology(); }

  // What this node hosts by that name; null if it does not.
  const GrainKind* FindKind(std::string_view name) const;
  PlacementCoordinatorDriver& driver() { return *driver_; }
  const MembershipSession& session() const { return *session_; }
  const std::string& authority() const { return parts_->authority; }
  ActorRef router() const { return router_; }
  // Where calls go in, and how many of them have left for another node without the router.
  ActorRef gate() const { return gate_->ref(); }
  uint64_t calls_past_router() const { return gate_->crossed(); }
  // How many of other nodes have come to their grains on this one without the router.
  uint64_t calls_past_router_in() const { return gate_->entered(); }

 private:
  friend struct ClusterExtension;
  explicit Cluster(const ClusterOptions& options) : membership_(options.membership) {}
  ~Cluster();

  const std::shared_ptr<MembershipProvider> membership_;
  std::unique_ptr<SerialExecutor> executor_;
  std::shared_ptr<GrainRouterParts> parts_;
  ActorRef router_;
  GrainGate* gate_ = nullptr;
  std::shared_ptr<PlacementCoordinatorDriver> driver_;
  std::shared_ptr<MembershipSession> session_;
  std::shared_ptr<QuarantineWarden> warden_;  // null without remoting
  MembershipListenerId listening_;
  std::vector<GaugeRegistration> metrics_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_CLUSTER_H_
