#include "fraktor/cluster/testing/grpc_test_cluster.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/cluster/grain/grain_gate.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"

namespace fraktor {

// Its codec takes as long as the test wants.
struct Slow {
  int64_t n = 0;
};

namespace {

struct SlowEncoding {
  std::atomic<bool> has_begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_ended{false};
};
SlowEncoding& Encoding() {
  static SlowEncoding encoding;
  return encoding;
}

}  // namespace

template <>
struct Codec<Slow> {
  static constexpr std::string_view kManifest = "test.slow";
  static void Encode(const Slow& slow, Encoder& out) {
    SlowEncoding& encoding = Encoding();
    encoding.has_begun.store(true);
    encoding.has_begun.notify_all();
    encoding.may_end.wait(false);
    out.Value(slow.n);
    encoding.has_ended.store(true);
  }
  static Slow Decode(Decoder& in) { return {.n = in.Value<int64_t>()}; }
};

namespace {

class Sink : public Actor<Sink, Add, Slow> {
 public:
  static constexpr std::string_view kGrainKind = "sink";
  explicit Sink(const GrainContext&) {}
  Count On(Context&, const Add& add) { return {.value = add.n}; }
  void On(Context&, const Slow&) {}
};

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

// Who holds the gate goes on when the calls have left that were on their way past it: so none of them is sent to a node
// after what waits for that was taken back.
TEST(ClusterOverGrpc, CallsThatPassTheRouterHaveLeftWhenTheGateIsHeld) {
  TestClusterOptions options = CounterCluster();
  options.kinds = {GrainKindOf<Sink>()};
  options.codecs.Add<Slow>();
  GrpcTestCluster cluster(options);
  cluster.AddNodes(2);
  std::string there;
  for (int g = 0; there.empty(); ++g) {
    const std::string identity = absl::StrCat("g", g);
    ASSERT_TRUE(cluster.Await(cluster[0].Grain<Sink>(identity).Ask(cluster.system(0), Add{1}, absl::Seconds(20))).ok());
    if (cluster[1].driver().Local(GrainKey(Sink::kGrainKind, identity)) != nullptr) there = identity;
  }
  const uint64_t crossed = cluster[0].calls_past_router();
  std::thread caller([&] { cluster[0].Grain<Sink>(there).Tell(Slow{1}); });
  Encoding().has_begun.wait(false);
  std::thread waker([] {
    Encoding().may_end.store(true);
    Encoding().may_end.notify_all();
  });
  auto& gate = static_cast<GrainGate&>(*cluster[0].gate().remote_slot()->link);
  {
    const GrainGate::Hold hold(gate);
    EXPECT_TRUE(Encoding().has_ended.load());
    // From now on they go to the router.
    ASSERT_TRUE(cluster.Await(cluster[0].Grain<Sink>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20))).ok());
    EXPECT_EQ(cluster[0].calls_past_router(), crossed + 1);
  }
  caller.join();
  waker.join();
  // The answer may be here before the router has let go of the question.
  while (gate.IsAtRouter(GrainKey(Sink::kGrainKind, there))) std::this_thread::yield();
  ASSERT_TRUE(cluster.Await(cluster[0].Grain<Sink>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20))).ok());
  EXPECT_EQ(cluster[0].calls_past_router(), crossed + 2);
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
