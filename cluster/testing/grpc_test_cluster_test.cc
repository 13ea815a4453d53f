#include "fraktor/cluster/testing/grpc_test_cluster.h"

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/utils/future/future.h"

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
// CLU-8: what comes from another node while a grain is being ended is not lost, whatever threads do when.
TEST(ClusterOverGrpc, LosesNothingWhileItIsPassivated) {
  GrpcTestCluster cluster(CounterCluster());
  cluster.AddNodes(2);
  std::string there;
  for (int g = 0; there.empty(); ++g) {
    const std::string identity = absl::StrCat("g", g);
    ASSERT_TRUE(AddTo(cluster, 0, identity, 1).ok());
    if (cluster[1].driver().Local(GrainKey(Counter::kGrainKind, identity)) != nullptr) there = identity;
  }
  const GrainKey key(Counter::kGrainKind, there);
  std::deque<Future<Count>> answers;
  std::set<uint64_t> tokens;
  const auto take = [&] {
    const absl::StatusOr<Count> count = cluster.Await(std::move(answers.front()));
    answers.pop_front();
    ASSERT_TRUE(count.ok()) << count.status();
    tokens.insert(count->token);
  };
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    answers.push_back(cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20)));
    if (i % 20 == 0) cluster[1].driver().Passivate(key);
    if (answers.size() >= 16) take();
  }
  while (!answers.empty() && !HasFailure()) take();
  EXPECT_GT(tokens.size(), 1u);
  EXPECT_GT(cluster[1].calls_past_router_in(), 0u);
}
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
