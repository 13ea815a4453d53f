// EmbeddedClient: the lock, the storage and the membership of a cluster whose store is an EmbeddedStore, on this node or on
// another one.
//
//   auto store = EmbeddedClient::Make(system, {.authority = "10.0.0.1:2552"}).value();
//   Cluster& cluster = *Cluster::Start(system, {.kinds = {GrainKindOf<Account>()},
//                                               .membership = store, .lock = store, .storage = store}).value();
//
// The system of the store has the same name as this one. On the store's own node, EmbeddedStore::Start comes first.
//
// A store that does not answer within `answer_timeout` is Unavailable, with a text that names it: a question may have been
// heard all the same, as after any other error that has no kind.
//
// Thread safety: any thread. The system must outlive its calls.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_CLIENT_H_
#define FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct EmbeddedClientOptions {
  // Of the node that has the store: "host:port". Empty: this one.
  std::string authority = {};
  absl::Duration answer_timeout = absl::Seconds(1);
  // How often the store is asked for members that it has not told of: what it tells by itself may get lost.
  absl::Duration watch_period = absl::Milliseconds(500);
};

class EmbeddedClient final : public PlacementLock, public ActivationStorage, public MembershipProvider {
 public:
  // InvalidArgument for times that are not positive, an authority without a port from 1 to 65535, and if the system
  // lacks EmbeddedCodecs() to talk to another node; errors of ActorSystem::Resolve.
  static absl::StatusOr<std::shared_ptr<EmbeddedClient>> Make(ActorSystem& system,
                                                              const EmbeddedClientOptions& options = {});
  ~EmbeddedClient() override;

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override;
  Future<void> Release(PlacementLease lease) override;

  Future<LoadedActivation> Load(GrainKey key) override;
  Future<void> Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) override;
  Future<void> Remove(GrainKey key, uint64_t token) override;

  Future<MembershipTerm> Join(MemberCandidate candidate, Instant now) override;
  Future<MembershipTerm> Renew(std::string member_id, Instant now) override;
  Future<void> BeginLeaving(std::string member_id) override;
  Future<void> Leave(std::string member_id) override;
  MembershipListenerId Listen(Listener listener) override;
  void StopListening(MembershipListenerId id) override;
  std::vector<std::string> Authorities() const override;

 private:
  struct Board;  // shared with the actor that listens
  class Ear;

  EmbeddedClient(ActorSystem& system, const EmbeddedClientOptions& options, ActorRef store);

  template <class Request>
  Future<typename Request::Reply> Ask(Request request);
  template <class Request>
  Future<void> AskToDo(Request request);

  ActorSystem& system_;
  const EmbeddedClientOptions options_;
  const ActorRef store_;
  const std::shared_ptr<Board> board_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_CLIENT_H_
