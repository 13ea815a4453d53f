#include "fraktor/cluster/testing/grpc_test_cluster.h"

#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/testing/cluster_scenarios.h"

namespace fraktor {
namespace {

void RunOverGrpc(void (*scenario)(TestCluster&)) {
  TestClusterOptions options = CounterCluster();
  options.store.term = absl::Seconds(15);
  GrpcTestCluster cluster(options);
  scenario(cluster);
}

TEST(ClusterOverGrpc, RunsOnOneNodeAndIsReachedFromAll) { RunOverGrpc(RunsOnOneNodeAndIsReachedFromAll); }
TEST(ClusterOverGrpc, KeepsTheOrderOfACaller) { RunOverGrpc(KeepsTheOrderOfACaller); }
TEST(ClusterOverGrpc, MovesWhenItsNodeLeaves) { RunOverGrpc(MovesWhenItsNodeLeaves); }
TEST(ClusterOverGrpc, AJoinMovesNothing) { RunOverGrpc(AJoinMovesNothing); }
TEST(ClusterOverGrpc, ComesBackWhenItsNodeIsRestarted) { RunOverGrpc(ComesBackWhenItsNodeIsRestarted); }
TEST(ClusterOverGrpc, GoesOnWhileTheStoreIsAway) { RunOverGrpc(GoesOnWhileTheStoreIsAway); }
TEST(ClusterOverGrpc, LosesNothingWhileItIsPassivated) { RunOverGrpc(LosesNothingWhileItIsPassivated); }
TEST(ClusterOverGrpc, FiltersCallsOfOtherNodes) {
  const FilteredCounters filters;
  TestClusterOptions options = filters.Options();
  options.store.term = absl::Seconds(15);
  GrpcTestCluster cluster(options);
  FiltersCallsOfOtherNodes(cluster, filters);
}
TEST(ClusterOverGrpc, ComesBackElsewhereAfterACrash) {
  TestClusterOptions options = CounterCluster();
  options.store.term = absl::Seconds(4);
  GrpcTestCluster cluster(options);
  ComesBackElsewhereAfterACrash(cluster);
}

}  // namespace
}  // namespace fraktor
