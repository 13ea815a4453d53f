#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/invoker_middleware.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/membership/static_membership.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/random.h"

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
// Answers after two seconds, or not at all.
struct AddLater {
  using Reply = Count;
  bool forever = false;
};
struct Rest {};
struct Stay {
  absl::Duration duration;
};

class Counter : public Actor<Counter, Add, Quit, AddLater, Rest, Stay> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const GrainContext& grain) : key_(grain.key), token_(grain.token) {}

  Count On(Context& context, const Add& add) {
    sum_ += add.n;
    return {.value = sum_, .token = token_, .path = context.Path()};
  }
  void On(Context& context, const Quit&) { context.Stop(); }
  Task<Count> On(Context& context, const AddLater& later) {
    auto waiting = context.Delay(later.forever ? absl::Hours(1) : absl::Seconds(2));
    (co_await waiting).IgnoreError();
    co_return Count{.value = sum_, .token = token_, .path = context.Path()};
  }
  void On(Context& context, const Rest&) { Cluster::Of(context.system())->Passivate(key_); }
  void On(Context& context, const Stay& stay) { Cluster::Of(context.system())->Keep(key_, stay.duration); }

 private:
  const GrainKey key_;
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

// Throws in its constructor, or when it is told to.
struct Poke {
  using Reply = Count;
};
class Fragile : public Actor<Fragile, Add, Poke> {
 public:
  static constexpr std::string_view kGrainKind = "fragile";
  explicit Fragile(const GrainContext& grain) : token_(grain.token) {
    if (grain.key.identity() == "unborn") throw std::runtime_error("no journal");
  }
  Count On(Context& context, const Add& add) {
    return {.value = sum_ += add.n, .token = token_, .path = context.Path()};
  }
  Count On(Context&, const Poke&) { throw 7; }

 private:
  const uint64_t token_;
  int64_t sum_ = 0;
};

// Asks another grain by a call of its own, and replies with the error of that ask.
struct AskOther {
  using Reply = Count;
};
class PassesErrorsOn : public Actor<PassesErrorsOn, AskOther> {
 public:
  static constexpr std::string_view kGrainKind = "passes-errors-on";
  explicit PassesErrorsOn(const GrainContext&) {}
  Task<Count> On(Context& context, const AskOther&) {
    constexpr absl::Duration kTimeout = absl::Seconds(1);
    GrainCall call{.key = GrainKey("counter", "alice"),
                   .message = MakeEnvelope<AddLater>(ActorRef(), AddLater{.forever = true}),
                   .timeout = kTimeout};
    auto asking = context.Ask<Count>(Cluster::Of(context.system())->gate(), std::move(call), kTimeout);
    co_return co_await asking;
  }
};

// Ends before it handles anything.
class Hasty : public Actor<Hasty, Add> {
 public:
  static constexpr std::string_view kGrainKind = "hasty";
  explicit Hasty(const GrainContext&) {}
  absl::Status PreStart(Context& context) {
    context.Stop();
    return absl::OkStatus();
  }
  Count On(Context&, const Add&) { return {}; }
};

// Kinds whose factories are broken.
class Angry : public Actor<Angry, Add> {
 public:
  static constexpr std::string_view kGrainKind = "angry";
  Count On(Context&, const Add&) { return {}; }
};
class Missing : public Actor<Missing, Add> {
 public:
  static constexpr std::string_view kGrainKind = "missing";
  Count On(Context&, const Add&) { return {}; }
};
std::vector<GrainKind> BrokenKinds() {
  return {GrainKindOf<Counter>(), GrainKindOf<Fragile>(),
          GrainKind{.name = "angry",
                    .make = [](const GrainContext&) -> PropsPtr { throw std::runtime_error("factory is angry"); }},
          GrainKind{.name = "missing", .make = [](const GrainContext&) -> PropsPtr { return nullptr; }}};
}

class SilentInstance final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
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
    if (options.membership == nullptr) options.membership = membership_;
    options.lock = store_;
    options.storage = store_;
    if (options.peers == nullptr) options.peers = peers_;
    clusters_.push_back(Cluster::Start(made.system(), options).value());
    return *clusters_.back();
  }

  template <class A = Counter>
  absl::StatusOr<Count> AddTo(size_t node, std::string_view identity, int64_t n) {
    Future<Count> asking = clusters_[node]->Grain<A>(identity).Ask(*systems_[node], Add{n}, absl::Seconds(20));
    sim_.RunUntil([&] { return asking.IsReady(); }, absl::Seconds(30));
    return asking.Take();
  }

  void PassivateEverywhere(std::string_view identity) {
    for (Cluster* const cluster : clusters_) cluster->Passivate(GrainKey("counter", identity));
  }

  Cluster& operator[](size_t i) { return *clusters_[i]; }
  ActorSystem& system(size_t i) { return *systems_[i]; }
  size_t size() const { return clusters_.size(); }
  MemoryPlacementStore& store() { return *store_; }
  MemoryMembership& membership() { return *membership_; }

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

// CLU-12: the members may be a list that all have. A node that is not on it never becomes one.
TEST(Grain, RunsOnTheNodesOfAList) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    const std::shared_ptr<MembershipProvider> list =
        StaticMembership::Make(
            {{.authority = "n0:1", .kinds = {"counter"}}, {.authority = "n1:1", .kinds = {"counter"}}})
            .value();
    Nodes nodes(sim, 3, {.membership = list});
    for (int g = 0; g < 12; ++g) {
      for (size_t from = 0; from < 2; ++from) {
        const absl::StatusOr<Count> count = nodes.AddTo(from, absl::StrCat("g", g), 1);
        ASSERT_TRUE(count.ok()) << count.status();
        EXPECT_EQ(count->value, static_cast<int64_t>(from) + 1);
      }
    }
    sim.Advance(absl::Minutes(10));
    for (size_t i = 0; i < 2; ++i) EXPECT_GT(nodes[i].driver().Snapshot().activations, 0u) << "terms do not end";
    EXPECT_EQ(nodes[2].session().state(), MembershipSession::State::kJoining);
    EXPECT_EQ(nodes[2].driver().Snapshot().activations, 0u);
    EXPECT_EQ(ErrorKindOf<LookupError>(nodes.AddTo(2, "g0", 1).status()), LookupError::kNotStarted);
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

// What filters have seen, in order.
class Recorder final : public GrainCallFilter {
 public:
  Recorder(std::string name, std::vector<std::string>& seen) : name_(std::move(name)), seen_(seen) {}

  absl::Status Before(const GrainCallView& call) override {
    const Add* const add = call.As<Add>();
    seen_.push_back(absl::StrCat(name_, " before ", call.key.ToString(), " ", add == nullptr ? -1 : add->n,
                                 call.is_question ? " asked" : " told"));
    if (add != nullptr && add->n == refused) return absl::PermissionDeniedError("too much");
    if (add != nullptr && add->n == thrown) throw std::runtime_error("a bug");
    return absl::OkStatus();
  }
  void After(const GrainCallView& call, const GrainCallOutcome& outcome) override {
    EXPECT_EQ(call.As<Add>(), nullptr);
    const Count* const count = outcome.answer == nullptr ? nullptr : outcome.answer->TryAs<Count>();
    seen_.push_back(absl::StrCat(name_, " after ", call.key.ToString(), " ",
                                 absl::StatusCodeToString(outcome.status.code()), " ",
                                 count == nullptr ? -1 : count->value));
    last_duration = outcome.duration;
  }

  int64_t refused = -100;
  int64_t thrown = -101;
  absl::Duration last_duration = absl::ZeroDuration();

 private:
  const std::string name_;
  std::vector<std::string>& seen_;
};

struct Filters {
  Filters() {
    for (const std::string_view name : {"out1", "out2", "in1", "in2", "kind"}) {
      all.push_back(std::make_shared<Recorder>(std::string(name), seen));
    }
  }
  ClusterOptions Options() const {
    GrainKind kind = GrainKindOf<Counter>();
    kind.filters = {all[4]};
    return {.kinds = {kind}, .incoming_filters = {all[2], all[3]}, .outgoing_filters = {all[0], all[1]}};
  }
  std::vector<std::string> Take() { return std::exchange(seen, {}); }

  std::vector<std::string> seen;
  std::vector<std::shared_ptr<Recorder>> all;
};

// CLU-12, SCH-6: filters are asked in order before a call and in reverse after it, on the node that calls and on the
// one that hosts the grain, and see what became of it.
TEST(GrainFilter, IsAskedInOrderAndToldInReverse) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Filters filters;
    Nodes nodes(sim, 3, filters.Options());
    for (size_t from = 0; from < nodes.size(); ++from) {
      const int64_t sum = 7 * static_cast<int64_t>(from + 1);
      EXPECT_EQ(nodes.AddTo(from, "alice", 7).value().value, sum);
      EXPECT_THAT(
          filters.Take(),
          testing::ElementsAre(
              "out1 before counter/alice 7 asked", "out2 before counter/alice 7 asked",
              "in1 before counter/alice 7 asked", "in2 before counter/alice 7 asked",
              "kind before counter/alice 7 asked", absl::StrCat("kind after counter/alice OK ", sum),
              absl::StrCat("in2 after counter/alice OK ", sum), absl::StrCat("in1 after counter/alice OK ", sum),
              absl::StrCat("out2 after counter/alice OK ", sum), absl::StrCat("out1 after counter/alice OK ", sum)));
    }
    nodes[1].Grain<Counter>("alice").Tell(Add{1});
    sim.Advance(absl::Seconds(1));
    EXPECT_THAT(filters.Take(),
                testing::ElementsAre("out1 before counter/alice 1 told", "out2 before counter/alice 1 told",
                                     "out2 after counter/alice OK -1", "out1 after counter/alice OK -1",
                                     "in1 before counter/alice 1 told", "in2 before counter/alice 1 told",
                                     "kind before counter/alice 1 told", "kind after counter/alice OK -1",
                                     "in2 after counter/alice OK -1", "in1 after counter/alice OK -1"));
  });
}

// What a filter refuses does not reach the grain, and the asker is told why.
TEST(GrainFilter, RefusesACall) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Filters filters;
    Nodes nodes(sim, 2, filters.Options());
    ASSERT_TRUE(nodes.AddTo(0, "alice", 1).ok());
    filters.Take();
    filters.all[3]->refused = 1000;
    filters.all[1]->refused = 2000;
    filters.all[4]->thrown = 3000;
    const absl::Status by_host = nodes.AddTo(0, "alice", 1000).status();
    EXPECT_TRUE(absl::IsPermissionDenied(by_host)) << by_host;
    EXPECT_THAT(std::string(by_host.message()), testing::EndsWith("too much"));
    EXPECT_THAT(filters.Take(),
                testing::ElementsAre("out1 before counter/alice 1000 asked", "out2 before counter/alice 1000 asked",
                                     "in1 before counter/alice 1000 asked", "in2 before counter/alice 1000 asked",
                                     "in1 after counter/alice PERMISSION_DENIED -1",
                                     "out2 after counter/alice PERMISSION_DENIED -1",
                                     "out1 after counter/alice PERMISSION_DENIED -1"));
    EXPECT_TRUE(absl::IsPermissionDenied(nodes.AddTo(1, "alice", 2000).status()));
    EXPECT_THAT(filters.Take(),
                testing::ElementsAre("out1 before counter/alice 2000 asked", "out2 before counter/alice 2000 asked",
                                     "out1 after counter/alice PERMISSION_DENIED -1"));
    EXPECT_TRUE(absl::IsInternal(nodes.AddTo(1, "alice", 3000).status()));
    nodes[0].Grain<Counter>("alice").Tell(Add{2000});
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(nodes.AddTo(0, "alice", 1).value().value, 2) << "the grain has seen none of them";
  });
}

// A question that is not answered, and one whose answer takes its time.
TEST(GrainFilter, SeesDurationAndTheAnswerThatDoesNotCome) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Filters filters;
    Nodes nodes(sim, 2, filters.Options());
    nodes.AddTo(0, "alice", 1).IgnoreError();
    const GrainRef<Counter> alice = nodes[0].Grain<Counter>("alice");
    Future<Count> slow = alice.Ask(nodes.system(0), AddLater{}, absl::Seconds(10));
    sim.Advance(absl::Seconds(3));
    ASSERT_TRUE(slow.IsReady());
    EXPECT_TRUE(slow.Take().ok());
    for (const auto& filter : filters.all) {
      EXPECT_GE(filter->last_duration, absl::Seconds(2));
      EXPECT_LT(filter->last_duration, absl::Seconds(3));
    }
    filters.Take();
    Future<Count> never = alice.Ask(nodes.system(1), AddLater{.forever = true}, absl::Seconds(10));
    sim.Advance(absl::Seconds(20));
    ASSERT_TRUE(never.IsReady());
    EXPECT_TRUE(absl::IsDeadlineExceeded(never.Take().status()));
    const std::vector<std::string> seen = filters.Take();
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "out1 after counter/alice DEADLINE_EXCEEDED -1"), 1);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), "kind after counter/alice DEADLINE_EXCEEDED -1"), 1);
  });
}

// CLU-8: what comes while a grain is being ended for being idle is not lost: it activates the grain anew.
TEST(Grain, LosesNothingWhileItIsPassivated) {
  Simulate({.seeds = 50}, [](Simulation& sim) {
    Nodes nodes(sim, 3, {.placement = {.placement = {.idle_ttl = absl::Milliseconds(700)}}});
    Random random = sim.MakeRandom("calls");
    int activations = 0;
    uint64_t last_token = 0;
    std::vector<Future<Count>> answers;
    for (int round = 0; round < 20; ++round) {
      // Around the moment when it becomes idle, which is looked at every 500 ms.
      sim.Advance(absl::Milliseconds(700) + absl::Microseconds(random.UniformIn(0, 600'000)));
      for (int i = 0; i < 5; ++i) {
        const size_t from = static_cast<size_t>(random.UniformIn(0, 2));
        answers.push_back(nodes[from].Grain<Counter>("alice").Ask(nodes.system(from), Add{1}, absl::Seconds(20)));
        if (random.UniformIn(0, 1) == 0) nodes.PassivateEverywhere("alice");
      }
    }
    sim.Advance(absl::Seconds(30));
    for (Future<Count>& answer : answers) {
      ASSERT_TRUE(answer.IsReady());
      const absl::StatusOr<Count> count = answer.Take();
      ASSERT_TRUE(count.ok()) << count.status();
      if (count->token != last_token) ++activations;
      last_token = count->token;
    }
    EXPECT_GT(activations, 10);
    EXPECT_EQ(nodes.store().activations(), 0u);
  });
}

// A grain ends itself after what it has been sent, and comes back; one that asks to be kept stays.
TEST(Grain, AsksToBePassivatedOrKept) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.placement = {.placement = {.idle_ttl = absl::Seconds(30)}}});
    const GrainRef<Counter> alice = nodes[0].Grain<Counter>("alice");
    const Count first = nodes.AddTo(0, "alice", 1).value();
    alice.Tell(Rest{});
    Future<Count> behind = alice.Ask(nodes.system(0), Add{1}, absl::Seconds(10));
    sim.Advance(absl::Seconds(1));
    ASSERT_TRUE(behind.IsReady());
    EXPECT_TRUE(behind.Take().ok());
    EXPECT_GT(nodes.AddTo(1, "alice", 1).value().token, first.token);

    const Count kept = nodes.AddTo(0, "bob", 1).value();
    nodes[1].Grain<Counter>("bob").Tell(Stay{.duration = absl::Minutes(5)});
    sim.Advance(absl::Minutes(4));
    EXPECT_EQ(nodes.AddTo(0, "bob", 1).value().token, kept.token);
    sim.Advance(absl::Seconds(50));
    EXPECT_EQ(nodes.AddTo(0, "bob", 1).value().token, kept.token);
    sim.Advance(absl::Minutes(2));
    EXPECT_EQ(nodes.store().activations(), 0u);
  });
}

// A kind that is kept is never idle.
TEST(Grain, IsKeptIfItsKindIs) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    GrainKind kind = GrainKindOf<Counter>();
    kind.is_kept = true;
    Nodes nodes(sim, 2, {.kinds = {kind}, .placement = {.placement = {.idle_ttl = absl::Seconds(30)}}});
    ASSERT_TRUE(nodes.AddTo(0, "alice", 5).ok());
    sim.Advance(absl::Hours(1));
    EXPECT_EQ(nodes.AddTo(1, "alice", 1).value().value, 6);
    nodes[0].Grain<Counter>("alice").Tell(Stay{.duration = absl::ZeroDuration()});
    sim.Advance(absl::Minutes(1));
    EXPECT_EQ(nodes.store().activations(), 0u) << "it has said that it need not be";
  });
}

// Messages of the runtime reach a grain as what they are.
TEST(Grain, IsIdentified) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Nodes nodes(sim, 2);
    for (size_t from = 0; from < nodes.size(); ++from) {
      Future<ActorIdentity> asking = nodes.system(from).Ask<ActorIdentity>(
          nodes[from].router(),
          GrainCall{.key = GrainKey("counter", "alice"),
                    .message = MakeEnvelope<Identify>(ActorRef(), Identify{.id = 7})},
          absl::Seconds(5));
      sim.Advance(absl::Seconds(1));
      ASSERT_TRUE(asking.IsReady());
      const absl::StatusOr<ActorIdentity> identity = asking.Take();
      ASSERT_TRUE(identity.ok()) << identity.status();
      EXPECT_EQ(identity->id, 7u);
      EXPECT_FALSE(identity->ref.IsNoOne());
    }
  });
}

// CLU-6: an activation with a higher token begins when the one before has ended, and is not hit by what is said to that.
TEST(Grain, IsReplacedByALaterActivationAndNotByAnEarlier) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Nodes nodes(sim, 1);
    const GrainKey key("counter", "alice");
    GrainActivations activations(nodes[0].router());
    const auto await = [&]<class T>(Future<T> future) {
      sim.RunUntil([&] { return future.IsReady(); }, absl::Seconds(30));
      return future.Take();
    };
    const auto add = [&](const ActivationRecord& record) {
      const ActorRef actor = nodes.system(0).Resolve(record.pid).value();
      return await(nodes.system(0).Ask<Count>(actor, Add{1}, absl::Seconds(5)));
    };
    const ActivationRecord first = await(activations.EnsureActivation(key, "", 5)).value();
    EXPECT_EQ(add(first).value().token, 5u);
    EXPECT_EQ(await(activations.EnsureActivation(key, "", 5)).value().pid, first.pid) << "the same, once more";
    EXPECT_EQ(add(first).value().value, 2);

    const ActivationRecord second = await(activations.EnsureActivation(key, "", 7)).value();
    EXPECT_EQ(add(second).value().token, 7u);
    EXPECT_EQ(add(second).value().value, 2) << "it has begun anew";
    EXPECT_FALSE(nodes.system(0).Resolve(first.pid).ok()) << "one at a time";
    EXPECT_TRUE(await(activations.StopActivation(key, 5)).ok()) << "that one has ended";
    EXPECT_EQ(add(second).value().value, 3);
    EXPECT_TRUE(await(activations.StopActivation(key, 7)).ok());
    EXPECT_FALSE(nodes.system(0).Resolve(second.pid).ok());
  });
}

// CLU-6: a call is for the activation that placement knows of, and for no other one of the same grain.
TEST(Grain, IsNotServedByAnActivationThatPlacementDoesNotKnow) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Nodes nodes(sim, 1);
    const Count known = nodes.AddTo(0, "alice", 1).value();
    GrainActivations activations(nodes[0].router());
    Future<ActivationRecord> starting = activations.EnsureActivation(GrainKey("counter", "alice"), "", known.token + 1);
    sim.RunUntil([&] { return starting.IsReady(); }, absl::Seconds(30));
    ASSERT_TRUE(starting.Take().ok());
    const absl::StatusOr<Count> count = nodes.AddTo(0, "alice", 1);
    EXPECT_TRUE(absl::IsUnavailable(count.status())) << count.status();
  });
}

// CLU-12: a factory that throws, or makes nothing, is an error of the call that needed it, and of nothing else.
TEST(Grain, AFactoryThatFailsConcernsItsCallerOnly) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.kinds = BrokenKinds()});
    for (int g = 0; g < 6; ++g) ASSERT_EQ(nodes.AddTo(0, absl::StrCat("g", g), 1).value().value, 1);
    for (size_t from = 0; from < 2; ++from) {
      for (const std::string_view identity : {"a", "b", "c"}) {
        const absl::Status angry = nodes.AddTo<Angry>(from, identity, 1).status();
        EXPECT_TRUE(absl::IsInternal(angry)) << angry;
        EXPECT_THAT(std::string(angry.message()), testing::HasSubstr("GrainKind::make threw: factory is angry"));
        EXPECT_THAT(std::string(angry.message()), testing::HasSubstr(absl::StrCat("angry/", std::string(identity))));
        const absl::Status missing = nodes.AddTo<Missing>(from, identity, 1).status();
        EXPECT_TRUE(absl::IsInternal(missing)) << missing;
        EXPECT_THAT(std::string(missing.message()), testing::HasSubstr("has returned null"));
      }
    }
    for (int g = 0; g < 6; ++g) EXPECT_EQ(nodes.AddTo(1, absl::StrCat("g", g), 1).value().value, 2);
    EXPECT_EQ(nodes.store().activations(), 6u);
  });
}

// CLU-12: what a grain throws ends that grain, whatever it is; the node and the others go on.
TEST(Grain, ThrowsWhateverItLikes) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.kinds = BrokenKinds()});
    const Count before = nodes.AddTo<Fragile>(0, "alice", 5).value();
    for (int g = 0; g < 6; ++g) ASSERT_EQ(nodes.AddTo(0, absl::StrCat("g", g), 1).value().value, 1);
    Future<Count> poked = nodes[0].Grain<Fragile>("alice").Ask(nodes.system(0), Poke{}, absl::Seconds(5));
    sim.Advance(absl::Seconds(1));
    ASSERT_TRUE(poked.IsReady());
    EXPECT_FALSE(poked.Take().ok());
    EXPECT_FALSE(nodes.system(0).IsTerminated());
    EXPECT_FALSE(nodes.system(1).IsTerminated());
    const absl::StatusOr<Count> after = nodes.AddTo<Fragile>(1, "alice", 1);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->value, 1) << "another life";
    EXPECT_GT(after->token, before.token);
    for (int g = 0; g < 6; ++g) EXPECT_EQ(nodes.AddTo(1, absl::StrCat("g", g), 1).value().value, 2);
  });
}

// Who asks a grain that cannot be started hears why.
TEST(Grain, SaysWhyItCannotStart) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.kinds = BrokenKinds()});
    for (size_t from = 0; from < 2; ++from) {
      std::vector<Future<Count>> asked;
      for (int i = 0; i < 3; ++i) {
        asked.push_back(nodes[from].Grain<Fragile>("unborn").Ask(nodes.system(from), Add{1}, absl::Seconds(5)));
      }
      sim.Advance(absl::Seconds(1));
      for (Future<Count>& each : asked) {
        ASSERT_TRUE(each.IsReady());
        const absl::Status why = each.Take().status();
        EXPECT_TRUE(absl::IsInternal(why)) << why;
        EXPECT_THAT(std::string(why.message()), testing::HasSubstr("grains/fragile:unborn could not be started"));
        EXPECT_THAT(std::string(why.message()), testing::HasSubstr("no journal"));
      }
    }
  });
}

// A question that was not answered in time names the grain, the message, and where the grain is.
TEST(Grain, SaysWhatHasNotBeenAnswered) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Nodes nodes(sim, 1);
    ASSERT_TRUE(nodes.AddTo(0, "alice", 1).ok());
    Future<Count> never =
        nodes[0].Grain<Counter>("alice").Ask(nodes.system(0), AddLater{.forever = true}, absl::Seconds(2));
    sim.Advance(absl::Seconds(3));
    ASSERT_TRUE(never.IsReady());
    const absl::Status why = never.Take().status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(why)) << why;
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("grain \"counter/alice\" has not answered"));
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("AddLater within 2s"));
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("it runs on this node, \"n0:1\""));
  });
}

// An ErrorReply that carries the timeout of another ask is a reply: the ask itself has not timed
// out.
TEST(Grain, TakesTheTimeoutInAReplyForNoTimeoutOfTheAsk) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.kinds = {GrainKindOf<Counter>(), GrainKindOf<PassesErrorsOn>()}});
    for (size_t from = 0; from < nodes.size(); ++from) {
      const GrainRef<PassesErrorsOn> bob = nodes[from].Grain<PassesErrorsOn>("bob");
      Future<Count> asking = bob.Ask(nodes.system(from), AskOther{}, absl::Seconds(20));
      sim.RunUntil([&] { return asking.IsReady(); }, absl::Seconds(10));
      ASSERT_TRUE(asking.IsReady());
      for (const absl::Status& why :
           {asking.Take().status(), bob.AskAndWait(nodes.system(from), AskOther{}, absl::Seconds(20)).status()}) {
        EXPECT_EQ(ErrorKindOf<ActorErrorKind>(why), ActorErrorKind::kAskTimeout) << why;
        EXPECT_THAT(std::string(why.message()), testing::HasSubstr("within 1s"));
        EXPECT_THAT(std::string(why.message()), testing::Not(testing::HasSubstr("has not answered")));
        EXPECT_THAT(std::string(why.message()), testing::Not(testing::HasSubstr("within 20s")));
      }
    }
  });
}

// A timeout that makes no sense names what was asked, and of whom.
TEST(Grain, NamesTheQuestionWhoseTimeoutIsNotPositive) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    Nodes nodes(sim, 1);
    for (const absl::Duration timeout : {absl::ZeroDuration(), -absl::Seconds(1)}) {
      Future<Count> asked = nodes[0].Grain<Counter>("alice").Ask(nodes.system(0), Add{1}, timeout);
      ASSERT_TRUE(asked.IsReady());
      const absl::Status why = asked.Take().status();
      EXPECT_TRUE(absl::IsInvalidArgument(why)) << why;
      EXPECT_THAT(std::string(why.message()), testing::HasSubstr("grain \"counter/alice\" for an answer to "));
      EXPECT_THAT(std::string(why.message()), testing::HasSubstr("Add has the timeout "));
    }
  });
}

// A grain that ends again and again before it handles anything does not get a question for ever.
TEST(Grain, GivesUpOnAGrainThatEndsBeforeItHandlesAnything) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Nodes nodes(sim, 1, {.kinds = {GrainKindOf<Hasty>()}});
    Future<Count> asked = nodes[0].Grain<Hasty>("alice").Ask(nodes.system(0), Add{1}, absl::Minutes(10));
    sim.Advance(absl::Minutes(1));
    ASSERT_TRUE(asked.IsReady());
    const absl::Status why = asked.Take().status();
    EXPECT_TRUE(absl::IsUnavailable(why)) << why;
    EXPECT_THAT(std::string(why.message()),
                testing::HasSubstr("grain \"hasty/alice\" has ended before it has handled"));
  });
}

// Actors of grains are called after them.
TEST(Grain, HasANameOfItsOwn) {
  EXPECT_EQ(GrainActorName(GrainKey("cart", "alice")), "cart:alice");
  EXPECT_EQ(GrainActorName(GrainKey("cart", "al@x-1.de")), "cart:al@x-1.de");
  const std::string odd = GrainActorName(GrainKey("cart", "a/b c"));
  EXPECT_THAT(odd, testing::StartsWith("cart:a_b_c~"));
  EXPECT_NE(odd, GrainActorName(GrainKey("cart", "a_b/c")));
  EXPECT_NE(GrainActorName(GrainKey("a:b", "c")), GrainActorName(GrainKey("a", "b:c")));
  const std::string identity(1000, 'x');
  EXPECT_LT(GrainActorName(GrainKey("cart", identity)).size(), 130u);
  EXPECT_NE(GrainActorName(GrainKey("cart", identity)), GrainActorName(GrainKey("cart", identity + "y")));
  Simulate({.seeds = 1}, [&](Simulation& sim) {
    Nodes nodes(sim, 1);
    EXPECT_THAT(nodes.AddTo(0, "alice", 1).value().path, testing::EndsWith("/system/grains/counter:alice"));
    for (const std::string& each : {identity, std::string("a\0\n/\xff", 5), std::string("$a"), std::string("..")}) {
      const absl::StatusOr<Count> count = nodes.AddTo(0, each, 1);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_THAT(count->path, testing::HasSubstr("/system/grains/counter:"));
    }
  });
}

// Throws once when it is told to.
class AngryPeers final : public GrainPeers {
 public:
  void Announce(std::string_view authority, ActorRef router) override { inner.Announce(authority, router); }
  absl::StatusOr<ActorRef> RouterAt(std::string_view authority) override {
    if (std::exchange(is_angry, false)) throw std::runtime_error("peers are angry");
    return inner.RouterAt(authority);
  }
  LocalGrainPeers inner;
  bool is_angry = false;
};

// What others' code throws in a turn of the router is an error for who has called, and does not end its grains.
TEST(Grain, OthersCodeThrowsInTheRouter) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    const auto peers = std::make_shared<AngryPeers>();
    Nodes nodes(sim, 2, {.peers = peers});
    std::string there;
    for (int g = 0; g < 8; ++g) {
      const Count count = nodes.AddTo(0, absl::StrCat("g", g), 1).value();
      if (count.path.find("node1") != std::string::npos) there = absl::StrCat("g", g);
    }
    ASSERT_FALSE(there.empty());
    peers->is_angry = true;
    const absl::Status why = nodes.AddTo(0, there, 1).status();
    EXPECT_EQ(ErrorKindOf<LookupError>(why), LookupError::kNotReady) << why;
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("peers are angry"));
    // Where a place is being looked for, it is asked again.
    for (int g = 100; g < 108; ++g) {
      peers->is_angry = true;
      std::vector<Future<Count>> asking;
      for (int i = 0; i < 3; ++i) {
        asking.push_back(nodes[0].Grain<Counter>(absl::StrCat("g", g)).Ask(nodes.system(0), Add{1}, absl::Seconds(10)));
      }
      for (int i = 0; i < 3; ++i) {
        sim.RunUntil([&] { return asking[i].IsReady(); }, absl::Seconds(30));
        ASSERT_TRUE(asking[i].IsReady());
        const absl::StatusOr<Count> count = asking[i].Take();
        ASSERT_TRUE(count.ok()) << count.status();
        EXPECT_EQ(count->value, i + 1);
      }
    }
    peers->is_angry = false;
    for (int g = 0; g < 8; ++g) EXPECT_EQ(nodes.AddTo(0, absl::StrCat("g", g), 1).value().value, 2) << g;
  });
}

// A node of this process that has ended without leaving is a member until its term is over. Calls to its grains wait.
TEST(Grain, CallsWaitForANodeOfTheProcessThatHasEnded) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.leaves_on_shutdown = false});
    std::string there;
    for (int g = 0; g < 8; ++g) {
      const Count count = nodes.AddTo(0, absl::StrCat("g", g), 1).value();
      if (count.path.find("node1") != std::string::npos) there = absl::StrCat("g", g);
    }
    ASSERT_FALSE(there.empty());
    nodes.system(1).Terminate();
    sim.RunUntil([&] { return nodes.system(1).IsTerminated(); }, absl::Seconds(5));
    ASSERT_TRUE(nodes.system(1).IsTerminated());
    const absl::StatusOr<Count> count = nodes.AddTo(0, there, 1);
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, 1);
    EXPECT_EQ(count->path.find("node1"), std::string::npos) << count->path;
  });
}

// The same if the owner of the grain is another one, who knows its place, and says so again and again.
TEST(Grain, CallsWaitForANodeOfTheProcessThatHasEndedAlsoIfItIsNotTheOwner) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    // It is a member for so long that a few attempts will not do.
    const auto membership =
        std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = absl::Minutes(1)});
    const ClusterOptions options{.membership = membership, .leaves_on_shutdown = false};
    Nodes nodes(sim, 2, options);
    std::vector<GrainKey> there;
    for (int g = 0; g < 16; ++g) {
      const GrainKey key("counter", absl::StrCat("g", g));
      const Count count = nodes.AddTo(0, key.identity(), 1).value();
      if (count.path.find("node1") != std::string::npos) there.push_back(key);
    }
    nodes.Join(options);
    sim.Advance(absl::Seconds(1));
    std::erase_if(there, [&](const GrainKey& key) {
      return RendezvousHasher::OwnerOf(*nodes[0].topology(), key)->authority != nodes[2].authority();
    });
    ASSERT_FALSE(there.empty());
    nodes.system(1).Terminate();
    sim.RunUntil([&] { return nodes.system(1).IsTerminated(); }, absl::Seconds(5));
    Future<Count> asking =
        nodes[2].Grain<Counter>(there.front().identity()).Ask(nodes.system(2), Add{1}, absl::Minutes(3));
    sim.RunUntil([&] { return asking.IsReady(); }, absl::Minutes(4));
    const absl::StatusOr<Count> count = asking.Take();
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, 1);
  });
}

// Throws once, around a message to a certain actor.
class AngryMiddleware final : public InvokerMiddleware {
 public:
  MiddlewareFlow BeforeReceive(const Interception& at) override {
    if (at.actor == whom) {
      whom = {};
      throw std::runtime_error("the middleware is angry");
    }
    return MiddlewareFlow::Continue();
  }
  void AfterReceive(const Interception& /*at*/, const absl::Status& /*status*/) override {}
  ActorRef whom;
};

// CLU-6: a router that fails all the same hands back what has run on its node: it is activated anew, with higher tokens.
TEST(Grain, ARouterThatFailsHandsBackItsGrains) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    const auto middleware = std::make_shared<AngryMiddleware>();
    const auto membership = std::make_shared<MemoryMembership>(sim.toolbox());
    const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    ActorSystemOptions options{.toolbox = &sim.toolbox(), .workers = 1, .log_level = LogLevel::kOff};
    options.scheduler.dispatchers.default_pool.middleware = {middleware};
    options.config.system_name = "solo";
    const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
    Cluster& cluster = *Cluster::Start(*system, {.authority = "a:1",
                                                 .kinds = {GrainKindOf<Counter>()},
                                                 .membership = membership,
                                                 .lock = store,
                                                 .storage = store,
                                                 .peers = std::make_shared<LocalGrainPeers>()})
                            .value();
    const auto add = [&]<class A>(const GrainRef<A>& grain) {
      Future<Count> asking = grain.Ask(*system, Add{1}, absl::Seconds(10));
      sim.RunUntil([&] { return asking.IsReady(); }, absl::Seconds(30));
      return asking.Take();
    };
    std::vector<Count> before;
    for (int g = 0; g < 4; ++g) before.push_back(add(cluster.Grain<Counter>(absl::StrCat("g", g))).value());
    middleware->whom = cluster.router();
    const absl::Status why = add(cluster.Grain<Nowhere>("x")).status();
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("the middleware is angry"));
    sim.Advance(absl::Seconds(1));
    EXPECT_TRUE(middleware->whom.IsNoOne()) << "the router has failed";
    EXPECT_EQ(store->activations(), 0u);
    EXPECT_EQ(cluster.driver().Snapshot().activations, 0u);
    for (int g = 0; g < 4; ++g) {
      const absl::StatusOr<Count> after = add(cluster.Grain<Counter>(absl::StrCat("g", g)));
      ASSERT_TRUE(after.ok()) << after.status();
      EXPECT_EQ(after->value, 1);
      EXPECT_GT(after->token, before[g].token);
    }
  });
}

// A system that has ended without leaving is a member for a term at most, and who waits for it to join hears of it.
TEST(Cluster, EndsItsMembershipWithTheSystem) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2, {.leaves_on_shutdown = false});
    for (int g = 0; g < 6; ++g) ASSERT_TRUE(nodes.AddTo(0, absl::StrCat("g", g), 1).ok());
    ASSERT_EQ(nodes.membership().topology()->members().size(), 2u);
    nodes.system(1).Terminate();
    sim.Advance(absl::Seconds(5));
    ASSERT_TRUE(nodes.system(1).IsTerminated());
    EXPECT_EQ(nodes.membership().topology()->members().size(), 2u) << "it has not left";
    EXPECT_TRUE(absl::IsCancelled(nodes[1].Joined().Take()));
    sim.Advance(absl::Seconds(7));
    EXPECT_EQ(nodes.membership().topology()->members().size(), 1u);
    for (int g = 0; g < 6; ++g) EXPECT_TRUE(nodes.AddTo(0, absl::StrCat("g", g), 1).ok());
  });
}

// Of two threads that start it at once one does, and there is one cluster, which works.
TEST(Cluster, IsStartedOnceByTwoThreads) {
  for (int round = 0; round < 50 && !testing::Test::HasFailure(); ++round) {
    const std::unique_ptr<ActorSystem> system = ActorSystem::Create({.workers = 1}).value();
    const auto store = std::make_shared<MemoryPlacementStore>(system->toolbox());
    const ClusterOptions options{.authority = "a:1",
                                 .kinds = {GrainKindOf<Counter>()},
                                 .membership = std::make_shared<MemoryMembership>(system->toolbox()),
                                 .lock = store,
                                 .storage = store,
                                 .peers = std::make_shared<LocalGrainPeers>()};
    std::vector<absl::StatusOr<Cluster*>> started(2, absl::UnknownError("not started"));
    // Counts down; each waits for the other, so that they begin as near to each other as can be.
    std::atomic<int> missing = 2;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        --missing;
        while (missing.load() != 0) std::this_thread::yield();
        started[i] = Cluster::Start(*system, options);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const size_t first = started[0].ok() ? 0 : 1;
    ASSERT_TRUE(started[first].ok()) << started[0].status() << "; " << started[1].status();
    EXPECT_TRUE(absl::IsFailedPrecondition(started[1 - first].status())) << started[1 - first].status();
    EXPECT_EQ(Cluster::Of(*system), *started[first]);
    const absl::StatusOr<Count> count =
        (*started[first])->Grain<Counter>("alice").AskAndWait(*system, Add{1}, absl::Seconds(20));
    EXPECT_TRUE(count.ok()) << count.status();
  }
}

// A start that has failed leaves room for another one.
TEST(Cluster, IsStartedAfterAStartThatHasFailed) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    ClusterOptions options{.authority = "a:1",
                           .membership = std::make_shared<MemoryMembership>(sim.toolbox()),
                           .lock = store,
                           .storage = store,
                           .peers = std::make_shared<LocalGrainPeers>()};
    ActorRef taken = sim.system().SpawnSystemActor(*MakeProps<SilentInstance>({}), "grains");
    EXPECT_FALSE(Cluster::Start(sim.system(), options).ok()) << "there is an actor of that name";
    EXPECT_EQ(Cluster::Of(sim.system()), nullptr);
    sim.system().Stop(taken);
    sim.Advance(absl::Seconds(1));
    const absl::StatusOr<Cluster*> started = Cluster::Start(sim.system(), options);
    EXPECT_TRUE(started.ok()) << started.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(Cluster::Start(sim.system(), options).status()));
  });
}

// A system that is shut down in order leaves, and others have its grains at once.
TEST(Cluster, LeavesWhenItsSystemIsShutDown) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    Nodes nodes(sim, 2);
    for (int g = 0; g < 12; ++g) ASSERT_TRUE(nodes.AddTo(0, absl::StrCat("g", g), 1).ok());
    ASSERT_GT(nodes[1].driver().Snapshot().activations, 0u);
    nodes.system(1).Terminate();
    sim.Advance(absl::Seconds(2));
    EXPECT_TRUE(nodes.system(1).IsTerminated());
    EXPECT_EQ(nodes.membership().topology()->members().size(), 1u);
    for (int g = 0; g < 12; ++g) {
      Future<Count> asking =
          nodes[0].Grain<Counter>(absl::StrCat("g", g)).Ask(nodes.system(0), Add{1}, absl::Milliseconds(500));
      sim.Advance(absl::Seconds(1));
      ASSERT_TRUE(asking.IsReady());
      EXPECT_TRUE(asking.Take().ok()) << g;
    }
  });
}

// A node that cannot join says so, and why.
TEST(Cluster, LogsThatItCannotJoin) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    const auto membership =
        std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = absl::Milliseconds(500)});
    const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    sim.ExpectLog({.level = LogLevel::kWarning, .contains = "\"a:1\" could not join the cluster, 1 time so far"}, 1,
                  [&] {
                    ASSERT_TRUE(Cluster::Start(sim.system(), {.authority = "a:1",
                                                              .membership = membership,
                                                              .lock = store,
                                                              .storage = store,
                                                              .peers = std::make_shared<LocalGrainPeers>()})
                                    .ok());
                    sim.Advance(absl::Milliseconds(100));
                  });
    EXPECT_FALSE(sim.log().Find(0, {.contains = "PlacementOptions::membership_margin"}).empty());
  });
}

// What is wrong with the options is named, with its value.
TEST(Grain, RefusesAClusterWithoutParts) {
  TestKit kit;
  const auto membership = std::make_shared<MemoryMembership>(kit.system().toolbox());
  const auto store = std::make_shared<MemoryPlacementStore>(kit.system().toolbox());
  const auto refusal = [&](const ClusterOptions& options) {
    const absl::Status status = Cluster::Start(kit.system(), options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  ClusterOptions options{.authority = "a:1"};
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::membership is not set"));
  options.membership = membership;
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::lock is not set"));
  options.lock = store;
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::storage is not set"));
  options.storage = store;
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::peers"));
  options.peers = std::make_shared<LocalGrainPeers>();
  options.authority = "";
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::authority is empty"));
  options.authority = "a:1";
  options.max_wait = -absl::Seconds(1);
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::max_wait is -1s"));
  options.max_wait = absl::Seconds(1);
  options.kinds = {GrainKindOf<Counter>(), GrainKindOf<Counter>()};
  EXPECT_THAT(refusal(options), testing::HasSubstr("\"counter\" is twice"));
  options.kinds = {GrainKind{.name = "a/b"}};
  EXPECT_THAT(refusal(options), testing::HasSubstr("ClusterOptions::kinds: the name of a kind has 1 to 255 bytes"));
  options.kinds = {GrainKind{.name = "nothing"}};
  EXPECT_THAT(refusal(options), testing::HasSubstr("\"nothing\": GrainKind::make is not set"));
  options.kinds = {};
  const auto refusal_of = [&](void (*change)(ClusterOptions&)) {
    ClusterOptions changed = options;
    change(changed);
    return refusal(changed);
  };
  using O = ClusterOptions;
  for (const auto& [change, text] : std::vector<std::pair<void (*)(O&), std::string>>{
           {[](O& o) { o.authority = "nonsense"; }, "ClusterOptions::authority is \"nonsense\""},
           {[](O& o) { o.authority = "host:0"; }, "ClusterOptions::authority is \"host:0\""},
           {[](O& o) { o.authority = ":7"; }, "ClusterOptions::authority is \":7\""},
           {[](O& o) { o.authority = "host:65536"; }, "ClusterOptions::authority is \"host:65536\""},
           {[](O& o) { o.max_waiting_calls = 0; }, "ClusterOptions::max_waiting_calls is 0"},
           {[](O& o) { o.incoming_filters = {nullptr}; }, "ClusterOptions::incoming_filters has a filter that is null"},
           {[](O& o) { o.outgoing_filters = {nullptr}; }, "ClusterOptions::outgoing_filters has a filter that is null"},
           {[](O& o) {
              o.kinds = {GrainKindOf<Counter>()};
              o.kinds[0].filters = {nullptr};
            },
            "kind \"counter\": GrainKind::filters has a filter that is null"},
           {[](O& o) { o.placement.max_retries = -5; }, "PlacementDriverOptions::max_retries is -5"},
           {[](O& o) { o.placement.max_waiting = 0; }, "PlacementDriverOptions::max_waiting is 0"},
           {[](O& o) { o.placement.placement.idle_ttl = -absl::Seconds(1); }, "PlacementOptions::idle_ttl is -1s"},
           {[](O& o) { o.placement.placement.idle_ttl = absl::ZeroDuration(); }, "PlacementOptions::idle_ttl is 0"},
           {[](O& o) { o.placement.placement.membership_margin = absl::ZeroDuration(); },
            "PlacementOptions::membership_margin is 0"},
           {[](O& o) { o.placement.placement.max_stops = 0; }, "PlacementOptions::max_stops is 0"},
           {[](O& o) { o.placement.placement.max_busy_keys = 0; }, "PlacementOptions::max_busy_keys is 0"},
           {[](O& o) { o.placement.placement.pid_cache.capacity = 0; }, "PidCacheOptions::capacity is 0"},
           {[](O& o) { o.session.join_pause = -absl::Seconds(1); }, "MembershipSessionOptions::join_pause is -1s"},
       }) {
    EXPECT_THAT(refusal_of(change), testing::HasSubstr(text));
  }
  EXPECT_EQ(Cluster::Of(kit.system()), nullptr);
}

TEST(GrainCall, OfAnEarlierVersionIsRefused) {
  const auto codecs = ClusterCodecs().Build().value();
  const absl::Status read = codecs->Decode({"fraktor.grain_call", 0, "anything"}).status();
  EXPECT_THAT(read.ToString(), testing::HasSubstr("update all nodes of the cluster"));
}

}  // namespace
}  // namespace fraktor
