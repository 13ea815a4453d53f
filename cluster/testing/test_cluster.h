// TestCluster: the nodes of a cluster in one process, for tests: some compute nodes, and one with the embedded store. The
// same scenario runs on a simulated network in virtual time (SimTestCluster), with threads over a loopback
// (LoopbackTestCluster), and over gRPC (GrpcTestCluster).
//
//   void MovesWhenItsNodeLeaves(TestCluster& cluster) {
//     cluster.AddNodes(3);
//     GrainRef<Counter> alice = cluster[0].Grain<Counter>("alice");
//     absl::StatusOr<Count> count = cluster.Await(alice.Ask(cluster.system(0), Add{1}, absl::Seconds(5)));
//     cluster.Crash(1);                                     // it is away, without a word
//     cluster.Restart(1);                                   // another life of it, at the same address
//     cluster.CrashStore();
//   }
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_TEST_CLUSTER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_store.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/remote/association/remote_options.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

// Keeps what it is told in memory, for as long as somebody holds it: a disk that outlives its node.
class TestBackend final : public EmbeddedBackend {
 public:
  absl::StatusOr<EmbeddedState> Load() override { return state_; }
  absl::Status Write(const EmbeddedChanges& changes) override;

  const EmbeddedState& state() const { return state_; }
  // What Write answers from now on, without writing.
  void set_failure(absl::Status failure) { failure_ = std::move(failure); }

 private:
  EmbeddedState state_;
  absl::Status failure_;
};

// How the store is reached.
struct TestStoreClients {
  // From the compute node.
  std::shared_ptr<EmbeddedClient> of_node;
  // From the store's own node, as something that has come there already; null while that is away.
  std::function<std::shared_ptr<EmbeddedClient>()> of_store;
};

// What a compute node has of the store.
struct TestStore {
  std::shared_ptr<MembershipProvider> membership;
  std::shared_ptr<PlacementLock> lock;
  std::shared_ptr<ActivationStorage> storage;
};

struct TestClusterOptions {
  // Of every compute node.
  std::vector<GrainKind> kinds = {};
  // Of the messages of grains; what the cluster needs is added.
  CodecSetup codecs = {};
  // `backend` null: TestBackend.
  EmbeddedStoreOptions store = {.term = absl::Seconds(10)};
  // Whether the store forgets everything when it ends.
  bool is_forgetful = false;
  EmbeddedClientOptions client = {};
  // Membership, lock, storage and kinds are set, and leaves_on_shutdown, which is false.
  ClusterOptions cluster = {};
  // Of every node; the uid is set.
  RemoteOptions remote = {};
  // What a compute node gets in place of the store's client, as SlowStore. Null: the client.
  std::function<TestStore(ActorSystem& system, const TestStoreClients& store)> on_store = nullptr;
  // Called with every system that begins, before its cluster.
  std::function<void(ActorSystem& system)> on_system = nullptr;
};

class TestCluster {
 public:
  // What is still on its way to the store is lost.
  virtual ~TestCluster() { EndStore(); }

  // Returns when all nodes know each other, so a grain that is started now is on its owner, and stays there.
  void AddNodes(int count);
  // The index of a new compute node.
  virtual size_t AddNode() = 0;
  size_t size() const { return nodes_.size(); }

  Cluster& operator[](size_t node) { return *nodes_[node].cluster; }
  ActorSystem& system(size_t node) { return *nodes_[node].system; }

  // The node is away from one moment to the next.
  virtual void Crash(size_t node) = 0;
  // Another life of it, at the same address.
  virtual void Restart(size_t node) = 0;
  virtual void CrashStore() = 0;
  virtual void RestartStore() = 0;

  // Lets things happen until the future is ready; DeadlineExceeded if that takes longer.
  template <class T>
  FutureResult<T> Await(Future<T> future, absl::Duration within = absl::Seconds(60)) {
    if (!AwaitNode(future.node(), within)) {
      return absl::DeadlineExceededError("the test has waited long enough");
    }
    return future.Take();
  }
  // Asks until there is an answer: a question that was on its way to a node that has died is not answered.
  template <class A, class Q>
  absl::StatusOr<typename Q::Reply> AskUntilAnswered(size_t from, std::string_view identity, const Q& question,
                                                     int attempts = 30) {
    absl::StatusOr<typename Q::Reply> answer = absl::UnknownError("not asked");
    for (int i = 0; i < attempts && !answer.ok(); ++i) {
      answer = Await((*this)[from].Grain<A>(identity).Ask(system(from), Q(question), absl::Seconds(2)));
    }
    return answer;
  }

 protected:
  struct Node {
    ActorSystem* system = nullptr;
    Cluster* cluster = nullptr;
    std::string authority = {};
  };

  explicit TestCluster(TestClusterOptions options);

  // Codecs of a node.
  std::shared_ptr<const CodecRegistry> Codecs() const;
  // Makes a system the node of the store, or a compute node.
  void BeginStore(ActorSystem& system);
  // It is away.
  void EndStore() { *at_store_ = nullptr; }
  Cluster* BeginNode(ActorSystem& system, const std::string& store_authority);
  virtual bool AwaitNode(FutureNode& future, absl::Duration within) = 0;
  // Lets things happen until the condition is true. False if that takes longer.
  virtual bool AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration within) = 0;

  const TestClusterOptions options_;
  std::vector<Node> nodes_;

 private:
  const std::shared_ptr<TestBackend> backend_;
  bool is_first_store_ = true;
  // Shared with the nodes, which may outlive this.
  const std::shared_ptr<std::shared_ptr<EmbeddedClient>> at_store_ =
      std::make_shared<std::shared_ptr<EmbeddedClient>>();
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_TEST_CLUSTER_H_
