// A cluster with real threads: callers on threads of their own, batches that are read while grains end, nodes that go
// away while they are called.
#include "fraktor/cluster/testing/loopback_test_cluster.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

// Nobody is taken for dead because the machine is busy.
TestClusterOptions Patient(TestClusterOptions options) {
  options.store.term = absl::Minutes(1);
  return options;
}

void RunWithThreads(void (*scenario)(TestCluster&)) {
  LoopbackTestCluster cluster(Patient(CounterCluster()));
  scenario(cluster);
}

TEST(ClusterWithThreads, RunsOnOneNodeAndIsReachedFromAll) { RunWithThreads(RunsOnOneNodeAndIsReachedFromAll); }
TEST(ClusterWithThreads, KeepsTheOrderOfACaller) { RunWithThreads(KeepsTheOrderOfACaller); }
TEST(ClusterWithThreads, MovesWhenItsNodeLeaves) { RunWithThreads(MovesWhenItsNodeLeaves); }
TEST(ClusterWithThreads, ComesBackWhenItsNodeIsRestarted) { RunWithThreads(ComesBackWhenItsNodeIsRestarted); }
TEST(ClusterWithThreads, LosesNothingWhileItIsPassivated) { RunWithThreads(LosesNothingWhileItIsPassivated); }
TEST(ClusterWithThreads, FiltersCallsOfOtherNodes) {
  const FilteredCounters filters;
  LoopbackTestCluster cluster(Patient(filters.Options()));
  FiltersCallsOfOtherNodes(cluster, filters);
}

constexpr int kGrains = 4;

// Which handling a call was: of which grain, under which token, the how manieth.
using Handling = std::tuple<int, uint64_t, int64_t>;

// Calls one grain after the other from one node, with some calls under way, and has some passivated.
class Caller {
 public:
  Caller(TestCluster& cluster, size_t from) : cluster_(cluster), from_(from), last_(kGrains) {}

  void Run(int calls) {
    for (int i = 0; i < calls && wrong.empty(); ++i) {
      const int grain = i % kGrains;
      const std::string identity = absl::StrCat("g", grain);
      under_way_.emplace_back(grain,
                              cluster_[from_].Grain<Counter>(identity).Ask(cluster_.system(from_), Add{1}, kPatience));
      if (i % 19 == 0) {
        for (size_t node = 0; node < cluster_.size(); ++node)
          cluster_[node].Passivate(GrainKey(Counter::kGrainKind, identity));
      }
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

// CLU-8: several threads call the same grains, from their nodes and from others, while the grains are passivated all
// the time: each call is handled once, and those of a thread in order.
TEST(ClusterWithThreads, ServesManyThreadsWhileGrainsArePassivated) {
  constexpr int kCalls = 1000;
  LoopbackTestCluster cluster(Patient(CounterCluster()));
  cluster.AddNodes(2);
  for (int g = 0; g < kGrains; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
  std::deque<Caller> callers;
  for (const size_t from : {0, 0, 1, 1}) callers.emplace_back(cluster, from);
  std::vector<std::thread> threads;
  for (Caller& caller : callers) threads.emplace_back([&caller] { caller.Run(kCalls); });
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
  LoopbackTestCluster cluster(Patient(CounterCluster()));
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
          under_way.push_back(caller.Grain<Counter>(absl::StrCat("g", g)).Ask(system, Add{1}, absl::Milliseconds(500)));
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

// Looks for the cluster that it is in, from its first moment on.
class Native : public Actor<Native, Add> {
 public:
  static constexpr std::string_view kGrainKind = "native";
  explicit Native(const GrainContext&) {}
  absl::Status PreStart(Context& context) {
    if (Cluster::Of(context.system()) == nullptr) return absl::InternalError("there is no cluster");
    started.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  Count On(Context&, const Add&) { return {}; }

  static inline std::atomic<int> started{0};  // Only a count: who reads it learns nothing else by it.
};

// Others may know the node of old, and call it as soon as it has an actor that they can call.
TEST(ClusterWithThreads, IsCalledWhileItStarts) {
  TestClusterOptions options = Patient(CounterCluster());
  options.kinds = {GrainKindOf<Native>()};
  std::atomic<bool> is_met{true};  // Only a flag.
  options.on_system = [&is_met](ActorSystem& system) {
    const auto is_associated = [](const PeerInfo& peer) { return peer.is_associated; };
    while (!is_met.load(std::memory_order_relaxed)) {
      const std::vector<PeerInfo> peers = Remoting::Of(system)->Peers();
      is_met.store(std::any_of(peers.begin(), peers.end(), is_associated), std::memory_order_relaxed);
    }
  };
  LoopbackTestCluster cluster(options);
  cluster.AddNodes(2);
  for (int g = 0; g < kManyGrains; ++g) {
    ASSERT_TRUE(cluster.AskUntilAnswered<Native>(0, absl::StrCat("g", g), Add{1}).ok());
  }
  const ActorRef router =
      cluster.system(0).Resolve(absl::StrCat("pekko://cluster@", cluster[1].authority(), "/system/grains")).value();
  std::atomic<bool> stop{false};  // Only a flag.
  std::thread calling([&] {
    for (int g = 0; !stop.load(std::memory_order_relaxed); g = (g + 1) % kManyGrains) {
      Tell(router, LocateGrain{.key = GrainKey(Native::kGrainKind, absl::StrCat("g", g))});
      std::this_thread::yield();
    }
  });
  for (int round = 0; round < 5; ++round) {
    cluster.Crash(1);
    is_met.store(false, std::memory_order_relaxed);
    const int before = Native::started.load(std::memory_order_relaxed);
    cluster.Restart(1);
    // This thread has no more to do with it.
    while (Native::started.load(std::memory_order_relaxed) == before) std::this_thread::yield();
  }
  stop.store(true, std::memory_order_relaxed);
  calling.join();
}

}  // namespace
}  // namespace fraktor
