// SlowStore: a lock and a storage that stand between a node of a test and its real ones, at the end of a SlowLine.
//
//   auto trouble = std::make_shared<StoreTrouble>();
//   options.on_store = [&](ActorSystem& system, const TestStoreClients& store) {
//     const auto slow = SlowStore::Make(system.toolbox(), random.Fork(++nodes), store, trouble);
//     return TestStore{.membership = store.of_node, .lock = slow, .storage = slow};
//   };
//   ...
//   *trouble = {.slow = 0.3, .max_delay = absl::Seconds(6), .lost = 0.1};        // from now on, for all nodes
//   *trouble = {};                                                               // no more
//
// So a lease may be over when what it was for is stored, and who gave up is heard later; also who has died, if the test
// keeps its SlowStore: what is late has left its node.
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_
#define FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"

#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/cluster/testing/slow_line.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class SlowStore final : public PlacementLock, public ActivationStorage {
 public:
  // The toolbox must outlive it. All that share the trouble have it.
  static std::shared_ptr<SlowStore> Make(RuntimeToolbox& toolbox, Random random, TestStoreClients store,
                                         std::shared_ptr<const StoreTrouble> trouble);

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override;
  Future<void> Release(PlacementLease lease) override;
  Future<LoadedActivation> Load(GrainKey key) override;
  Future<void> Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) override;
  Future<void> Remove(GrainKey key, uint64_t token) override;

 private:
  template <class T>
  using Request = absl::AnyInvocable<Future<T>(EmbeddedClient& store)>;

  SlowStore(std::shared_ptr<SlowLine> line, TestStoreClients store)
      : line_(std::move(line)), store_(std::move(store)) {}

  template <class T>
  Future<T> Send(Request<T> request);

  const std::shared_ptr<SlowLine> line_;
  const TestStoreClients store_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_
