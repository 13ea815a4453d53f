// LoopbackTestCluster: a TestCluster with threads and the real clock over a loopback: what threads do to each other in
// a cluster, without a library that ThreadSanitizer cannot look into.
//
//   LoopbackTestCluster cluster({.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
//   cluster.AddNodes(3);
//
// Thread safety: the thread of the test; what a node offers, from any.
#ifndef FRAKTOR_CLUSTER_TESTING_LOOPBACK_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_LOOPBACK_TEST_CLUSTER_H_

#include <cstdint>
#include <memory>

#include "fraktor/cluster/testing/threaded_test_cluster.h"
#include "fraktor/remote/transport/loopback_transport.h"

namespace fraktor::inline v0 {

class LoopbackTestCluster final : public ThreadedTestCluster {
 public:
  explicit LoopbackTestCluster(TestClusterOptions options);
  ~LoopbackTestCluster() override;

 protected:
  std::unique_ptr<ActorSystem> Begin(uint16_t& port) override;

 private:
  LoopbackNetwork network_;
  uint16_t next_port_ = 2552;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_LOOPBACK_TEST_CLUSTER_H_
