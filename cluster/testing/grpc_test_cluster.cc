#include "fraktor/cluster/testing/grpc_test_cluster.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/remote/grpc/grpc_security.h"

namespace fraktor::inline v0 {

GrpcTestCluster::GrpcTestCluster(TestClusterOptions options) : TestCluster(std::move(options)) { RestartStore(); }

GrpcTestCluster::~GrpcTestCluster() {
  for (std::unique_ptr<ActorSystem>& system : systems_) system.reset();
  store_.reset();
}

// At the same port as before, if there was one.
std::unique_ptr<ActorSystem> GrpcTestCluster::Begin(uint16_t& port) {
  GrpcNodeOptions node{.name = "cluster",
                       .host = "localhost",
                       .transport = {.bind_port = port, .security = GrpcSecurity::InsecureLoopback()}};
  node.remote = options_.remote;
  node.system.codecs = Codecs();
  node.system.workers = 2;
  node.system.log_level = LogLevel::kError;
  absl::StatusOr<std::unique_ptr<ActorSystem>> system = StartGrpcNode(std::move(node));
  EXPECT_TRUE(system.ok()) << system.status();
  port = (*system)->options().config.remoting->canonical_port;
  return *std::move(system);
}

size_t GrpcTestCluster::AddNode() {
  const size_t node = nodes_.size();
  nodes_.emplace_back();
  ports_.push_back(0);
  systems_.emplace_back();
  Restart(node);
  return node;
}

void GrpcTestCluster::Restart(size_t node) {
  systems_[node] = Begin(ports_[node]);
  nodes_[node] = Node{.system = systems_[node].get(),
                      .cluster = BeginNode(*systems_[node], store_authority()),
                      .authority = absl::StrCat("localhost:", ports_[node])};
}

std::string GrpcTestCluster::store_authority() const { return absl::StrCat("localhost:", store_port_); }

// It ends without having left.
void GrpcTestCluster::Crash(size_t node) {
  nodes_[node].cluster = nullptr;
  nodes_[node].system = nullptr;
  systems_[node].reset();
}

void GrpcTestCluster::CrashStore() {
  EndStore();
  store_.reset();
}

void GrpcTestCluster::RestartStore() {
  store_ = Begin(store_port_);
  BeginStore(*store_);
}

bool GrpcTestCluster::AwaitNode(FutureNode& future, absl::Duration within) {
  return future_internal::BlockUntilReady(future, within);
}

}  // namespace fraktor::inline v0
