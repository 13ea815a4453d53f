#include "fraktor/cluster/singleton/singleton.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/cluster_fixture.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

struct Number {
  int64_t value = 0;
  uint64_t token = 0;
};
struct Next {
  using Reply = Number;
};
struct Quit {};

}  // namespace

template <>
struct Codec<Number> : FieldCodec<Number, &Number::value, &Number::token> {
  static constexpr std::string_view kManifest = "test.number";
};
template <>
struct Codec<Next> : FieldCodec<Next> {
  static constexpr std::string_view kManifest = "test.next";
};

namespace {

class Numbers : public Actor<Numbers, Next, Quit> {
 public:
  static constexpr std::string_view kGrainKind = "numbers";
  explicit Numbers(const GrainContext& grain) : token_(grain.token) {}

  Number On(Context&, const Next&) { return {.value = ++last_, .token = token_}; }
  void On(Context& context, const Quit&) { context.Stop(); }

 private:
  const uint64_t token_;
  int64_t last_ = 0;
};

const GrainKey kKey("numbers", kSingletonIdentity);

// A cluster in which each node looks after the singleton.
class Singletons {
 public:
  Singletons(Simulation& sim, int count, const ClusterOptions& cluster = {.kinds = {SingletonKindOf<Numbers>()}},
             const SingletonOptions& options = {})
      : sim_(sim), nodes(sim, {.cluster = cluster}, count), options_(options) {
    for (size_t i = 0; i < nodes.size(); ++i) Look(i);
  }

  void Look(size_t node) { refs.push_back(StartSingleton<Numbers>(nodes.system(node), options_).value()); }

  Future<Number> Ask(size_t node) { return nodes.system(node).Ask(refs[node], Next{}, absl::Minutes(1)); }
  absl::StatusOr<Number> AskAndWait(size_t node) {
    Future<Number> asking = Ask(node);
    sim_.RunUntil([&] { return asking.IsReady(); }, absl::Minutes(2));
    return asking.Take();
  }

 private:
  Simulation& sim_;

 public:
  ClusterFixture nodes;
  std::vector<RefOf<Numbers>> refs;

 private:
  const SingletonOptions options_;
};

// C26: there is one, without anybody calling it, and all nodes reach it.
TEST(Singleton, IsThereByItselfAndOnce) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Singletons cluster(sim, 3);
    sim.Advance(absl::Seconds(3));
    EXPECT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    for (size_t i = 0; i < 3; ++i) {
      const absl::StatusOr<Number> number = cluster.AskAndWait(i);
      ASSERT_TRUE(number.ok()) << number.status();
      EXPECT_EQ(number->value, static_cast<int64_t>(i) + 1);
    }
    EXPECT_EQ(cluster.nodes.store().activations(), 1u);
  });
}

// Who looks after it before his node has joined need not wait for the next look.
TEST(Singleton, IsThereAsSoonAsItsNodeHasJoined) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    TestClusterOptions options;
    options.kinds = {SingletonKindOf<Numbers>()};
    options.codecs.Add<Number, Next>();
    SimTestCluster cluster(sim, options);
    for (size_t i = 0; i < 3; ++i) {
      cluster.AddNode();
      ASSERT_FALSE(cluster[i].WhyNoMember().ok());
      const RefOf<Numbers> numbers = StartSingleton<Numbers>(cluster.system(i)).value();
      Future<Number> asking = cluster.system(i).Ask(numbers, Next{}, absl::Seconds(20));
      ASSERT_TRUE(cluster.Await(cluster[i].Joined()).ok());
      const Instant joined = sim.toolbox().Now();
      const absl::StatusOr<Number> number = cluster.Await(std::move(asking));
      ASSERT_TRUE(number.ok()) << number.status();
      EXPECT_LT(sim.toolbox().Now() - joined, absl::Milliseconds(200)) << "node " << i;
    }
  });
}

class Broken : public Actor<Broken, Next> {
 public:
  static constexpr std::string_view kGrainKind = "broken";
  explicit Broken(const GrainContext&) { throw std::runtime_error("no database"); }
  Number On(Context&, const Next&) { return {}; }
};

// As of any grain: who has asked one that cannot be started hears why, and need not wait for his timeout.
TEST(Singleton, SaysWhyItCannotStart) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    ClusterFixture nodes(sim, {.cluster = {.kinds = {SingletonKindOf<Broken>()}}}, 2);
    sim.Advance(absl::Seconds(3));
    for (size_t i = 0; i < 2; ++i) {
      const RefOf<Broken> broken = StartSingleton<Broken>(nodes.system(i)).value();
      Future<Number> asking = nodes.system(i).Ask(broken, Next{}, absl::Minutes(1));
      const Instant asked = sim.toolbox().Now();
      sim.RunUntil([&] { return asking.IsReady(); }, absl::Minutes(2));
      EXPECT_LT(sim.toolbox().Now() - asked, absl::Seconds(2));
      const absl::Status why = asking.Take().status();
      EXPECT_TRUE(absl::IsInternal(why)) << why;
      for (const char* const part : {"singleton \"broken\" is not there", "no database"}) {
        EXPECT_THAT(std::string(why.message()), testing::HasSubstr(part));
      }
    }
  });
}

// A router of another member, which tells nobody where a grain is: it replies with an error.
class LyingRouter final : public ActorInstance {
 public:
  explicit LyingRouter(absl::Status error) : error_(std::move(error)) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    const auto* const locate = message.TryAs<LocateGrain>();
    if (locate == nullptr) return context.Unhandled(message);
    context.Reply(GrainLocated{.key = locate->key, .attempt = locate->attempt, .status = error_});
    return absl::OkStatus();
  }

 private:
  const absl::Status error_;
};

// A reply may carry the timeout of another ask. It is a reply all the same: at the end of its own
// timeout the asker gets that error, and not "it has not answered".
TEST(Singleton, TakesATimeoutInAReplyForAnAnswer) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    const auto membership =
        std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = absl::Hours(1)});
    const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    const auto peers = std::make_shared<LocalGrainPeers>();
    ASSERT_TRUE(
        membership
            ->Join({.authority = "liar:1", .kinds = {"numbers"}, .oldest_kinds = {"numbers"}}, sim.toolbox().Now())
            .Take()
            .ok());
    ActorSystem& system = sim.system();
    const PropsPtr liar = MakeProps<LyingRouter>(
        {}, MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout, "the disk has not replied"));
    peers->Announce("liar:1", system.Spawn(*liar));
    ASSERT_TRUE(Cluster::Start(system, {.authority = "a:1",
                                        .kinds = {SingletonKindOf<Numbers>()},
                                        .membership = membership,
                                        .lock = store,
                                        .storage = store,
                                        .peers = peers})
                    .ok());
    const RefOf<Numbers> numbers = StartSingleton<Numbers>(system).value();
    sim.Advance(absl::Seconds(1));
    for (const absl::Duration timeout : {absl::Seconds(2), absl::Seconds(20)}) {
      Future<Number> asking = system.Ask(numbers, Next{}, timeout);
      const Instant asked = sim.toolbox().Now();
      sim.RunUntil([&] { return asking.IsReady(); }, absl::Minutes(1));
      ASSERT_TRUE(asking.IsReady());
      EXPECT_GT(sim.toolbox().Now() - asked, timeout / 2) << "it may be there soon";
      const absl::Status why = asking.Take().status();
      EXPECT_TRUE(absl::IsUnavailable(why)) << why;
      for (const char* const part : {"singleton \"numbers\" is not there", "the disk has not replied"}) {
        EXPECT_THAT(std::string(why.message()), testing::HasSubstr(part));
      }
    }
  });
}

// An error that somebody sends to the singleton says nothing of whether it can be started.
TEST(Singleton, IsWaitedForWhateverErrorsOthersSendToIt) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Singletons cluster(sim, 1, {.kinds = {}});
    sim.Advance(absl::Seconds(2));
    Future<Number> answer = cluster.Ask(0);
    Tell(cluster.refs[0].untyped(), ErrorReply{absl::InternalError("it cannot be started")});
    sim.Advance(absl::Seconds(1));
    ASSERT_FALSE(answer.IsReady()) << answer.Take().status();
    cluster.nodes.Join({SingletonKindOf<Numbers>()});
    sim.Advance(absl::Seconds(3));
    ASSERT_TRUE(answer.IsReady());
    EXPECT_TRUE(answer.Take().ok());
  });
}

// CLU-8: being idle does not end it.
TEST(Singleton, StaysWhenNobodyUsesIt) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Singletons cluster(
        sim, 2, {.kinds = {SingletonKindOf<Numbers>()}, .placement = {.placement = {.idle_ttl = absl::Seconds(5)}}});
    ASSERT_EQ(cluster.AskAndWait(0).value().value, 1);
    sim.Advance(absl::Hours(1));
    EXPECT_EQ(cluster.AskAndWait(1).value().value, 2);
  });
}

// C26: it is on the oldest member that hosts it, whatever its key is hashed to; who joins does not change that, and who
// comes back is the youngest.
TEST(Singleton, RunsOnTheOldestMember) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Singletons cluster(sim, 1, {.kinds = {}});
    sim.Advance(absl::Seconds(1));
    for (size_t i = 1; i <= 4; ++i) {
      cluster.nodes.Join({SingletonKindOf<Numbers>()});
      sim.Advance(absl::Seconds(1));
      cluster.Look(i);
    }
    // The first node is older, and does not host it.
    uint64_t token = 0;
    for (size_t oldest = 1; oldest <= 4; ++oldest) {
      sim.Advance(absl::Seconds(3));
      EXPECT_EQ(cluster.nodes.HostsOf(kKey), (std::vector<size_t>{oldest}));
      for (size_t i = 0; i <= 4; ++i) {
        const absl::StatusOr<Number> number = cluster.AskAndWait(i);
        ASSERT_TRUE(number.ok()) << "from node " << i << ": " << number.status();
        if (i == 0) {
          EXPECT_GT(number->token, token) << "another life";
          token = number->token;
        }
        EXPECT_EQ(number->token, token) << "there is one, wherever it is called from";
      }
      if (oldest == 4) break;
      Future<void> left = cluster.nodes[oldest].Leave();
      sim.RunUntil([&] { return left.IsReady(); }, absl::Minutes(1));
    }
    // One more, which would be the first by its name.
    cluster.nodes.Join({SingletonKindOf<Numbers>()});
    sim.Advance(absl::Seconds(3));
    EXPECT_EQ(cluster.nodes.HostsOf(kKey), (std::vector<size_t>{4}));
    EXPECT_EQ(cluster.AskAndWait(0).value().token, token) << "it has not moved";
  });
}

// C26: when the oldest dies, the next oldest has it.
TEST(Singleton, MovesToTheNextOldestWhenTheOldestDies) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Singletons cluster(sim, 3);
    sim.Advance(absl::Seconds(3));
    // They joined at the same time: who was first differs.
    std::vector<size_t> by_age = {0, 1, 2};
    const ClusterTopologyPtr topology = cluster.nodes[0].driver().topology();
    std::sort(by_age.begin(), by_age.end(), [&](size_t a, size_t b) {
      return topology->FindAuthority(cluster.nodes[a].authority())->incarnation <
             topology->FindAuthority(cluster.nodes[b].authority())->incarnation;
    });
    EXPECT_EQ(cluster.nodes.HostsOf(kKey), (std::vector<size_t>{by_age[0]}));
    cluster.nodes.Crash(by_age[0]);
    sim.Advance(ClusterFixture::kTerm + absl::Seconds(3));
    EXPECT_EQ(cluster.nodes.HostsOf(kKey), (std::vector<size_t>{by_age[1]}));
  });
}

// A node that leaves hands it over: it is there again without a call, and nothing is lost on the way.
TEST(Singleton, MovesWhenItsNodeLeavesAndLosesNothing) {
  Simulate({.seeds = 30}, [](Simulation& sim) {
    Singletons cluster(sim, 3);
    sim.Advance(absl::Seconds(3));
    ASSERT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    const size_t host = cluster.nodes.HostsOf(kKey)[0];
    const uint64_t token = cluster.AskAndWait(host).value().token;
    const size_t other = (host + 1) % 3;
    std::vector<Future<Number>> answers;
    Future<void> left;
    for (int i = 0; i < 60; ++i) {
      if (i == 20) left = cluster.nodes[host].Leave();
      answers.push_back(cluster.Ask(other));
      if (i % 3 == 0) sim.Advance(absl::Milliseconds(1));
    }
    sim.Advance(absl::Seconds(5));
    ASSERT_TRUE(left.IsReady());
    // By token; those that were sent while it moved may overtake each other.
    std::map<uint64_t, std::vector<int64_t>> values;
    values[token].push_back(1);
    for (Future<Number>& answer : answers) {
      ASSERT_TRUE(answer.IsReady());
      const absl::StatusOr<Number> number = answer.Take();
      ASSERT_TRUE(number.ok()) << number.status();
      values[number->token].push_back(number->value);
    }
    EXPECT_EQ(values.size(), 2u);
    for (auto& [life, numbers] : values) {
      std::sort(numbers.begin(), numbers.end());
      for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int64_t>(i) + 1);
    }
    ASSERT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    EXPECT_NE(cluster.nodes.HostsOf(kKey)[0], host);
    EXPECT_EQ(cluster.AskAndWait(host).value().token, values.rbegin()->first) << "who has left may still call";
  });
}

// It is there again, without a call, soon after its node has died; what was sent meanwhile has waited.
TEST(Singleton, ComesBackAfterItsNodeHasCrashed) {
  Simulate({.seeds = 30}, [](Simulation& sim) {
    Singletons cluster(sim, 3);
    sim.Advance(absl::Seconds(3));
    ASSERT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    const size_t host = cluster.nodes.HostsOf(kKey)[0];
    const size_t other = (host + 1) % 3;
    const uint64_t token = cluster.AskAndWait(other).value().token;
    cluster.nodes.Crash(host);
    sim.Advance(absl::Milliseconds(10));
    std::vector<Future<Number>> answers;
    for (int i = 0; i < 10; ++i) answers.push_back(cluster.Ask(other));
    sim.Advance(ClusterFixture::kTerm + absl::Seconds(3));
    const std::vector<size_t> hosts = cluster.nodes.HostsOf(kKey);
    ASSERT_EQ(hosts.size(), 1u);
    EXPECT_NE(hosts[0], host);
    for (size_t i = 0; i < answers.size(); ++i) {
      ASSERT_TRUE(answers[i].IsReady());
      const absl::StatusOr<Number> number = answers[i].Take();
      ASSERT_TRUE(number.ok()) << number.status();
      EXPECT_EQ(number->value, static_cast<int64_t>(i) + 1);
      EXPECT_GT(number->token, token);
    }
  });
}

// The same when nobody calls at all.
TEST(Singleton, NeedsNoCallToComeBack) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Singletons cluster(sim, 3);
    sim.Advance(absl::Seconds(3));
    ASSERT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    const size_t host = cluster.nodes.HostsOf(kKey)[0];
    cluster.nodes.Crash(host);
    sim.Advance(ClusterFixture::kTerm + absl::Seconds(3));
    EXPECT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u);
    cluster.refs[(host + 1) % 3].Tell(Quit{});
    sim.Advance(absl::Seconds(3));
    EXPECT_EQ(cluster.nodes.HostsOf(kKey).size(), 1u) << "nor after it has ended by itself";
  });
}

// Peers that are not trusted may not watch each other: one that ends on a node that lives on is missed all the same.
TEST(Singleton, ComesBackWhereItMayNotBeWatched) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    TestClusterOptions options;
    options.kinds = {SingletonKindOf<Numbers>()};
    options.remote.untrusted = true;
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(1);
    ASSERT_TRUE(cluster.Await(cluster[0].Joined()).ok());
    cluster.AddNodes(1);
    ASSERT_TRUE(cluster.Await(cluster[1].Joined()).ok());
    // It is on the first node, and only the second looks after it.
    ASSERT_TRUE(StartSingleton<Numbers>(cluster.system(1)).ok());
    sim.Advance(absl::Seconds(3));
    ASSERT_NE(cluster[0].driver().Local(kKey), nullptr);
    cluster[0].Grain<Numbers>(kSingletonIdentity).Tell(Quit{});
    sim.Advance(absl::Milliseconds(10));
    ASSERT_EQ(cluster[0].driver().Local(kKey), nullptr);
    sim.Advance(SingletonOptions().check_period + SingletonOptions().identify_period + absl::Milliseconds(100));
    EXPECT_NE(cluster[0].driver().Local(kKey), nullptr);
  });
}

// C26: the proxy keeps so many messages and no more.
TEST(Singleton, IsWaitedForByALimitedNumberOfMessages) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Singletons cluster(sim, 1, {.kinds = {}}, {.max_buffered = 3});
    sim.Advance(absl::Seconds(2));
    std::vector<Future<Number>> answers;
    for (int i = 0; i < 5; ++i) answers.push_back(cluster.Ask(0));
    sim.Advance(absl::Seconds(1));
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(answers[i].IsReady(), i >= 3);
    for (size_t i = 3; i < 5; ++i) EXPECT_TRUE(absl::IsResourceExhausted(answers[i].Take().status()));
    EXPECT_EQ(cluster.nodes.system(0).dead_letters().count(DeadLetterReason::kStashFull), 2u);
    cluster.nodes.Join({SingletonKindOf<Numbers>()});
    sim.Advance(absl::Seconds(3));
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(answers[i].IsReady());
      EXPECT_EQ(answers[i].Take().value().value, static_cast<int64_t>(i) + 1);
    }
  });
}

// What waits when its node ends is a dead letter.
TEST(Singleton, MakesDeadLettersOfWhatStillWaits) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Singletons cluster(sim, 1, {.kinds = {}});
    sim.Advance(absl::Seconds(1));
    for (int i = 0; i < 4; ++i) cluster.refs[0].Tell(Quit{});
    sim.Advance(absl::Seconds(1));
    const uint64_t before = cluster.nodes.system(0).dead_letters().count(DeadLetterReason::kStopped);
    cluster.nodes.system(0).Stop(cluster.refs[0].untyped());
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(cluster.nodes.system(0).dead_letters().count(DeadLetterReason::kStopped), before + 4);
  });
}

TEST(Singleton, RefusesWhatHasNoSense) {
  TestKit kit;
  EXPECT_TRUE(absl::IsFailedPrecondition(StartSingleton<Numbers>(kit.system()).status()));
  Simulate({.seeds = 1}, [](Simulation& sim) {
    ClusterFixture nodes(sim, {.cluster = {.kinds = {SingletonKindOf<Numbers>()}}}, 1);
    EXPECT_TRUE(absl::IsInvalidArgument(
        StartSingleton<Numbers>(nodes.system(0), {.identify_period = absl::ZeroDuration()}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(
        StartSingleton<Numbers>(nodes.system(0), {.check_period = absl::ZeroDuration()}).status()));
    EXPECT_TRUE(StartSingleton<Numbers>(nodes.system(0)).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(StartSingleton<Numbers>(nodes.system(0)).status()));
  });
}

}  // namespace
}  // namespace fraktor
