// SimTestCluster: a TestCluster on a simulated network, in virtual time.
//
//   Simulate({.seeds = 20}, [&](Simulation& sim) {
//     SimTestCluster cluster(sim, {.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
//     cluster.AddNodes(3);
//     cluster.Cut(0, 1);                                    // they do not hear each other
//     cluster.CutFromStore(2);
//     cluster.Heal();
//   });
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_TESTING_SIM_TEST_CLUSTER_H_
#define FRAKTOR_CLUSTER_TESTING_SIM_TEST_CLUSTER_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/remote/sim/sim_network.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class SimTestCluster final : public TestCluster {
 public:
  // The store begins at once.
  SimTestCluster(Simulation& sim, TestClusterOptions options, SimNetworkOptions network = {});

  size_t AddNode() override;
  void Crash(size_t node) override;
  void Restart(size_t node) override;
  void CrashStore() override;
  void RestartStore() override;

  // Nothing gets through between the two, in either direction.
  void Cut(size_t a, size_t b);
  void CutFromStore(size_t node);
  void Heal();

  SimNetwork& network() { return network_; }

 protected:
  bool AwaitNode(FutureNode& future, absl::Duration within) override;
  bool AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration within) override;

 private:
  static SimNetwork& MakeNetwork(Simulation& sim, SimNetworkOptions options);
  ActorSystem& Begin(const std::string& host);
  static PathAuthority AddressOf(const std::string& host);

  Simulation& sim_;
  SimNetwork& network_;
  ActorSystem* store_ = nullptr;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_TESTING_SIM_TEST_CLUSTER_H_
