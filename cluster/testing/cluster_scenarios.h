// What a cluster promises, as scenarios that run on any TestCluster.
#ifndef FRAKTOR_CLUSTER_TESTING_CLUSTER_SCENARIOS_H_
#define FRAKTOR_CLUSTER_TESTING_CLUSTER_SCENARIOS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

struct Count {
  int64_t value = 0;
  uint64_t token = 0;
  std::string path = {};
};
struct Add {
  using Reply = Count;
  int64_t n = 0;
};
// The answer comes from somebody else.
struct AskFriend {
  using Reply = Count;
  ActorRef whom = {};
};
// Has no codec.
struct Secret {
  using Reply = Count;
  int64_t n = 0;
};

// Has a codec that throws, here or there.
struct Fragile {
  using Reply = Count;
  bool breaks_here = false;
};

template <>
struct Codec<Fragile> {
  static constexpr std::string_view kManifest = "test.fragile";
  static void Encode(const Fragile& fragile, Encoder& out) {
    if (fragile.breaks_here) throw std::runtime_error("it broke while it was packed");
    out.Value(fragile.breaks_here);
  }
  static Fragile Decode(Decoder&) { throw std::runtime_error("it broke on the way"); }
};
template <>
struct Codec<Count> : FieldCodec<Count, &Count::value, &Count::token, &Count::path> {
  static constexpr std::string_view kManifest = "test.count";
};
template <>
struct Codec<Add> : FieldCodec<Add, &Add::n> {
  static constexpr std::string_view kManifest = "test.add";
};
template <>
struct Codec<AskFriend> : FieldCodec<AskFriend, &AskFriend::whom> {
  static constexpr std::string_view kManifest = "test.ask_friend";
};

class Counter : public Actor<Counter, Add, AskFriend, Secret, Fragile> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const GrainContext& grain) : token_(grain.token) {}

  Count On(Context& context, const Add& add) {
    sum_ += add.n;
    return {.value = sum_, .token = token_, .path = context.Path()};
  }
  Forwarded<Count> On(Context& context, const AskFriend& ask) { return context.Forward(ask.whom, Add{.n = 1}); }
  Count On(Context&, const Secret&) { return {}; }
  Count On(Context&, const Fragile&) { return {}; }

 private:
  const uint64_t token_;
  int64_t sum_ = 0;
};

// Answers for somebody else.
class Friend : public Actor<Friend, Add> {
 public:
  Count On(Context&, const Add& add) { return {.value = 41 + add.n}; }
};

inline TestClusterOptions CounterCluster() {
  TestClusterOptions options;
  options.kinds = {GrainKindOf<Counter>()};
  options.codecs.Add<Count, Add, AskFriend, Fragile>();
  return options;
}

inline absl::StatusOr<Count> AddTo(TestCluster& cluster, size_t from, std::string_view identity, int64_t n,
                                   absl::Duration timeout = absl::Seconds(20)) {
  return cluster.Await(cluster[from].Grain<Counter>(identity).Ask(cluster.system(from), Add{n}, timeout));
}

// A grain that runs on the second node, and whose place the first one knows.
inline std::string GrainOfTheOther(TestCluster& cluster) {
  for (int g = 0; g < 100; ++g) {
    std::string identity = absl::StrCat("g", g);
    EXPECT_TRUE(AddTo(cluster, 0, identity, 1).ok());
    if (cluster[1].driver().Local(GrainKey(Counter::kGrainKind, identity)) != nullptr) return identity;
  }
  ADD_FAILURE() << "all are on one node";
  return "";
}

// Where grains are depends on the ports that the nodes got. That one of three nodes has none of so many happens once in
// 10^8 runs.
inline constexpr int kManyGrains = 48;

inline size_t Running(TestCluster& cluster) {
  size_t running = 0;
  for (size_t i = 0; i < cluster.size(); ++i) running += cluster[i].driver().Snapshot().activations;
  return running;
}

// CLU-12: asking for a grain starts it on its owner and delivers the message, from any node.
inline void RunsOnOneNodeAndIsReachedFromAll(TestCluster& cluster) {
  cluster.AddNodes(3);
  for (int g = 0; g < kManyGrains; ++g) {
    uint64_t token = 0;
    for (size_t from = 0; from < cluster.size(); ++from) {
      const absl::StatusOr<Count> count = AddTo(cluster, from, absl::StrCat("g", g), 1);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->value, static_cast<int64_t>(from) + 1) << "one actor, whoever asks";
      if (from == 0) token = count->token;
      EXPECT_EQ(count->token, token);
    }
  }
  EXPECT_EQ(Running(cluster), size_t{kManyGrains});
  for (size_t i = 0; i < cluster.size(); ++i) EXPECT_GT(cluster[i].driver().Snapshot().activations, 0u);
}

// Messages of one caller arrive in order, also those that come before it is known where the grain is; and references in
// them work.
inline void KeepsTheOrderOfACaller(TestCluster& cluster) {
  cluster.AddNodes(3);
  for (const std::string_view identity : {"a", "b", "c", "d"}) {
    std::vector<Future<Count>> answers;
    for (int i = 0; i < 100; ++i) {
      answers.push_back(cluster[1].Grain<Counter>(identity).Ask(cluster.system(1), Add{1}, absl::Seconds(20)));
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      const absl::StatusOr<Count> count = cluster.Await(std::move(answers[i]));
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->value, static_cast<int64_t>(i) + 1);
    }
  }
  // The grain passes the question on to an actor of another node, which answers to the one who asked.
  cluster.system(2).Spawn<Friend>("friend");
  const ActorRef whom =
      cluster.system(0).Resolve(absl::StrCat("pekko://cluster@", cluster[2].authority(), "/user/friend")).value();
  for (const std::string_view identity : {"a", "b", "c", "d"}) {
    const absl::StatusOr<Count> count = cluster.Await(
        cluster[0].Grain<Counter>(identity).Ask(cluster.system(0), AskFriend{.whom = whom}, absl::Seconds(20)));
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, 42);
  }
}

// A member that leaves hands over: its grains are found elsewhere, with higher tokens.
inline void MovesWhenItsNodeLeaves(TestCluster& cluster) {
  cluster.AddNodes(3);
  std::vector<Count> before;
  for (int g = 0; g < kManyGrains; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
  const size_t leaving = cluster[1].driver().Snapshot().activations;
  ASSERT_GT(leaving, 0u);
  ASSERT_TRUE(cluster.Await(cluster[1].Leave()).ok());
  EXPECT_EQ(cluster[1].driver().Snapshot().activations, 0u);
  size_t moved = 0;
  for (int g = 0; g < kManyGrains; ++g) {
    const absl::StatusOr<Count> count = AddTo(cluster, 0, absl::StrCat("g", g), 1);
    ASSERT_TRUE(count.ok()) << count.status();
    if (count->token == before[g].token) continue;
    ++moved;
    EXPECT_GT(count->token, before[g].token);
    EXPECT_EQ(count->value, 1);
  }
  EXPECT_EQ(moved, leaving);
}

// CLU-8: what comes from another node while a grain is being ended is not lost, whatever threads do when.
inline void LosesNothingWhileItIsPassivated(TestCluster& cluster) {
  cluster.AddNodes(2);
  const std::string there = GrainOfTheOther(cluster);
  const GrainKey key(Counter::kGrainKind, there);
  std::deque<Future<Count>> answers;
  std::set<uint64_t> tokens;
  const auto take = [&] {
    const absl::StatusOr<Count> count = cluster.Await(std::move(answers.front()));
    answers.pop_front();
    ASSERT_TRUE(count.ok()) << count.status();
    tokens.insert(count->token);
  };
  for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
    answers.push_back(cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20)));
    if (i % 20 == 0) cluster[1].driver().Passivate(key);
    if (answers.size() >= 16) take();
  }
  while (!answers.empty() && !testing::Test::HasFailure()) take();
  EXPECT_GT(tokens.size(), 1u);
  EXPECT_GT(cluster[1].calls_past_router_in(), 0u);
}

// Grains of a node that has died are activated elsewhere when its term is over.
inline void ComesBackElsewhereAfterACrash(TestCluster& cluster) {
  cluster.AddNodes(3);
  std::vector<Count> before;
  for (int g = 0; g < kManyGrains; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
  ASSERT_GT(cluster[2].driver().Snapshot().activations, 0u);
  cluster.Crash(2);
  size_t moved = 0;
  for (int g = 0; g < kManyGrains; ++g) {
    const absl::StatusOr<Count> count = cluster.AskUntilAnswered<Counter>(0, absl::StrCat("g", g), Add{1});
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_GE(count->token, before[g].token);
    moved += count->token != before[g].token ? 1 : 0;
  }
  EXPECT_GT(moved, 0u);
  EXPECT_LT(moved, size_t{kManyGrains}) << "those of the others stay";
}

// CLU-6: a join moves nothing that runs; new grains are on all nodes.
inline void AJoinMovesNothing(TestCluster& cluster) {
  cluster.AddNodes(2);
  std::vector<Count> before;
  for (int g = 0; g < 20; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
  cluster.AddNodes(1);
  for (int g = 0; g < 20; ++g) {
    for (size_t from = 0; from < cluster.size(); ++from) {
      const absl::StatusOr<Count> count = AddTo(cluster, from, absl::StrCat("g", g), 1);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->token, before[g].token);
      EXPECT_EQ(count->value, static_cast<int64_t>(from) + 2);
    }
  }
  EXPECT_EQ(cluster[2].driver().Snapshot().activations, 0u);
  for (int g = 20; g < 140; ++g) ASSERT_TRUE(AddTo(cluster, 2, absl::StrCat("g", g), 1).ok());
  const size_t share = cluster[2].driver().Snapshot().activations;
  EXPECT_GT(share, 120u / 8);
  EXPECT_LT(share, 120u * 2 / 3);
}

// A node that is started again takes the place of its former life at once, and what that ran begins anew.
inline void ComesBackWhenItsNodeIsRestarted(TestCluster& cluster) {
  cluster.AddNodes(2);
  std::vector<Count> before;
  for (int g = 0; g < 8; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
  cluster.Crash(1);
  cluster.Restart(1);
  for (int g = 0; g < 8; ++g) {
    for (size_t from = 0; from < 2; ++from) {
      const absl::StatusOr<Count> count = cluster.AskUntilAnswered<Counter>(from, absl::StrCat("g", g), Add{1});
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_GE(count->token, before[g].token);
    }
  }
  EXPECT_EQ(Running(cluster), 8u);
}

// CLU-13: while the node of the store is away, grains that run go on, and others answer with an error that says so. When
// it is back, those that ran are still the same, and new ones are activated with higher tokens.
inline void GoesOnWhileTheStoreIsAway(TestCluster& cluster) {
  cluster.AddNodes(2);
  std::vector<Count> before;
  for (int g = 0; g < 6; ++g) before.push_back(AddTo(cluster, g % 2, absl::StrCat("g", g), 1).value());
  // The other node knows where they are, too.
  for (int g = 0; g < 6; ++g) ASSERT_TRUE(AddTo(cluster, (g + 1) % 2, absl::StrCat("g", g), 1).ok());
  cluster.CrashStore();
  for (int g = 0; g < 6; ++g) {
    for (size_t from = 0; from < 2; ++from) {
      const absl::StatusOr<Count> count = AddTo(cluster, from, absl::StrCat("g", g), 1, absl::Seconds(1));
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(count->token, before[g].token);
    }
  }
  for (size_t from = 0; from < 2; ++from) {
    const absl::StatusOr<Count> none = AddTo(cluster, from, absl::StrCat("new", from), 1, absl::Seconds(2));
    EXPECT_FALSE(none.ok());
    EXPECT_TRUE(ErrorKindOf<LookupError>(none.status()).has_value()) << none.status();
    EXPECT_NE(std::string(none.status().message()).find("the cluster's store"), std::string::npos) << none.status();
  }
  cluster.RestartStore();
  for (int g = 0; g < 6; ++g) {
    const absl::StatusOr<Count> count = AddTo(cluster, 0, absl::StrCat("g", g), 1);
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->token, before[g].token);
    EXPECT_EQ(count->value, 5);
  }
  for (int g = 6; g < 12; ++g) {
    const absl::StatusOr<Count> count = cluster.AskUntilAnswered<Counter>(g % 2, absl::StrCat("g", g), Add{1});
    ASSERT_TRUE(count.ok()) << count.status();
    for (const Count& old : before) EXPECT_GT(count->token, old.token);
  }
}

// Counts calls, and refuses those to add a negative number of so much.
class CountingFilter final : public GrainCallFilter {
 public:
  explicit CountingFilter(int64_t refused) : refused_(refused) {}

  absl::Status Before(const GrainCallView& call) override {
    ++before;
    const Add* const add = call.As<Add>();
    if (add != nullptr && add->n == refused_) return absl::PermissionDeniedError("not so much");
    return absl::OkStatus();
  }
  void After(const GrainCallView& call, const GrainCallOutcome& outcome) override {
    ++after;
    if (!outcome.status.ok()) ++errors;
    const bool is_answer = outcome.answer != nullptr && outcome.answer->Is<Count>();
    if (is_answer && call.is_question) answered_sum += outcome.answer->As<Count>().value;
  }

  // Counted on the threads of all nodes, read when they have answered: each on its own, so that nothing pairs with them.
  std::atomic<int64_t> before = 0;
  std::atomic<int64_t> after = 0;
  std::atomic<int64_t> errors = 0;
  std::atomic<int64_t> answered_sum = 0;

 private:
  const int64_t refused_;
};

// A cluster whose nodes have one filter each for what goes out and what comes in.
struct FilteredCounters {
  std::shared_ptr<CountingFilter> outgoing = std::make_shared<CountingFilter>(-100);
  std::shared_ptr<CountingFilter> incoming = std::make_shared<CountingFilter>(-10);

  TestClusterOptions Options() const {
    TestClusterOptions options = CounterCluster();
    options.cluster.outgoing_filters = {outgoing};
    options.cluster.incoming_filters = {incoming};
    return options;
  }
};

// CLU-12: filters are asked on both sides of the network, see the answers, and what they refuse is told to who asks.
inline void FiltersCallsOfOtherNodes(TestCluster& cluster, const FilteredCounters& filters) {
  constexpr int kGrains = 30;
  cluster.AddNodes(2);
  for (int g = 0; g < kGrains; ++g) {
    const absl::StatusOr<Count> count = AddTo(cluster, 0, absl::StrCat("g", g), g);
    ASSERT_TRUE(count.ok()) << count.status();
  }
  ASSERT_GT(cluster[1].driver().Snapshot().activations, 0u) << "some are on the other node";
  for (const std::shared_ptr<CountingFilter>& filter : {filters.outgoing, filters.incoming}) {
    EXPECT_EQ(filter->before, kGrains) << "once for each call, wherever the grain is";
    EXPECT_EQ(filter->after, kGrains);
    EXPECT_EQ(filter->errors, 0);
    EXPECT_EQ(filter->answered_sum, kGrains * (kGrains - 1) / 2);
  }
  // Refused where it comes in, and where it goes out.
  for (const int64_t n : {-10, -100}) {
    for (int g = 0; g < kGrains; ++g) {
      const absl::StatusOr<Count> refused = AddTo(cluster, 0, absl::StrCat("g", g), n);
      EXPECT_TRUE(absl::IsPermissionDenied(refused.status())) << refused.status();
      EXPECT_TRUE(absl::EndsWith(refused.status().message(), "not so much")) << refused.status();
    }
  }
  EXPECT_EQ(filters.outgoing->before, 3 * kGrains);
  EXPECT_EQ(filters.outgoing->after, 2 * kGrains) << "one that refuses is not told what became of it";
  EXPECT_EQ(filters.outgoing->errors, kGrains) << "of those that were refused on the other side";
  EXPECT_EQ(filters.incoming->before, 2 * kGrains) << "what did not go out does not come in";
  for (int g = 0; g < kGrains; ++g) {
    EXPECT_EQ(AddTo(cluster, 1, absl::StrCat("g", g), 0).value().value, g) << "the grain has seen none of it";
  }
}

}  // namespace fraktor

#endif  // FRAKTOR_CLUSTER_TESTING_CLUSTER_SCENARIOS_H_
