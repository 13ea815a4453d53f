// A cluster with real threads: callers on threads of their own, batches that are read while grains end, nodes that go away
// while they are called.
#include "fraktor/cluster/testing/loopback_test_cluster.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

void RunWithThreads(void (*scenario)(TestCluster&)) {
  LoopbackTestCluster cluster(CounterCluster());
  scenario(cluster);
}

TEST(ClusterWithThreads, RunsOnOneNodeAndIsReachedFromAll) { RunWithThreads(RunsOnOneNodeAndIsReachedFromAll); }
TEST(ClusterWithThreads, KeepsTheOrderOfACaller) { RunWithThreads(KeepsTheOrderOfACaller); }
TEST(ClusterWithThreads, MovesWhenItsNodeLeaves) { RunWithThreads(MovesWhenItsNodeLeaves); }
TEST(ClusterWithThreads, ComesBackWhenItsNodeIsRestarted) { RunWithThreads(ComesBackWhenItsNodeIsRestarted); }
TEST(ClusterWithThreads, LosesNothingWhileItIsPassivated) { RunWithThreads(LosesNothingWhileItIsPassivated); }
TEST(ClusterWithThreads, FiltersCallsOfOtherNodes) {
  const FilteredCounters filters;
  LoopbackTestCluster cluster(filters.Options());
  FiltersCallsOfOtherNodes(cluster, filters);
}

constexpr int kGrains = 4;

// Which handling a call was: of which grain, under which token, the how manieth.
using Handling = std::tuple<int, uint64_t, int64_t>;

// Calls one grain after the other from one node, with some calls under way.
class Caller {
 public:
  Caller(TestCluster& cluster, size_t from) : cluster_(cluster), from_(from), last_(kGrains) {}

  void Run(int calls) {
    for (int i = 0; i < calls && wrong.empty(); ++i) {
      const int grain = i % kGrains;
      under_way_.emplace_back(
          grain,
          cluster_[from_].Grain<Counter>(absl::StrCat("g", grain)).Ask(cluster_.system(from_), Add{1}, kPatience));
      if (under_way_.size() >= 16) Take();
    }
    while (!under_way_.empty()) Take();
  }

  std::vector<Handling> handled = {};
  std::string wrong = {};

 private:
  static constexpr absl::Duration kPatience = absl::Minutes(1);

  void Take() {
    auto [grain, answer] = std::move(under_way_.front());
    under_way_.pop_front();
    const absl::StatusOr<Count> count = answer.Wait();
    if (!count.ok()) {
      wrong = count.status().ToString();
      return;
    }
    const std::pair<uint64_t, int64_t> seen(count->token, count->value);
    if (seen <= last_[grain]) wrong = absl::StrCat("call of g", grain, " has overtaken another one of its caller");
    last_[grain] = seen;
    handled.emplace_back(grain, count->token, count->value);
  }

  TestCluster& cluster_;
  const size_t from_;
  std::deque<std::pair<int, Future<Count>>> under_way_;
  std::vector<std::pair<uint64_t, int64_t>> last_;
};

// CLU-8, R40: several threads call the same grains, from their nodes and from others, while the grains are passivated all
// the time: each call is handled once, and those of a thread in order.
TEST(ClusterWithThreads, ServesManyThreadsWhileGrainsArePassivated) {
  constexpr int kCalls = 1000;
  LoopbackTestCluster cluster(CounterCluster());
  cluster.AddNodes(2);
  for (int g = 0; g < kGrains; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
  std::deque<Caller> callers;
  for (const size_t from : {0, 0, 1, 1}) callers.emplace_back(cluster, from);
  std::atomic<size_t> busy{callers.size()};  // Only a count: joining brings the rest.
  std::vector<std::thread> threads;
  for (Caller& caller : callers) {
    threads.emplace_back([&] {
      caller.Run(kCalls);
      busy.fetch_sub(1, std::memory_order_relaxed);
    });
  }
  for (int i = 0; busy.load(std::memory_order_relaxed) > 0; ++i) {
    const GrainKey key(Counter::kGrainKind, absl::StrCat("g", i % kGrains));
    for (size_t node = 0; node < 2; ++node) cluster[node].Passivate(key);
    // Some calls between one end and the next.
    EXPECT_TRUE(AddTo(cluster, i % 2, absl::StrCat("g", i % kGrains), 0).ok());
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Handling> handled;
  for (const Caller& caller : callers) {
    EXPECT_EQ(caller.wrong, "");
    EXPECT_EQ(caller.handled.size(), size_t{kCalls});
    handled.insert(handled.end(), caller.handled.begin(), caller.handled.end());
  }
  std::sort(handled.begin(), handled.end());
  EXPECT_EQ(std::adjacent_find(handled.begin(), handled.end()), handled.end()) << "one was handled for two calls";
  EXPECT_GT(cluster[0].calls_past_router() + cluster[1].calls_past_router(), 0u);
  EXPECT_GT(cluster[0].calls_past_router_in() + cluster[1].calls_past_router_in(), 0u);
}

// A node ends while threads call it from another one: every call ends, with an answer or an error, and when the node is
// back its grains are.
TEST(ClusterWithThreads, ANodeEndsWhileItIsCalled) {
  LoopbackTestCluster cluster(CounterCluster());
  cluster.AddNodes(2);
  for (int g = 0; g < kManyGrains; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
  ASSERT_GT(cluster[1].driver().Snapshot().activations, 0u);
  Cluster& caller = cluster[0];
  ActorSystem& system = cluster.system(0);
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> stop{false};  // Only a flag: joining brings the rest.
    std::atomic<int> answered{0};   // Only a count.
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        std::deque<Future<Count>> under_way;
        for (int g = t; !stop.load(std::memory_order_relaxed); g = (g + 1) % kManyGrains) {
          under_way.push_back(caller.Grain<Counter>(absl::StrCat("g", g)).Ask(system, Add{1}, absl::Milliseconds(200)));
          if (under_way.size() < 32) continue;
          if (under_way.front().Wait().ok()) answered.fetch_add(1, std::memory_order_relaxed);
          under_way.pop_front();
        }
        for (Future<Count>& one : under_way) one.Wait().IgnoreError();
      });
    }
    const auto await_answers = [&] {
      const int before = answered.load(std::memory_order_relaxed);
      while (answered.load(std::memory_order_relaxed) < before + 100) std::this_thread::yield();
    };
    await_answers();
    cluster.Crash(1);
    cluster.Restart(1);
    await_answers();
    stop.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    for (int g = 0; g < kManyGrains; ++g) {
      const absl::StatusOr<Count> count = cluster.AskUntilAnswered<Counter>(0, absl::StrCat("g", g), Add{1});
      ASSERT_TRUE(count.ok()) << count.status();
    }
  }
}

}  // namespace
}  // namespace fraktor
