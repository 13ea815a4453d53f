// A node of a cluster for tests, in a process of its own, which hosts counters. It leaves when its input has a line or ends,
// and is gone as soon as it has left and its system has ended.
//
//   leaving_node_program STORE          // the authority of the store's node; prints "ready" when it is a member
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/remote/grpc/grpc_node.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor {
namespace {

absl::Status Run(const std::string& store_authority) {
  GrpcNodeOptions node{
      .name = "cluster", .host = "localhost", .transport = {.security = GrpcSecurity::InsecureLoopback()}};
  TestClusterOptions counters = CounterCluster();
  FRAKTOR_ASSIGN_OR_RETURN(node.system.codecs, counters.codecs.Add(ClusterCodecs()).Add(EmbeddedCodecs()).Build());
  node.system.log_level = LogLevel::kError;
  FRAKTOR_ASSIGN_OR_RETURN(const std::unique_ptr<ActorSystem> system, StartGrpcNode(std::move(node)));
  FRAKTOR_ASSIGN_OR_RETURN(const auto store, EmbeddedClient::Make(*system, {.authority = store_authority}));
  FRAKTOR_ASSIGN_OR_RETURN(
      Cluster* const cluster,
      Cluster::Start(*system, {.kinds = counters.kinds, .membership = store, .lock = store, .storage = store}));
  FRAKTOR_RETURN_IF_ERROR(cluster->Joined().Wait());
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  FRAKTOR_RETURN_IF_ERROR(cluster->Leave().Wait());
  Future<void> ended = system->WhenTerminated();
  system->Terminate();
  FRAKTOR_RETURN_IF_ERROR(ended.Wait());
  // Nothing has time to do anything any more.
  _exit(0);
}

}  // namespace
}  // namespace fraktor

int main(int argc, char** argv) {
  const absl::Status ran = fraktor::Run(argc > 1 ? argv[1] : "");
  std::cerr << ran << "\n";
  return 1;
}
