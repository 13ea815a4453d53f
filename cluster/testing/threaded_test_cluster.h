// ThreadedTestCluster: what TestClusters have in common whose nodes have threads and the real clock.
//
//   class GrpcTestCluster final : public ThreadedTestCluster {
//    public:
//     explicit GrpcTestCluster(TestClusterOptions options);            // RestartStore();
//     ~GrpcTestCluster() override { EndAll(); }
//
//    protected:
//     std::unique_ptr<ActorSystem> Begin(uint16_t& port) override;     // how they reach each other
//   };
//
// Thread safety: the thread of the test; what a node offers, from any.
#ifndef FRAKTOR_CLUSTER_TESTING_THREADED_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_THREADED_TEST_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class ThreadedTestCluster : public TestCluster {
 public:
  size_t AddNode() override;
  void Crash(size_t node) override;
  void Restart(size_t node) override;
  void CrashStore() override;
  void RestartStore() override;

  // For nodes of other processes.
  std::string store_authority() const;

 protected:
  using TestCluster::TestCluster;

  // A system named "cluster" with remoting, at this port of localhost; at 0, one that is free, which is then set.
  virtual std::unique_ptr<ActorSystem> Begin(uint16_t& port) = 0;
  // Ends all nodes, the store last. For the destructor of whoever has what they need.
  void EndAll();

  bool AwaitNode(FutureNode& future, absl::Duration within) override;
  bool AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration within) override;

 private:
  uint16_t store_port_ = 0;
  std::unique_ptr<ActorSystem> store_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<ActorSystem>> systems_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_THREADED_TEST_CLUSTER_H_
