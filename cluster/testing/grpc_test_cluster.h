// GrpcTestCluster: a TestCluster over gRPC, with threads and the real clock.
//
//   GrpcTestCluster cluster({.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
//   cluster.AddNodes(3);
//
// Thread safety: the thread of the test; what a node offers, from any.
#ifndef FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_

#include <cstdint>
#include <memory>

#include "fraktor/cluster/testing/threaded_test_cluster.h"

namespace fraktor::inline v0 {

class GrpcTestCluster final : public ThreadedTestCluster {
 public:
  explicit GrpcTestCluster(TestClusterOptions options);
  ~GrpcTestCluster() override;

 protected:
  std::unique_ptr<ActorSystem> Begin(uint16_t& port) override;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_GRPC_TEST_CLUSTER_H_
