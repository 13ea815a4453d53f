#include "fraktor/cluster/testing/sim_test_cluster.h"

#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint16_t kPort = 2552;

class NetworkPart final : public SimulationPart {
 public:
  NetworkPart(RuntimeToolbox& toolbox, const SimNetworkOptions& options) : network(toolbox, options) {}
  SimNetwork network;
};

std::string HostOf(size_t node) { return absl::StrCat("n", node, ".test"); }
const std::string& StoreHost() {
  static const auto& host = *new std::string("store.test");
  return host;
}

}  // namespace

SimNetwork& SimTestCluster::MakeNetwork(Simulation& sim, SimNetworkOptions options) {
  options.trace = &sim.trace();
  return sim.AddPart<NetworkPart>(sim.toolbox(), options).network;
}

SimTestCluster::SimTestCluster(Simulation& sim, TestClusterOptions options, SimNetworkOptions network)
    : TestCluster(std::move(options)), sim_(sim), network_(MakeNetwork(sim, network)) {
  RestartStore();
}

PathAuthority SimTestCluster::AddressOf(const std::string& host) {
  return PathAuthority::Create("pekko", host, kPort).value();
}

ActorSystem& SimTestCluster::Begin(const std::string& host) {
  TestKitOptions kit;
  kit.system.config.system_name = "cluster";
  kit.system.config.remoting = RemotingConfig{.canonical_hostname = host, .canonical_port = kPort};
  kit.system.codecs = Codecs();
  ActorSystem& system = sim_.AddSystem(kit).system();
  RemoteOptions remote = options_.remote;
  remote.system_uid = network_.NextUid();
  const absl::StatusOr<Remoting*> remoting = Remoting::Start(system, network_.MakeTransport(AddressOf(host)), remote);
  EXPECT_TRUE(remoting.ok()) << remoting.status();
  return system;
}

size_t SimTestCluster::AddNode() {
  const size_t node = nodes_.size();
  nodes_.emplace_back();
  Restart(node);
  return node;
}

void SimTestCluster::Restart(size_t node) {
  ActorSystem& system = Begin(HostOf(node));
  nodes_[node] = Node{.system = &system,
                      .cluster = BeginNode(system, absl::StrCat(StoreHost(), ":", kPort)),
                      .authority = absl::StrCat(HostOf(node), ":", kPort)};
}

void SimTestCluster::Crash(size_t node) {
  network_.Crash(AddressOf(HostOf(node)));
  // What it does now nobody hears.
  nodes_[node].system->Terminate();
}

void SimTestCluster::CrashStore() {
  EndStore();
  network_.Crash(AddressOf(StoreHost()));
  store_->Terminate();
}

void SimTestCluster::RestartStore() {
  store_ = &Begin(StoreHost());
  BeginStore(*store_);
}

void SimTestCluster::Cut(size_t a, size_t b) { network_.Cut(AddressOf(HostOf(a)), AddressOf(HostOf(b))); }

void SimTestCluster::CutFromStore(size_t node) { network_.Cut(AddressOf(HostOf(node)), AddressOf(StoreHost())); }

void SimTestCluster::Heal() { network_.Heal(); }

bool SimTestCluster::AwaitNode(FutureNode& future, absl::Duration within) {
  return AwaitTrue([&future] { return future.IsReady(); }, within);
}

bool SimTestCluster::AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration within) {
  return sim_.RunUntil(condition, within);
}

}  // namespace fraktor::inline v0
