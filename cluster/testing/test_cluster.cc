#include "fraktor/cluster/testing/test_cluster.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/identity/cluster_topology.h"

namespace fraktor::inline v0 {

absl::Status TestBackend::Write(const EmbeddedChanges& changes) {
  if (!failure_.ok()) return failure_;
  state_.exists = true;
  if (changes.token_limit.has_value()) state_.token_limit = *changes.token_limit;
  if (changes.epoch.has_value()) {
    state_.epoch = *changes.epoch;
    state_.members = changes.members;
  }
  for (const auto& [key, entry] : changes.activations) {
    std::erase_if(state_.activations, [&key = key](const auto& stored) { return stored.first == key; });
    if (entry.has_value()) state_.activations.emplace_back(key, *entry);
  }
  return absl::OkStatus();
}

TestCluster::TestCluster(TestClusterOptions options)
    : options_(std::move(options)), backend_(std::make_shared<TestBackend>()) {}

std::shared_ptr<const CodecRegistry> TestCluster::Codecs() const {
  CodecSetup codecs = options_.codecs;
  codecs.Add(ClusterCodecs()).Add(EmbeddedCodecs());
  return codecs.Build().value();
}

void TestCluster::AddNodes(int count) {
  for (int i = 0; i < count; ++i) AddNode();
  const auto knows_all = [this](const Node& node) {
    const ClusterTopologyPtr topology = node.cluster->driver().topology();
    return std::all_of(nodes_.begin(), nodes_.end(), [&topology](const Node& other) {
      return other.cluster == nullptr || topology->FindAuthority(other.authority) != nullptr;
    });
  };
  EXPECT_TRUE(AwaitTrue(
      [&] {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const Node& node) { return node.cluster == nullptr || knows_all(node); });
      },
      absl::Seconds(60)))
      << "not all nodes know each other";
}

void TestCluster::BeginStore(ActorSystem& system) {
  if (options_.on_system != nullptr) options_.on_system(system);
  EmbeddedStoreOptions store = options_.store;
  if (options_.is_forgetful) {
    store.is_new = is_first_store_;
  } else if (store.backend == nullptr) {
    store.backend = backend_;
  }
  is_first_store_ = false;
  const absl::Status started = EmbeddedStore::Start(system, store);
  ASSERT_TRUE(started.ok()) << started;
  if (options_.on_store != nullptr) *at_store_ = EmbeddedClient::Make(system).value();
}

Cluster* TestCluster::BeginNode(ActorSystem& system, const std::string& store_authority) {
  if (options_.on_system != nullptr) options_.on_system(system);
  EmbeddedClientOptions client = options_.client;
  client.authority = store_authority;
  const std::shared_ptr<EmbeddedClient> store = EmbeddedClient::Make(system, client).value();
  ClusterOptions cluster = options_.cluster;
  cluster.kinds = options_.kinds;
  TestStore parts{.membership = store, .lock = store, .storage = store};
  if (options_.on_store != nullptr) {
    parts = options_.on_store(system, {.of_node = store, .of_store = [at_store = at_store_] { return *at_store; }});
  }
  cluster.membership = std::move(parts.membership);
  cluster.lock = std::move(parts.lock);
  cluster.storage = std::move(parts.storage);
  // Crash ends systems, and nobody is to hear of it.
  cluster.leaves_on_shutdown = false;
  return Cluster::Start(system, cluster).value();
}

}  // namespace fraktor::inline v0
