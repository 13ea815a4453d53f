#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {
namespace {

struct Count {
  int64_t value = 0;
  uint64_t token = 0;
  std::string path;
};
struct Add {
  using Reply = Count;
  int64_t n = 0;
};
struct Quit {};

class Counter : public Actor<Counter, Add, Quit> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const GrainContext& grain) : token_(grain.token) {}

  Count On(Context& context, const Add& add) {
    sum_ += add.n;
    return {.value = sum_, .token = token_, .path = context.Path()};
  }
  void On(Context& context, const Quit&) { context.Stop(); }

 private:
  const uint64_t token_;
  int64_t sum_ = 0;
};

// Nobody hosts it.
class Nowhere : public Actor<Nowhere, Add> {
 public:
  static constexpr std::string_view kGrainKind = "nowhere";
  explicit Nowhere(const GrainContext&) {}
  Count On(Context&, const Add&) { return {}; }
};

// Nodes of one cluster in one process.
class Nodes {
 public:
  explicit Nodes(Simulation& sim, int count, const ClusterOptions& options = {}) : sim_(sim) {
    membership_ = std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = absl::Seconds(10)});
    store_ = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    for (int i = 0; i < count; ++i) Join(options);
    sim.Advance(absl::Seconds(1));
  }

  Cluster& Join(ClusterOptions options) {
    TestKitOptions kit;
    kit.system.config.system_name = absl::StrCat("node", clusters_.size());
    TestKit& made = clusters_.empty() ? static_cast<TestKit&>(sim_) : sim_.AddSystem(kit);
    systems_.push_back(&made.system());
    options.authority = absl::StrCat("n", clusters_.size(), ":1");
    if (options.kinds.empty()) options.kinds = {GrainKindOf<Counter>()};
    options.membership = membership_;
    options.lock = store_;
    options.storage = store_;
    options.peers = peers_;
    clusters_.push_back(Cluster::Start(made.system(), options).value());
    return *clusters_.back();
  }

  template <class A = Counter>
  absl::StatusOr<Count> AddTo(size_t node, std::string_view identity, int64_t n) {
    Future<Count> asking = clusters_[node]->Grain<A>(identity).Ask(*systems_[node], Add{n}, absl::Seconds(20));
    sim_.RunUntil([&] { return asking.IsReady(); }, absl::Seconds(30));
    return asking.Take();
  }

  Cluster& operator[](size_t i) { return *clusters_[i]; }
  ActorSystem& system(size_t i) { return *systems_[i]; }
  size_t size() const { return clusters_.size(); }
  MemoryPlacementStore& store() { return *store_; }

 private:
  Simulation& sim_;
  std::shared_ptr<MemoryMembership> membership_;
  std::shared_ptr<MemoryPlacementStore> store_;
  const std::shared_ptr<LocalGrainPeers> peers_ = std::make_shared<LocalGrainPeers>();
  std::vector<Cluster*> clusters_;
  std::vector<ActorSystem*> systems_;
};

// CLU-12: asking for a grain starts it on its owner and delivers the message, from any node.
TEST(Grain, RunsOnOneNodeAndIsReachedFromAll) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Nodes nodes(sim, 3);
    for (int g = 0; g < 12; ++g) {
      const std::string identity = absl::StrCat("g", g);
      std::string path;
      for (size_t from = 0; from < nodes.size(); ++from) {
        const absl::StatusOr<Count> count = nodes.AddTo(from, identity, 1);
        ASSERT_TRUE(count.ok()) << count.status();
        EXPECT_EQ(count->value, static_cast<int64_t>(from) + 1) << "one actor, whoever asks";
        if (from == 0) path = count->path;
        EXPECT_EQ(count->path, path);
      }
    }
    size_t running = 0;
    for (size_t i = 0; i < nodes.size(); ++i) running += nodes[i].driver().Snapshot().activations;
    EXPECT_EQ(running, 12u);
  });
}

// Messages of one caller arrive in order, also those that come before the grain is there.
TEST(Grain, GetsMessagesInOrder) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Nodes nodes(sim, 3);
    const GrainRef<Counter> grain = nodes[1].Grain<Counter>("alice");
    std::vector<Future<Count>> answers;
    for (int64_t i = 0; i < 50; ++i) answers.push_back(grain.Ask(nodes.system(1), Add{1}, absl::Seconds(20)));
    sim.Advance(absl::Seconds(5));
    for (size_t i = 0; i < answers.size(); ++i) {
      ASSERT_TRUE(answers[i].IsReady());
      const absl::StatusOr<Count> count = answers[i].Take();
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->value, static_cast<int64_t>(i) + 1);
    }
  });
}

// CLU-8: idle grains end, and come back with a higher token when they are needed.
TEST(Grain, IsPassivatedAndComesBack) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.placement = {.placement = {.idle_ttl = absl::Seconds(30)}}});
    const Count first = nodes.AddTo(0, "alice", 5).value();
    sim.Advance(absl::Seconds(20));
    EXPECT_EQ(nodes.AddTo(1, "alice", 1).value().value, 6) << "a use counts, from wherever";
    sim.Advance(absl::Seconds(20));
    EXPECT_EQ(nodes.AddTo(0, "alice", 1).value().value, 7);
    sim.Advance(absl::Seconds(40));
    EXPECT_EQ(nodes.store().activations(), 0u);
    const Count second = nodes.AddTo(0, "alice", 1).value();
    EXPECT_EQ(second.value, 1);
    EXPECT_GT(second.token, first.token);
  });
}

// One that ends by itself is started anew by the next message.
TEST(Grain, ComesBackAfterItHasEndedByItself) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Nodes nodes(sim, 2);
    ASSERT_TRUE(nodes.AddTo(0, "alice", 5).ok());
    nodes[0].Grain<Counter>("alice").Tell(Quit{});
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(nodes.AddTo(1, "alice", 1).value().value, 1);
  });
}

// A member that leaves hands over: its grains are found elsewhere.
TEST(Grain, MovesWhenItsNodeLeaves) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Nodes nodes(sim, 3);
    for (int g = 0; g < 12; ++g) ASSERT_TRUE(nodes.AddTo(0, absl::StrCat("g", g), 1).ok());
    Future<void> left = nodes[1].Leave();
    sim.Advance(absl::Seconds(5));
    ASSERT_TRUE(left.IsReady());
    EXPECT_EQ(nodes[1].driver().Snapshot().activations, 0u);
    for (int g = 0; g < 12; ++g) {
      const absl::StatusOr<Count> count = nodes.AddTo(0, absl::StrCat("g", g), 1);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->path.find("node1"), std::string::npos) << count->path;
    }
  });
}

// CLU-11: a kind that nobody hosts is an error, at once, and a dead letter.
TEST(Grain, AnswersWithAnErrorWhereNobodyHostsTheKind) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    Nodes nodes(sim, 1);
    sim.ExpectDeadLetters<Add>(1, [&] {
      const absl::StatusOr<Count> count = nodes.AddTo<Nowhere>(0, "x", 1);
      EXPECT_EQ(ErrorKindOf<LookupError>(count.status()), LookupError::kUnknownKind) << count.status();
    });
  });
}

TEST(Grain, RefusesAClusterWithoutParts) {
  TestKit kit;
  EXPECT_TRUE(absl::IsInvalidArgument(Cluster::Start(kit.system(), {.authority = "a:1"}).status()));
  EXPECT_EQ(Cluster::Of(kit.system()), nullptr);
}

}  // namespace
}  // namespace fraktor
