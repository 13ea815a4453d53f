#include "fraktor/cluster/testing/grpc_test_cluster.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/remote/grpc/grpc_security.h"

namespace fraktor::inline v0 {

GrpcTestCluster::GrpcTestCluster(TestClusterOptions options) : ThreadedTestCluster(std::move(options)) {
  RestartStore();
}

GrpcTestCluster::~GrpcTestCluster() { EndAll(); }

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

}  // namespace fraktor::inline v0
