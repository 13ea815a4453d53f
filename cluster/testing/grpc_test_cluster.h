// GrpcTestCluster: a TestCluster over gRPC, with threads and the real clock.
//
//   GrpcTestCluster cluster({.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
//   cluster.AddNodes(3);
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class GrpcTestCluster final : public TestCluster {
 public:
  explicit GrpcTestCluster(TestClusterOptions options);
  ~GrpcTestCluster() override;

  size_t AddNode() override;
  void Crash(size_t node) override;
  void Restart(size_t node) override;
  void CrashStore() override;
  void RestartStore() override;

  // For nodes of other processes.
  std::string store_authority() const;

 protected:
  bool AwaitNode(FutureNode& future, absl::Duration within) override;

 private:
  std::unique_ptr<ActorSystem> Begin(uint16_t& port);

  uint16_t store_port_ = 0;
  std::unique_ptr<ActorSystem> store_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<ActorSystem>> systems_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_
