// EmbeddedStore: the lock, the storage and the membership of a cluster, on one of its nodes: /system/cluster-store. For one
// machine, and for a small cluster that can wait for that node to come back. Others reach it by an EmbeddedClient.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto backend, RocksDbBackend::Open({.path = "/var/lib/shop/cluster"}));
//   FRAKTOR_RETURN_IF_ERROR(EmbeddedStore::Start(system, {.backend = std::move(backend)}));
//
// While the node is away:
// - Grains that run go on, for as long as their member's term lasts: members renew it three times within its length, so
//   two thirds of `term` at least. Then they stop: a member cannot know whether the store is away or only the way to it,
//   and in the second case others may take over when the term is over. So `term` is how long the node may be away, and
//   also how long it takes until the grains of a member that has died are taken over, unless it is started again: a node
//   that joins takes the place of its former life at once.
// - Nothing new is activated: calls of grains that run nowhere wait, and get an error that names the store.
//
// When it comes back:
// - With a backend it knows its members and activations. All members get a whole term, since nobody knows how much of the
//   old ones is left; so none is taken for dead before it knows itself that its term is over, and nothing is activated
//   twice. Locks are forgotten: an activation that was under way is refused, and tried again.
// - Without a backend it knows nothing. So it answers nobody for a whole term; by then all that its former life has
//   allowed has ended. With `is_new` it does not wait: only where there was no former life. An actor that has failed and is
//   restarted waits all the same.
//
// Tokens and epochs only grow, over all lives: with a backend they are stored, ten thousand tokens ahead; without one they
// begin at the date, in microseconds.
//
// What must be durable is on the disk before it is answered; what comes together is written together.
//
// Thread safety: a function; the store is an actor.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_STORE_H_
#define FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_STORE_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/memory/placement_table.h"

namespace fraktor::inline v0 {

struct EmbeddedStoreOptions {
  // How long a member is one without renewing it: see above.
  absl::Duration term = absl::Seconds(30);
  // Locks: how long one may hold, and how many there are.
  PlacementTableOptions placement = {};
  // Null: memory.
  std::shared_ptr<EmbeddedBackend> backend = nullptr;
  // Without a backend: there was no store of this cluster before.
  bool is_new = false;
  // The list of members is one message, which has to fit a frame (WireLimits::max_frame_bytes, 256 KiB); one that does not
  // would be lost. A join that would make it larger than this is refused, with MembershipError::kFull and a text. Room for
  // about three thousand members of a few kinds. Raise it together with the frames of all nodes, and below those.
  size_t max_topology_bytes = size_t{192} << 10;
  // How often it is looked whose term is over.
  absl::Duration tick_period = absl::Milliseconds(200);
};

class EmbeddedStore {
 public:
  // Once for each system. InvalidArgument for times and limits that are not positive; errors of TrySpawnSystemActor. What the backend
  // holds is read later: if it cannot be, whoever asks is told, the log has the reason, and it is tried again with pauses
  // that grow up to 10 s.
  static absl::Status Start(ActorSystem& system, const EmbeddedStoreOptions& options);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_EMBEDDED_STORE_H_
