#include "fraktor/cluster/testing/loopback_test_cluster.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/transport/transport.h"

namespace fraktor::inline v0 {

LoopbackTestCluster::LoopbackTestCluster(TestClusterOptions options) : ThreadedTestCluster(std::move(options)) {
  RestartStore();
}

LoopbackTestCluster::~LoopbackTestCluster() { EndAll(); }

std::unique_ptr<ActorSystem> LoopbackTestCluster::Begin(uint16_t& port) {
  if (port == 0) port = next_port_++;
  ActorSystemOptions options;
  options.config.system_name = "cluster";
  options.config.remoting = RemotingConfig{.canonical_hostname = "localhost", .canonical_port = port};
  options.codecs = Codecs();
  options.workers = 2;
  options.log_level = LogLevel::kError;
  std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  std::unique_ptr<Transport> transport =
      network_.MakeTransport(PathAuthority::Create("pekko", "localhost", port).value(), system->toolbox()).value();
  const absl::StatusOr<Remoting*> remoting = Remoting::Start(*system, std::move(transport), options_.remote);
  EXPECT_TRUE(remoting.ok()) << remoting.status();
  return system;
}

}  // namespace fraktor::inline v0
