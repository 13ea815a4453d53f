// SlowStore: a lock and a storage that stand between a node of a test and its real ones. Requests and answers take
// their time there, or get lost: a request is not heard of, or is done and its answer is not.
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
// So a lease may be over when what it was for is stored, and who gave up, or has died, is heard later: what is late has
// left its node.
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_
#define FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

struct StoreTrouble {
  // How likely a request, or an answer, is late, by up to so much.
  double slow = 0;
  absl::Duration max_delay = absl::ZeroDuration();
  // How likely a request, or an answer, is lost.
  double lost = 0;

  bool any() const { return slow > 0 || lost > 0; }
};

class SlowStore final : public PlacementLock, public ActivationStorage, public std::enable_shared_from_this<SlowStore> {
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
  struct Letter;
  template <class T>
  using Request = absl::AnyInvocable<Future<T>(EmbeddedClient& store)>;

  SlowStore(RuntimeToolbox& toolbox, Random random, TestStoreClients store,
            std::shared_ptr<const StoreTrouble> trouble);

  template <class T>
  Future<T> Send(Request<T> request);
  template <class T>
  void Deliver(EmbeddedClient& store, const std::shared_ptr<Letter<T>>& letter);
  // Later, if this is still there.
  void After(absl::Duration delay, absl::AnyInvocable<void(SlowStore& self)> what);
  absl::Duration Delay();

  RuntimeToolbox& toolbox_;
  const TestStoreClients store_;
  const std::shared_ptr<const StoreTrouble> trouble_;
  Random random_;
  const std::unique_ptr<SerialExecutor> executor_;
  std::list<Future<void>> answers_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_SLOW_STORE_H_
