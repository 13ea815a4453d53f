#include "fraktor/cluster/grain/cluster_metrics.h"

#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

MetricsSnapshot SnapshotOf(TestCluster& cluster, size_t node) {
  ActorSystem& system = cluster.system(node);
  return system.hub().Snapshot(system.toolbox().Now());
}

// -1 if there is none.
double ValueOf(TestCluster& cluster, size_t node, std::string_view name, const MetricLabels& labels = {}) {
  const MetricsSnapshot snapshot = SnapshotOf(cluster, node);
  const Metric* const metric = snapshot.Find(name, labels);
  return metric == nullptr ? -1 : metric->value;
}

const MetricLabels kOfCounters = {{"kind", "counter"}};
const MetricLabels kStarted = {{"kind", "counter"}, {"outcome", "started"}};
const MetricLabels kFailed = {{"kind", "counter"}, {"outcome", "failed"}};

TEST(ClusterMetrics, FollowMembersThatComeAndGo) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNode();
    EXPECT_EQ(ValueOf(cluster, 0, kClusterJoined), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterMembers, {{"state", "up"}}), 0);
    cluster.AddNodes(2);
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(ValueOf(cluster, 0, kClusterJoined), 1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterMembers, {{"state", "up"}}), 3);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterMembers, {{"state", "leaving"}}), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterTopologyEpoch), static_cast<double>(cluster[0].topology()->epoch()));
    ASSERT_TRUE(cluster.Await(cluster[2].Leave()).ok());
    EXPECT_EQ(ValueOf(cluster, 0, kClusterMembers, {{"state", "up"}}), 2);
    EXPECT_EQ(ValueOf(cluster, 2, kClusterJoined), 0);
  });
}

TEST(ClusterMetrics, CountGrainsThatComeAndGo) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterGrainsActive, kOfCounters), 0);
    for (int g = 0; g < 3; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
    EXPECT_EQ(ValueOf(cluster, 0, kClusterGrainsActive, kOfCounters), 3);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterActivations, kStarted), 3);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterActivations, kFailed), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterPassivations), 0);
    cluster[0].Passivate(GrainKey(Counter::kGrainKind, "g1"));
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(ValueOf(cluster, 0, kClusterGrainsActive, kOfCounters), 2);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterPassivations), 1);
    ASSERT_TRUE(AddTo(cluster, 0, "g1", 1).ok());
    EXPECT_EQ(ValueOf(cluster, 0, kClusterGrainsActive, kOfCounters), 3);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterActivations, kStarted), 4);
  });
}

TEST(ClusterMetrics, CountGrainsThatCannotBeMade) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.kinds[0].make = [](const GrainContext&) { return PropsPtr(); };
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(1);
    EXPECT_FALSE(AddTo(cluster, 0, "g", 1).ok());
    EXPECT_GE(ValueOf(cluster, 0, kClusterActivations, kFailed), 1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterActivations, kStarted), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterGrainsActive, kOfCounters), 0);
    EXPECT_GE(ValueOf(cluster, 0, kClusterLookupFailures), 1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsRefused), 1);
  });
}

TEST(ClusterMetrics, CountCalls) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterPidCacheSize), 1);
    ASSERT_TRUE(AddTo(cluster, 0, there, 1).ok());
    EXPECT_GE(ValueOf(cluster, 0, kClusterCallsPastRouter, {{"direction", "out"}}), 1);
    EXPECT_GE(ValueOf(cluster, 1, kClusterCallsPastRouter, {{"direction", "in"}}), 1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsWaiting), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsRetried), 0);
    // Given back when the node is no member any more, and answered from here.
    cluster.Crash(1);
    sim.Advance(absl::Seconds(1));
    Future<Count> answer = cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(60));
    ASSERT_TRUE(cluster.Await(std::move(answer)).ok());
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsRetried), 1);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterPidCacheSize), 0);
    // Nobody finds out where the other one is.
    cluster.CrashStore();
    answer = cluster[0].Grain<Counter>("new").Ask(cluster.system(0), Add{1}, absl::Seconds(3));
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsWaiting), 1);
    EXPECT_FALSE(cluster.Await(std::move(answer)).ok());
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsWaiting), 0);
    EXPECT_EQ(ValueOf(cluster, 0, kClusterCallsRefused), 1);
  });
}

// What a filter refuses is no error of the cluster.
TEST(ClusterMetrics, CountCallsThatAFilterRefuses) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    const FilteredCounters filters;
    SimTestCluster cluster(sim, filters.Options());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    // Where it comes in, and where it goes out.
    EXPECT_FALSE(AddTo(cluster, 0, there, -10).ok());
    EXPECT_FALSE(AddTo(cluster, 0, there, -100).ok());
    for (size_t node = 0; node < 2; ++node) {
      EXPECT_EQ(ValueOf(cluster, node, kClusterCallsRefusedByFilter), 1);
      EXPECT_EQ(ValueOf(cluster, node, kClusterCallsRefused), 0);
    }
  });
}

TEST(ClusterMetrics, AreOnThePage) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(1);
    ASSERT_TRUE(AddTo(cluster, 0, "g", 1).ok());
    const std::string page = ToPrometheusText(SnapshotOf(cluster, 0));
    for (const char* const line :
         {"# HELP cluster_members Members of the cluster that this node knows of, by state.\n# TYPE cluster_members "
          "gauge\n",
          "cluster_members{state=\"leaving\"} 0\n", "cluster_members{state=\"up\"} 1\n", "cluster_joined 1\n",
          "cluster_grains_active{kind=\"counter\"} 1\n", "# TYPE cluster_activations_total counter\n",
          "cluster_activations_total{kind=\"counter\",outcome=\"started\"} 1\n",
          "# TYPE cluster_passivations_total counter\n", "# TYPE cluster_lookup_failures_total counter\n",
          "cluster_calls_waiting 0\n", "cluster_calls_retried_total 0\n", "cluster_calls_refused_total 0\n",
          "cluster_calls_refused_by_filter_total 0\n", "cluster_calls_past_router_total{direction=\"in\"} 0\n",
          "cluster_calls_past_router_total{direction=\"out\"} 0\n", "cluster_pid_cache_size 0\n",
          "cluster_topology_epoch "}) {
      EXPECT_TRUE(absl::StrContains(page, line)) << line << "\nin\n" << page;
    }
  });
}

}  // namespace
}  // namespace fraktor
