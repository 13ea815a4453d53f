#include "fraktor/cluster/testing/sim_test_cluster.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_gate.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/grain/grain_router.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/pubsub/pubsub.h"
#include "fraktor/cluster/singleton/singleton.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/remote/association/peer_info.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {

struct News {
  int64_t number = 0;
  std::string text = {};
};
template <>
struct Codec<News> : FieldCodec<News, &News::number, &News::text> {
  static constexpr std::string_view kManifest = "test.news";
};

struct Pack {
  using Reply = Count;
  std::string bytes = {};
};
template <>
struct Codec<Pack> : FieldCodec<Pack, &Pack::bytes> {
  static constexpr std::string_view kManifest = "test.pack";
};
// Answers, and ends by itself.
struct Resign {
  using Reply = Count;
  int64_t n = 0;
};
template <>
struct Codec<Resign> : FieldCodec<Resign, &Resign::n> {
  static constexpr std::string_view kManifest = "test.resign";
};

namespace {

// Cannot be made if it is called "unborn...", and does not start if it is called "unwilling...".
class Porter : public Actor<Porter, Pack, Resign> {
 public:
  static constexpr std::string_view kGrainKind = "porter";
  explicit Porter(const GrainContext& grain) : identity_(grain.key.identity()), token_(grain.token) {
    ++made;
    if (identity_.rfind("unborn", 0) == 0) throw std::runtime_error("no uniform");
  }
  absl::Status PreStart(Context&) {
    return identity_.rfind("unwilling", 0) == 0 ? absl::UnavailableError("no keys") : absl::OkStatus();
  }
  Count On(Context&, const Pack& pack) {
    return {.value = carried_ += static_cast<int64_t>(pack.bytes.size()), .token = token_};
  }
  Count On(Context& context, const Resign&) {
    context.Stop();
    return {.value = carried_, .token = token_};
  }

  static inline int made = 0;

 private:
  const std::string identity_;
  const uint64_t token_;
  int64_t carried_ = 0;
};

TestClusterOptions PorterCluster() {
  TestClusterOptions options = CounterCluster();
  options.kinds.push_back(GrainKindOf<Porter>());
  options.codecs.Add<Pack, Resign>();
  return options;
}

// The dead letters of a system, by reason and recipient.
class DeadLetterList {
 public:
  explicit DeadLetterList(ActorSystem& system)
      : listening_(system.events().Listen<AllDeadLetters>([this](const AllDeadLetters& letter) {
          texts_.push_back(absl::StrCat(std::string(NameOf(letter.reason)), ": ", std::string(letter.message.type_name),
                                        " to ", std::string(letter.recipient)));
        })) {}

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  const EventSubscription listening_;
};

class ClusterOverSim : public testing::Test {
 protected:
  static void RunSeeds(int seeds, void (*scenario)(TestCluster&)) {
    Simulate({.seeds = seeds}, [scenario](Simulation& sim) {
      SimTestCluster cluster(sim, CounterCluster());
      scenario(cluster);
    });
  }
};

TEST_F(ClusterOverSim, RunsOnOneNodeAndIsReachedFromAll) { RunSeeds(3, RunsOnOneNodeAndIsReachedFromAll); }
TEST_F(ClusterOverSim, KeepsTheOrderOfACaller) { RunSeeds(3, KeepsTheOrderOfACaller); }
TEST_F(ClusterOverSim, MovesWhenItsNodeLeaves) { RunSeeds(3, MovesWhenItsNodeLeaves); }
TEST_F(ClusterOverSim, AJoinMovesNothing) { RunSeeds(1, AJoinMovesNothing); }
TEST_F(ClusterOverSim, ComesBackElsewhereAfterACrash) { RunSeeds(3, ComesBackElsewhereAfterACrash); }
TEST_F(ClusterOverSim, ComesBackWhenItsNodeIsRestarted) { RunSeeds(3, ComesBackWhenItsNodeIsRestarted); }
TEST_F(ClusterOverSim, GoesOnWhileTheStoreIsAway) { RunSeeds(3, GoesOnWhileTheStoreIsAway); }

TEST_F(ClusterOverSim, FiltersCallsOfOtherNodes) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    const FilteredCounters filters;
    SimTestCluster cluster(sim, filters.Options());
    FiltersCallsOfOtherNodes(cluster, filters);
  });
}

// CLU-5: a node that cannot renew its membership stops its grains before others take over; it cannot know whether the
// store is away or only the way to it. Then it joins again, as another member.
TEST_F(ClusterOverSim, ANodeThatIsCutOffFromTheStoreStopsItsGrainsInTime) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    std::vector<Count> before;
    for (int g = 0; g < 8; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
    const std::string life = cluster[1].session().member_id();
    ASSERT_GT(cluster[1].driver().Snapshot().activations, 0u);
    cluster.CutFromStore(1);
    cluster.Cut(0, 1);
    sim.Advance(absl::Seconds(5));
    EXPECT_GT(cluster[1].driver().Snapshot().activations, 0u) << "its term is not over";
    for (int step = 0; step < 60; ++step) {
      sim.Advance(absl::Milliseconds(100));
      const ClusterTopologyPtr topology = cluster[0].driver().topology();
      if (topology->FindId(life) == nullptr) {
        EXPECT_EQ(cluster[1].driver().Snapshot().activations, 0u) << "others may take over now";
      }
    }
    EXPECT_EQ(cluster[0].driver().topology()->FindId(life), nullptr);
    for (int g = 0; g < 8; ++g) {
      const absl::StatusOr<Count> count = AddTo(cluster, 0, absl::StrCat("g", g), 1);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_GE(count->token, before[g].token);
    }
    EXPECT_EQ(cluster[0].driver().Snapshot().activations, 8u);
    cluster.Heal();
    const absl::StatusOr<Count> count = cluster.AskUntilAnswered<Counter>(1, "g0", Add{1});
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_NE(cluster[1].session().member_id(), life);
    EXPECT_EQ(Running(cluster), 8u);
  });
}

// CLU-13: a store that was away for longer than a term finds its members gone, by their own decision, and takes them in as
// new ones.
TEST_F(ClusterOverSim, GrainsEndWhenTheStoreIsAwayForTooLong) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const Count first = AddTo(cluster, 0, "alice", 1).value();
    cluster.CrashStore();
    sim.Advance(absl::Seconds(11));
    EXPECT_EQ(Running(cluster), 0u);
    cluster.RestartStore();
    const absl::StatusOr<Count> second = AddTo(cluster, 1, "alice", 1);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_GT(second->token, first.token);
    EXPECT_EQ(second->value, 1);
  });
}

// CLU-13: a store that has forgotten everything waits until what it may have allowed has ended.
TEST_F(ClusterOverSim, AStoreWithoutADiskIsSilentForATerm) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.is_forgetful = true;
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    const Count first = AddTo(cluster, 0, "alice", 1).value();
    cluster.CrashStore();
    cluster.RestartStore();
    sim.Advance(absl::Seconds(5));
    EXPECT_EQ(AddTo(cluster, 1, "alice", 1, absl::Seconds(1)).value().token, first.token) << "it goes on";
    const absl::StatusOr<Count> none = AddTo(cluster, 0, "bob", 1, absl::Seconds(2));
    EXPECT_TRUE(ErrorKindOf<LookupError>(none.status()).has_value()) << none.status();
    size_t most = 0;
    for (int step = 0; step < 100; ++step) {
      sim.Advance(absl::Milliseconds(100));
      most = std::max(most, Running(cluster));
    }
    EXPECT_LE(most, 1u);
    const absl::StatusOr<Count> second = AddTo(cluster, 1, "alice", 1);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_GT(second->token, first.token);
  });
}

// A store that cannot write says so, changes nothing, and goes on when it can.
TEST_F(ClusterOverSim, AStoreThatCannotWriteRefuses) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    const auto backend = std::make_shared<TestBackend>();
    options.store.backend = backend;
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    const Count first = AddTo(cluster, 0, "alice", 1).value();
    backend->set_failure(absl::ResourceExhaustedError("the disk is full"));
    const absl::StatusOr<Count> none = AddTo(cluster, 0, "bob", 1, absl::Seconds(3));
    EXPECT_TRUE(ErrorKindOf<LookupError>(none.status()).has_value()) << none.status();
    EXPECT_EQ(AddTo(cluster, 1, "alice", 1).value().token, first.token);
    backend->set_failure(absl::OkStatus());
    const absl::StatusOr<Count> later = AddTo(cluster, 0, "bob", 1);
    ASSERT_TRUE(later.ok()) << later.status();
    EXPECT_GT(later->token, first.token);
  });
}

// A message without a codec cannot leave its node: whoever asks hears why.
TEST_F(ClusterOverSim, SaysThatAMessageHasNoCodec) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const DeadLetterList letters(cluster.system(0));
    int refused = 0;
    for (int g = 0; g < 8; ++g) {
      const absl::StatusOr<Count> count = cluster.Await(
          cluster[0].Grain<Counter>(absl::StrCat("g", g)).Ask(cluster.system(0), Secret{1}, absl::Seconds(20)));
      if (count.ok()) continue;  // it runs on this node
      ++refused;
      EXPECT_TRUE(absl::IsInvalidArgument(count.status())) << "as of any question: " << count.status();
      EXPECT_NE(std::string(count.status().message()).find("Secret"), std::string::npos) << count.status();
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 8);
    EXPECT_EQ(letters.texts().size(), static_cast<size_t>(refused));
    EXPECT_THAT(letters.texts(), testing::Each(testing::StartsWith("not_serializable: ")));
  });
}

// C26: a singleton is reached from every node with the codecs of its messages and ClusterCodecs() alone.
TEST_F(ClusterOverSim, ASingletonNeedsNoFurtherCodecs) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.kinds = {SingletonKindOf<Counter>()};
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(3);
    std::vector<RefOf<Counter>> refs;
    for (size_t i = 0; i < 3; ++i) refs.push_back(StartSingleton<Counter>(cluster.system(i)).value());
    for (int64_t i = 0; i < 3; ++i) {
      const absl::StatusOr<Count> count =
          cluster.Await(cluster.system(i).Ask(refs[i], Add{1}, absl::Seconds(20)), absl::Seconds(30));
      ASSERT_TRUE(count.ok()) << "from node " << i << ": " << count.status();
      EXPECT_EQ(count->value, i + 1);
    }
  });
}

class Reader : public Actor<Reader, News> {
 public:
  explicit Reader(std::vector<int64_t>* numbers) : numbers_(numbers) {}
  void On(Context&, const News& news) { numbers_->push_back(news.number); }

 private:
  std::vector<int64_t>* const numbers_;
};
// Publishes one, as itself.
struct Say {
  int64_t number = 0;
};
class Writer : public Actor<Writer, Say> {
 public:
  void On(Context& context, const Say& say) {
    const absl::Status published = PubSub::Of(context.system())
                                       ->Topic<News>("news")
                                       .Publish({.number = say.number, .text = std::string(400, 'x')});
    EXPECT_TRUE(published.ok()) << published;
  }
};

// Two nodes, of which the first has the topic and the second a subscriber.
struct Press {
  explicit Press(Simulation& sim, const TopicOptions& topics = {}) : sim_(sim), cluster(sim, Options(topics)) {
    cluster.AddNodes(1);
    PubSub::Start(cluster.system(0)).value();
    const Future<Published> activated = Publish(News{.number = -1});
    sim.Advance(absl::Seconds(7));
    cluster.AddNodes(1);
    PubSub& there = *PubSub::Start(cluster.system(1)).value();
    reader = cluster.system(1).Spawn<Reader>("reader", &numbers);
    const absl::StatusOr<Subscribed> subscribed =
        cluster.Await(there.Topic<News>("news").Subscribe(cluster.system(1), *reader, absl::Seconds(20)));
    EXPECT_TRUE(subscribed.ok()) << subscribed.status();
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(cluster[1].driver().Snapshot().activations, 0u);
  }
  static TestClusterOptions Options(const TopicOptions& topics) {
    TestClusterOptions options;
    options.kinds = {TopicKind(topics)};
    options.codecs.Add<News>().Add(PubSubCodecs());
    return options;
  }
  Future<Published> Publish(const News& news) {
    return PubSub::Of(cluster.system(0))
        ->Topic<News>("news")
        .PublishConfirmed(cluster.system(0), news, absl::Seconds(20));
  }

  Simulation& sim_;
  SimTestCluster cluster;
  std::vector<int64_t> numbers;
  std::optional<RefOf<Reader>> reader;
};

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// Batches fit into frames, whatever the sizes of the publications are: all arrive, at once and in order.
TEST_F(ClusterOverSim, PublicationsOfManySizesReachOtherNodes) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Press press(sim);
    const DeadLetterList letters(press.cluster.system(0));
    const Topic<News> news = PubSub::Of(press.cluster.system(0))->Topic<News>("news");
    int64_t count = 0;
    for (const auto& [times, bytes] : std::vector<std::pair<int, size_t>>{
             {2000, 1000}, {2000, 100}, {30, 100'000}, {1, 200'000}, {1, 245'000}, {2, 130'000}}) {
      for (int i = 0; i < times; ++i) {
        const absl::Status published = news.Publish({.number = count++, .text = std::string(bytes, 'x')});
        ASSERT_TRUE(published.ok()) << published;
      }
      sim.Advance(absl::Seconds(1));
      ASSERT_EQ(press.numbers.size(), static_cast<size_t>(count)) << times << " of " << bytes;
    }
    EXPECT_EQ(press.numbers, UpTo(count));
    EXPECT_THAT(letters.texts(), testing::IsEmpty());
    const absl::Status refused = news.Publish({.text = std::string(250'000, 'x')});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                testing::HasSubstr("245760 are allowed (PubSubOptions::max_publication_bytes)"));
  });
}

// A batch that is too large for a frame all the same, as for the names of its publishers, is sent in smaller ones at once.
TEST_F(ClusterOverSim, ABatchThatDoesNotFitIsSentInSmallerOnes) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    constexpr int64_t kWriters = 400;
    Press press(sim);
    const DeadLetterList letters(press.cluster.system(0));
    std::vector<RefOf<Writer>> writers;
    for (int64_t i = 0; i < kWriters; ++i) {
      writers.push_back(press.cluster.system(0).Spawn<Writer>(absl::StrCat(std::string(700, 'w'), i)));
    }
    for (int64_t i = 0; i < kWriters; ++i) writers[i].Tell(Say{.number = i});
    sim.Advance(absl::Seconds(1));
    std::sort(press.numbers.begin(), press.numbers.end());
    EXPECT_EQ(press.numbers, UpTo(kWriters));
    EXPECT_THAT(letters.texts(), testing::IsEmpty());
  });
}

// What cannot reach another node is refused in the beginning.
TEST_F(ClusterOverSim, RefusesAPublicationLimitThatNoFrameHolds) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, Press::Options({}));
    cluster.AddNodes(1);
    const absl::Status refused = PubSub::Start(cluster.system(0), {.max_publication_bytes = size_t{1} << 20}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("PubSubOptions::max_publication_bytes is 1048576"));
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("WireLimits::max_frame_bytes"));
    EXPECT_TRUE(PubSub::Start(cluster.system(0)).ok());
  });
}

// It is said where topics begin, and not by every subscription after a while.
TEST_F(ClusterOverSim, TopicsNeedTheirCodecs) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(1);
    const absl::Status refused = PubSub::Start(cluster.system(0)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("add PubSubCodecs()"));
  });
}

// Where a grain is is asked once: from then on a call is one message there and one back.
TEST_F(ClusterOverSim, RemembersWhereAGrainIs) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    EXPECT_EQ(cluster[0].driver().Snapshot().cached_pids, 1u);
    // The store is not needed, nor anybody else.
    cluster.CrashStore();
    ASSERT_TRUE(AddTo(cluster, 0, there, 1, absl::Seconds(1)).ok());
  });
}

// A call whose place is known leaves without the router, but not while one before it is there: so they stay in order.
TEST_F(ClusterOverSim, ACallDoesNotOvertakeOneThatIsAtTheRouter) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    std::string identity;
    PlacementResolutionPtr place;
    for (int g = 0; place == nullptr || place->locality != PlacementLocality::kRemote; ++g) {
      identity = absl::StrCat("g", g);
      ASSERT_TRUE(AddTo(cluster, 0, identity, 1).ok());
      place = cluster[0].driver().Cached(GrainKey(Counter::kGrainKind, identity));
      ASSERT_LT(g, 100);
    }
    const uint64_t before = cluster[0].calls_past_router();
    EXPECT_EQ(AddTo(cluster, 0, identity, 1).value().value, 2);
    EXPECT_EQ(cluster[0].calls_past_router(), before + 1);

    const auto ask = [&] {
      return cluster[0].Grain<Counter>(identity).Ask(cluster.system(0), Add{1}, absl::Seconds(5));
    };
    cluster[0].driver().RemovePid(place->decision.key, place->pid);
    Future<Count> at_router = ask();
    cluster[0].driver().Learn(place);
    Future<Count> behind = ask();
    EXPECT_EQ(cluster[0].calls_past_router(), before + 1);
    EXPECT_EQ(cluster.Await(std::move(at_router)).value().value, 3);
    EXPECT_EQ(cluster.Await(std::move(behind)).value().value, 4);

    EXPECT_EQ(cluster.Await(ask()).value().value, 5);
    EXPECT_EQ(cluster[0].calls_past_router(), before + 2);
    // After its end too a reference leads to nowhere, and not into it.
    const GrainRef<Counter> grain = cluster[0].Grain<Counter>(identity);
    cluster.Crash(0);
    grain.Tell(Add{1});
  });
}

// A call that is asked when the connection to the grain's node is known to be gone has not left: when the node is no
// member any more, the grain is looked for anew, and answers from elsewhere. Once, and in the order of the calls.
void ACallThatWaitsForADeadNodeGoesElsewhere(Simulation& sim, absl::Duration idle) {
  SimTestCluster cluster(sim, CounterCluster());
  cluster.AddNodes(3);
  const std::string identity = GrainOfTheOther(cluster);
  const std::string life = cluster[1].session().member_id();
  sim.Advance(idle);
  cluster.Crash(1);
  sim.Advance(absl::Seconds(1));
  std::vector<Future<Count>> answers;
  for (int i = 0; i < 3; ++i) {
    answers.push_back(cluster[0].Grain<Counter>(identity).Ask(cluster.system(0), Add{1}, absl::Seconds(40)));
    sim.Advance(absl::Milliseconds(500));
  }
  while (cluster[0].driver().topology()->FindId(life) != nullptr) {
    for (const Future<Count>& answer : answers) ASSERT_FALSE(answer.IsReady());
    sim.Advance(absl::Milliseconds(10));
  }
  sim.Advance(absl::Milliseconds(500));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(answers[i].IsReady()) << "call " << i;
    const absl::StatusOr<Count> count = answers[i].Take();
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, i + 1);
  }
  EXPECT_EQ(AddTo(cluster, 2, identity, 1).value().value, 4);
}

TEST_F(ClusterOverSim, ACallThatWaitsForADeadNodeGoesElsewhere) {
  Simulate({.seeds = 3}, [](Simulation& sim) { ACallThatWaitsForADeadNodeGoesElsewhere(sim, absl::ZeroDuration()); });
}

// The same if nothing was said for long, so that its streams are closed, and it is taken for connected.
TEST_F(ClusterOverSim, ACallToADeadNodeThatWasSilentForLongGoesElsewhere) {
  Simulate({.seeds = 2}, [](Simulation& sim) { ACallThatWaitsForADeadNodeGoesElsewhere(sim, absl::Minutes(11)); });
}

// What remoting gives back is looked for before what is asked later.
TEST_F(ClusterOverSim, ACallThatIsGivenBackIsNotOvertaken) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string identity = GrainOfTheOther(cluster);
    const GrainKey key(Counter::kGrainKind, identity);
    const Member gone = *cluster[0].topology()->FindId(cluster[1].session().member_id());
    const Member stays = *cluster[0].topology()->FindId(cluster[0].session().member_id());
    cluster.Crash(1);
    sim.Advance(absl::Seconds(1));
    const uint64_t crossed = cluster[0].calls_past_router();
    const auto add = [&](int64_t n) {
      return cluster[0].Grain<Counter>(identity).Ask(cluster.system(0), Add{n}, absl::Seconds(20));
    };
    Future<Count> first = add(1);
    Future<Count> second = add(10);
    EXPECT_EQ(cluster[0].calls_past_router(), crossed + 2) << "they wait for the connection";
    Tell(cluster[0].router(), MembersLeft{.topology = ClusterTopology::Make(1000, {stays}).value(),
                                          .left = {PathAuthority::Create("pekko", "n1.test", 2552).value()},
                                          .ids = {gone.id()}});
    Future<Count> third;
    {
      // It is at the router when they come back.
      const CallTicket ticket = static_cast<GrainGate&>(*cluster[0].gate().remote_slot()->link).TicketFor(key);
      third = add(100);
    }
    EXPECT_EQ(cluster[0].calls_past_router(), crossed + 2);
    EXPECT_EQ(cluster.Await(std::move(first)).value().value, 1);
    EXPECT_EQ(cluster.Await(std::move(second)).value().value, 11);
    EXPECT_EQ(cluster.Await(std::move(third)).value().value, 111);
  });
}

// CLU-12: what others send to a node that leaves finds its way, also if it is gone the moment that it has left.
TEST_F(ClusterOverSim, LosesNoCallWhenANodeLeavesAndEnds) {
  Simulate({.seeds = 4}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(3);
    constexpr int kGrains = 12;
    for (int g = 0; g < kGrains; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
    std::vector<Future<Count>> answers;
    Future<void> left = cluster[2].Leave();
    Future<void> ended;
    for (int i = 0; !ended.valid() || !ended.IsReady(); ++i) {
      ASSERT_LT(i, 100'000);
      answers.push_back(cluster[static_cast<size_t>(i % 2)]
                            .Grain<Counter>(absl::StrCat("g", i % kGrains))
                            .Ask(cluster.system(static_cast<size_t>(i % 2)), Add{1}, absl::Seconds(20)));
      sim.Advance(absl::Microseconds(100));
      if (ended.valid() || !left.IsReady()) continue;
      ended = cluster.system(2).WhenTerminated();
      cluster.system(2).Terminate();
    }
    cluster.Crash(2);
    for (Future<Count>& answer : answers) {
      const absl::StatusOr<Count> count = cluster.Await(std::move(answer));
      ASSERT_TRUE(count.ok()) << count.status();
    }
  });
}

// It does not wait for one that it cannot reach for longer than it is to.
TEST_F(ClusterOverSim, LeavesAlsoIfNotAllHearIt) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.cluster.session.farewell_timeout = absl::Seconds(3);
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(3);
    for (size_t i = 0; i < cluster.size(); ++i) ASSERT_TRUE(cluster.Await(cluster[i].Joined()).ok());
    sim.Advance(absl::Seconds(1));
    cluster.Cut(1, 2);
    const Instant begun = sim.toolbox().Now();
    ASSERT_TRUE(cluster.Await(cluster[2].Leave()).ok());
    const absl::Duration took = sim.toolbox().Now() - begun;
    EXPECT_GE(took, absl::Seconds(3));
    EXPECT_LT(took, absl::Seconds(4));
  });
}

// Who asks for a grain that cannot be started hears why, at once, from wherever he asks, as do all who wait for it; it
// is not tried again for them.
TEST_F(ClusterOverSim, SaysAtOnceWhyAGrainCannotStart) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, PorterCluster());
    cluster.AddNodes(2);
    for (int g = 0; g < 4; ++g) {
      for (size_t from = 0; from < 2; ++from) {
        for (const auto& [name, cause] : std::vector<std::pair<std::string, std::string>>{
                 {"unborn", "the constructor of "}, {"unwilling", "no keys"}}) {
          Porter::made = 0;
          std::vector<Future<Count>> answers;
          const std::string identity = absl::StrCat(name, g);
          for (int i = 0; i < 3; ++i) {
            answers.push_back(
                cluster[from].Grain<Porter>(identity).Ask(cluster.system(from), Pack{}, absl::Seconds(10)));
          }
          sim.Advance(absl::Seconds(1));
          for (Future<Count>& answer : answers) {
            ASSERT_TRUE(answer.IsReady()) << identity << " from node " << from;
            const absl::Status why = answer.Take().status();
            EXPECT_FALSE(ErrorKindOf<LookupError>(why).has_value()) << why;
            EXPECT_EQ(why.code(), name == "unborn" ? absl::StatusCode::kInternal : absl::StatusCode::kUnavailable);
            EXPECT_THAT(std::string(why.message()), testing::HasSubstr(cause));
            EXPECT_THAT(std::string(why.message()),
                        testing::HasSubstr(absl::StrCat("grain \"porter/", identity, "\", on the node at \"")));
          }
          EXPECT_EQ(Porter::made, 1);
        }
      }
    }
  });
}

// Cannot be made.
class Missing : public Actor<Missing, Add> {
 public:
  static constexpr std::string_view kGrainKind = "missing";
  Count On(Context&, const Add&) { return {}; }
};

// A key of the kind whose grain belongs to the second node.
GrainKey KeyOfTheOther(SimTestCluster& cluster, std::string_view kind) {
  for (int g = 0;; ++g) {
    GrainKey key(kind, absl::StrCat("k", g));
    const ClusterTopologyPtr topology = cluster[0].topology();
    if (RendezvousHasher::OwnerOf(*topology, key)->authority == cluster[1].authority()) return key;
  }
}

// Who has asked for a grain of another node hears from which one an error has come, or where the grain was looked for.
TEST_F(ClusterOverSim, ErrorsNameTheNodeOfTheGrain) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    const FilteredCounters filters;
    TestClusterOptions options = filters.Options();
    options.kinds.push_back({.name = "missing", .make = [](const GrainContext&) { return PropsPtr(); }});
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    const auto other = testing::HasSubstr("n1.test:2552");
    const auto text_of = [&]<class T>(Future<T> answer) {
      return std::string(cluster.Await(std::move(answer)).status().message());
    };
    const absl::Status filtered = AddTo(cluster, 0, there, -10).status();
    EXPECT_TRUE(absl::IsPermissionDenied(filtered)) << filtered;
    EXPECT_EQ(filtered.message(), "the node at \"n1.test:2552\": not so much");
    const GrainRef<Counter> counter = cluster[0].Grain<Counter>(there);
    EXPECT_THAT(text_of(counter.Ask(cluster.system(0), Fragile{}, absl::Seconds(5))), other) << "it cannot be read";
    const GrainRef<Missing> missing = cluster[0].Grain<Missing>(KeyOfTheOther(cluster, Missing::kGrainKind).identity());
    EXPECT_THAT(text_of(missing.Ask(cluster.system(0), Add{1}, absl::Seconds(5))), other) << "it cannot be made";
    EXPECT_THAT(static_cast<GrainGate&>(*cluster[0].gate().remote_slot()->link)
                    .WhatIsKnownOf(KeyOfTheOther(cluster, "missing")),
                other)
        << "it is nowhere, and nobody has answered";
    // A node that is about to lose its membership sends calls back.
    cluster.CutFromStore(1);
    std::string text;
    for (int i = 0; i < 100 && text.empty(); ++i) {
      text = text_of(counter.Ask(cluster.system(0), Add{1}, absl::Milliseconds(200)));
      sim.Advance(absl::Milliseconds(100));
    }
    EXPECT_THAT(text, testing::HasSubstr("not found in time"));
    EXPECT_THAT(text, other);
  });
}

// A call that is too large for a frame says how large it may be, and what to do.
TEST_F(ClusterOverSim, SaysThatACallIsTooLarge) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, PorterCluster());
    cluster.AddNodes(2);
    int refused = 0;
    for (int g = 0; g < 8; ++g) {
      const absl::StatusOr<Count> count =
          cluster.Await(cluster[0]
                            .Grain<Porter>(absl::StrCat("p", g))
                            .Ask(cluster.system(0), Pack{.bytes = std::string(400'000, 'x')}, absl::Seconds(20)));
      if (count.ok()) continue;  // it runs on this node
      ++refused;
      EXPECT_TRUE(absl::IsResourceExhausted(count.status())) << count.status();
      for (const std::string_view part : {"grain \"porter/p", "Pack", "bytes", "send it in parts",
                                          "large_destinations (\"/system/grains\")", "max_frame_bytes"}) {
        EXPECT_THAT(std::string(count.status().message()), testing::HasSubstr(std::string(part)));
      }
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 8);
  });
}

// What a grain has not handled when it ends by itself the next one handles: here and from another node.
TEST_F(ClusterOverSim, TheNextActivationHandlesWhatAnEndingOneHasNot) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, PorterCluster());
    cluster.AddNodes(2);
    for (int g = 0; g < 4; ++g) {
      const GrainRef<Porter> porter = cluster[g % 2].Grain<Porter>(absl::StrCat("p", g));
      ActorSystem& system = cluster.system(g % 2);
      ASSERT_EQ(cluster.Await(porter.Ask(system, Pack{"12345"}, absl::Seconds(5))).value().value, 5);
      Future<Count> last = porter.Ask(system, Resign{}, absl::Seconds(5));
      std::vector<Future<Count>> answers;
      for (int i = 0; i < 3; ++i) answers.push_back(porter.Ask(system, Pack{"1"}, absl::Seconds(5)));
      const Count resigned = cluster.Await(std::move(last)).value();
      EXPECT_EQ(resigned.value, 5);
      for (int i = 0; i < 3; ++i) {
        const absl::StatusOr<Count> count = cluster.Await(std::move(answers[i]));
        ASSERT_TRUE(count.ok()) << count.status();
        EXPECT_EQ(count->value, i + 1) << "in order, and once";
        EXPECT_GT(count->token, resigned.token);
      }
    }
  });
}

// A call that comes from another node goes to the grain at once if that runs here, but not while one is at the router, and
// not past the filters.
TEST_F(ClusterOverSim, ACallOfAnotherNodeGoesToItsGrainAtOnce) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    const uint64_t before = cluster[1].calls_past_router_in();
    EXPECT_EQ(AddTo(cluster, 0, there, 1).value().value, 2);
    EXPECT_EQ(cluster[1].calls_past_router_in(), before + 1);
    {
      auto& gate = static_cast<GrainGate&>(*cluster[1].gate().remote_slot()->link);
      const CallTicket ticket = gate.TicketFor(GrainKey(Counter::kGrainKind, there));
      EXPECT_EQ(AddTo(cluster, 0, there, 1).value().value, 3);
      EXPECT_EQ(cluster[1].calls_past_router_in(), before + 1);
    }
    EXPECT_EQ(AddTo(cluster, 0, there, 1).value().value, 4);
    EXPECT_EQ(cluster[1].calls_past_router_in(), before + 2);
  });
  // One that comes by the router is known to be there, as long as it is.
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    const GrainKey key(Counter::kGrainKind, there);
    auto& gate = static_cast<GrainGate&>(*cluster[1].gate().remote_slot()->link);
    cluster[1].driver().Passivate(key);
    sim.Advance(absl::Seconds(1));
    cluster.CutFromStore(1);
    Future<Count> asking = cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20));
    sim.Advance(absl::Milliseconds(100));
    EXPECT_TRUE(gate.IsAtRouter(key));
    cluster.Heal();
    EXPECT_TRUE(cluster.Await(std::move(asking)).ok());
    EXPECT_FALSE(gate.IsAtRouter(key));
  });
  Simulate({.seeds = 1}, [](Simulation& sim) {
    const FilteredCounters filters;
    SimTestCluster cluster(sim, filters.Options());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    EXPECT_TRUE(AddTo(cluster, 0, there, 1).ok());
    EXPECT_EQ(cluster[1].calls_past_router_in(), 0u);
  });
}

// R40: what a node does not take from others it does not trust it does not take within a call either: a PoisonPill for
// a grain would pass remoting as a GrainCall.
TEST_F(ClusterOverSim, DropsWhatIsHarmfulWithinACallOfPeersThatItDoesNotTrust) {
  for (const bool is_untrusted : {true, false}) {
    Simulate({.seeds = 1}, [is_untrusted](Simulation& sim) {
      TestClusterOptions options = CounterCluster();
      options.remote.untrusted = is_untrusted;
      SimTestCluster cluster(sim, options);
      cluster.AddNodes(2);
      const std::string there = GrainOfTheOther(cluster);
      const GrainKey key(Counter::kGrainKind, there);
      const uint64_t token = AddTo(cluster, 0, there, 1).value().token;
      const auto call = [&key](EnvelopePtr message) {
        return GrainCall{.key = key, .message = std::move(message), .timeout = absl::Seconds(5)};
      };
      const DeadLetterList letters(cluster.system(1));
      const absl::Status killed = cluster
                                      .Await(cluster.system(0).Ask<Count>(
                                          cluster[0].gate(), call(MakeEnvelope<Kill>(ActorRef())), absl::Seconds(5)))
                                      .status();
      Tell(cluster[0].gate(), call(MakeEnvelope<PoisonPill>(ActorRef())));
      sim.Advance(absl::Seconds(2));
      const Count after = AddTo(cluster, 0, there, 1).value();
      if (is_untrusted) {
        EXPECT_TRUE(absl::IsPermissionDenied(killed)) << killed;
        EXPECT_EQ(after.token, token);
        EXPECT_EQ(after.value, 3);
        EXPECT_THAT(letters.texts(),
                    testing::ElementsAre(absl::StrCat("not_readable: fraktor.kill to grain ", key.ToString()),
                                         absl::StrCat("not_readable: fraktor.poison_pill to grain ", key.ToString())));
      } else {
        EXPECT_FALSE(killed.ok());
        EXPECT_GT(after.token, token);
      }
    });
  }
}

// Calls stay in order, and none is lost, while their grain ends and is activated anew on the node that they come to: some
// of them go through its router, some do not.
TEST_F(ClusterOverSim, CallsOfAnotherNodeStayInOrderWhileTheirGrainComesBack) {
  Simulate({.seeds = 8}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    const GrainKey key(Counter::kGrainKind, there);
    Random random = sim.MakeRandom("calls");
    std::vector<Future<Count>> answers;
    for (int round = 0; round < 10; ++round) {
      cluster[1].driver().Passivate(key);
      for (int i = 0; i < 12; ++i) {
        answers.push_back(cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20)));
        sim.Advance(absl::Microseconds(random.UniformIn(0, 400)));
      }
    }
    sim.Advance(absl::Seconds(30));
    Count last;
    int activations = 0;
    for (Future<Count>& answer : answers) {
      ASSERT_TRUE(answer.IsReady());
      const absl::StatusOr<Count> count = answer.Take();
      ASSERT_TRUE(count.ok()) << count.status();
      if (count->token != last.token) {
        ++activations;
        if (last.token != 0) {
          EXPECT_EQ(count->value, 1);
        }
      } else {
        EXPECT_EQ(count->value, last.value + 1);
      }
      EXPECT_GE(count->token, last.token);
      last = *count;
    }
    EXPECT_GT(activations, 1);
    EXPECT_GT(cluster[1].calls_past_router_in(), 0u);
  });
}

// What the codec of a message throws is an error of the call, on either side, and a dead letter there.
TEST_F(ClusterOverSim, ACodecThatThrowsConcernsItsCallerOnly) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    EXPECT_EQ(AddTo(cluster, 0, there, 1).value().value, 2);
    const DeadLetterList here(cluster.system(0));
    const DeadLetterList at_the_other(cluster.system(1));
    const auto ask = [&](bool breaks_here) {
      return cluster
          .Await(cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Fragile{breaks_here}, absl::Seconds(20)))
          .status();
    };
    const absl::Status packed = ask(true);
    EXPECT_THAT(std::string(packed.message()), testing::HasSubstr("it broke while it was packed"));
    EXPECT_THAT(here.texts(), testing::ElementsAre(testing::AllOf(testing::StartsWith("not_serializable: "),
                                                                  testing::HasSubstr("Fragile to grain"))));
    const absl::Status sent = ask(false);
    EXPECT_THAT(std::string(sent.message()), testing::HasSubstr("it broke on the way"));
    EXPECT_THAT(at_the_other.texts(),
                testing::ElementsAre(absl::StrCat("not_readable: test.fragile to grain counter/", there)));
    EXPECT_EQ(here.texts().size(), 1u);
    EXPECT_EQ(AddTo(cluster, 0, there, 1).value().value, 3);
  });
}

// Throws as often as it is told to.
class AngryRemotePeers final : public GrainPeers {
 public:
  void Announce(std::string_view, ActorRef) override {}
  absl::StatusOr<ActorRef> RouterAt(std::string_view authority) override {
    if (anger > 0) {
      --anger;
      throw std::runtime_error("peers are angry");
    }
    return system->Resolve(absl::StrCat("pekko://cluster@", std::string(authority), "/system/grains"));
  }
  ActorSystem* system = nullptr;
  int anger = 0;
};

// What others' code throws is nothing that a caller gets to feel: the call goes to the router, which says what it was.
TEST_F(ClusterOverSim, OthersCodeThrowsAtTheGate) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    const auto peers = std::make_shared<AngryRemotePeers>();
    TestClusterOptions options = CounterCluster();
    options.cluster.peers = peers;
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(1);
    for (int g = 0; g < kManyGrains; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
    cluster.AddNodes(1);
    sim.Advance(absl::Seconds(1));
    // Of the one that asks.
    peers->system = &cluster.system(1);
    // One that the other would run if it did not run already. So it has nobody to ask where it is: the record says it.
    std::string there;
    for (int g = 0; g < kManyGrains && there.empty(); ++g) {
      const std::string identity = absl::StrCat("g", g);
      ASSERT_TRUE(AddTo(cluster, 1, identity, 1).ok());
      const PlacementResolutionPtr known = cluster[1].driver().Cached(GrainKey(Counter::kGrainKind, identity));
      if (known != nullptr && known->actor.IsNoOne()) there = identity;
    }
    ASSERT_FALSE(there.empty());
    const uint64_t before = cluster[1].calls_past_router();
    EXPECT_EQ(AddTo(cluster, 1, there, 1).value().value, 3);
    EXPECT_EQ(cluster[1].calls_past_router(), before + 1) << "the gate asks the peers";
    const GrainRef<Counter> grain = cluster[1].Grain<Counter>(there);
    peers->anger = 1;
    EXPECT_NO_THROW(grain.Tell(Add{1}));
    EXPECT_EQ(peers->anger, 0);
    EXPECT_EQ(AddTo(cluster, 1, there, 1).value().value, 5) << "the router has sent it";
    peers->anger = 2;
    const absl::Status why = AddTo(cluster, 1, there, 1).status();
    EXPECT_THAT(std::string(why.message()), testing::HasSubstr("peers are angry"));
    EXPECT_EQ(AddTo(cluster, 1, there, 1).value().value, 6);
  });
}

// CLU-12: calls that wait for the link to a node that has died have not left theirs. When another life of it answers they are
// sent again, and each is handled once. None of them is a dead letter.
TEST_F(ClusterOverSim, SendsAgainWhatWasForAFormerLifeOfANode) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    constexpr int kGrains = 12;
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    std::vector<Count> before;
    for (int g = 0; g < kGrains; ++g) before.push_back(AddTo(cluster, 0, absl::StrCat("g", g), 1).value());
    const size_t there = cluster[1].driver().Snapshot().activations;
    ASSERT_GT(there, 0u);
    cluster.Crash(1);
    // The link is known to be down.
    sim.Advance(absl::Seconds(1));
    const DeadLetterList letters(cluster.system(0));
    std::vector<Future<Count>> asked;
    for (int g = 0; g < kGrains; ++g) {
      asked.push_back(
          cluster[0].Grain<Counter>(absl::StrCat("g", g)).Ask(cluster.system(0), Add{1}, absl::Seconds(20)));
    }
    sim.Advance(absl::Milliseconds(500));
    cluster.Restart(1);
    size_t anew = 0;
    for (int g = 0; g < kGrains; ++g) {
      const absl::StatusOr<Count> count = cluster.Await(std::move(asked[g]));
      ASSERT_TRUE(count.ok()) << "g" << g << ": " << count.status();
      const bool is_same = count->token == before[g].token;
      if (!is_same) ++anew;
      EXPECT_EQ(count->value, is_same ? 2 : 1) << "g" << g << ": once";
    }
    EXPECT_EQ(anew, there);
    EXPECT_THAT(letters.texts(), testing::IsEmpty());
  });
}

// The same for a node in quarantine: what it is to get waits for another life of it, with growing pauses.
TEST_F(ClusterOverSim, SendsAgainWhatWasForANodeInQuarantine) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    const PathAuthority address = PathAuthority::Create("pekko", "n1.test", 2552).value();
    const uint64_t life = Remoting::Of(cluster.system(1))->system_uid();
    ASSERT_TRUE(Remoting::Of(cluster.system(0))->Quarantine(address, life, {}).ok());
    const DeadLetterList letters(cluster.system(0));
    const absl::StatusOr<Count> none = AddTo(cluster, 0, there, 1, absl::Seconds(1));
    EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
    EXPECT_NE(std::string(none.status().message()).find("quarantine"), std::string::npos) << none.status();
    Future<Count> asking = cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(20));
    sim.Advance(absl::Seconds(1));
    cluster.Crash(1);
    cluster.Restart(1);
    const absl::StatusOr<Count> count = cluster.Await(std::move(asking));
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, 1);
    // Of the one that was given up, once; not of all that was tried for it.
    EXPECT_THAT(letters.texts(), testing::ElementsAre(testing::EndsWith(absl::StrCat("Add to grain counter/", there))));
  });
}

// Watches an actor of another node.
class RemoteWatcher : public Actor<RemoteWatcher, Terminated> {
 public:
  RemoteWatcher(ActorRef other, int* ends) : other_(other), ends_(ends) {}
  absl::Status PreStart(Context& context) { return context.Watch(other_); }
  void On(Context&, const Terminated&) { ++*ends_; }

 private:
  const ActorRef other_;
  int* const ends_;
};

// Members that remoting takes for dead are members all the same: their quarantines end, on both sides.
TEST_F(ClusterOverSim, MembersComeTogetherAgainAfterAQuarantine) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    // Both stay members all the time.
    options.store.term = absl::Seconds(60);
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    std::string here;
    for (int g = 0; here.empty(); ++g) {
      const std::string identity = absl::StrCat("g", g);
      ASSERT_TRUE(AddTo(cluster, 1, identity, 1).ok());
      if (cluster[0].driver().Local(GrainKey(Counter::kGrainKind, identity)) != nullptr) here = identity;
    }
    std::array<int, 2> ends{};
    for (const size_t node : {size_t{0}, size_t{1}}) {
      const ActorRef other = cluster.system(node)
                                 .Resolve(absl::StrCat("pekko://", std::string(cluster.system(1 - node).name()), "@n",
                                                       1 - node, ".test:2552/system/grains"))
                                 .value();
      cluster.system(node).Spawn<RemoteWatcher>(absl::StrCat("watcher", node), other, &ends[node]);
    }
    sim.Advance(absl::Seconds(2));
    cluster.Cut(0, 1);
    sim.Advance(absl::Seconds(20));
    EXPECT_EQ(ends[0] + ends[1], 2) << "each has taken the other for dead";
    cluster.Heal();
    for (int i = 0; i < 2; ++i) {
      const absl::StatusOr<Count> to_there = AddTo(cluster, 0, there, 1, absl::Seconds(30));
      EXPECT_TRUE(to_there.ok()) << to_there.status();
      const absl::StatusOr<Count> to_here = AddTo(cluster, 1, here, 1, absl::Seconds(30));
      EXPECT_TRUE(to_here.ok()) << to_here.status();
    }
    for (const size_t node : {size_t{0}, size_t{1}}) {
      for (const PeerInfo& peer : Remoting::Of(cluster.system(node))->Peers()) {
        EXPECT_FALSE(peer.is_quarantined) << node << ": " << peer.parts.ToString();
      }
    }
  });
}

// CLU-11: a node that cannot renew its membership sends calls back. They wait with growing pauses until the grain may be
// elsewhere, however often they come back, for as long as their timeout allows.
TEST_F(ClusterOverSim, ACallIsNotRefusedWhileANodeLosesItsMembership) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(2);
    for (int g = 0; g < 40; ++g) ASSERT_TRUE(AddTo(cluster, 0, absl::StrCat("g", g), 1).ok());
    cluster.AddNode();
    sim.Advance(absl::Seconds(3));
    // One that runs on a node which does not own it any more; its owner knows where it is.
    std::string there;
    for (int g = 0; g < 40; ++g) {
      const GrainKey key(Counter::kGrainKind, absl::StrCat("g", g));
      if (cluster[1].driver().Local(key) != nullptr &&
          RendezvousHasher::OwnerOf(*cluster[0].topology(), key)->authority == cluster[2].authority()) {
        there = key.identity();
      }
    }
    ASSERT_FALSE(there.empty());
    ASSERT_TRUE(AddTo(cluster, 2, there, 1).ok());
    cluster.CutFromStore(1);
    std::vector<Future<Count>> asking;
    for (int i = 0; i < 150; ++i) {
      const size_t from = i % 2 == 0 ? 0 : 2;
      asking.push_back(cluster[from].Grain<Counter>(there).Ask(cluster.system(from), Add{1}, absl::Seconds(40)));
      sim.Advance(absl::Milliseconds(100));
    }
    for (size_t i = 0; i < asking.size(); ++i) {
      const absl::StatusOr<Count> count = cluster.Await(std::move(asking[i]));
      EXPECT_TRUE(count.ok()) << i << ": " << count.status();
    }
  });
}

// A question that waits on another node than the one where it was asked does so for as long as who has asked.
TEST_F(ClusterOverSim, AQuestionWaitsElsewhereForItsOwnTimeout) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.store.term = absl::Seconds(60);
    options.cluster.max_wait = absl::Seconds(1);
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    const std::string there = GrainOfTheOther(cluster);
    cluster[1].driver().Passivate(GrainKey(Counter::kGrainKind, there));
    sim.Advance(absl::Seconds(1));
    cluster.CrashStore();
    Future<Count> patient = cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{1}, absl::Seconds(30));
    Future<Count> hasty = cluster[0].Grain<Counter>(there).Ask(cluster.system(0), Add{100}, absl::Seconds(2));
    sim.Advance(absl::Seconds(8));
    EXPECT_FALSE(patient.IsReady());
    EXPECT_TRUE(hasty.IsReady());
    cluster.RestartStore();
    const absl::StatusOr<Count> count = cluster.Await(std::move(patient));
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->value, 1) << "nobody waits for the other any more";
  });
}

// A grain that is found gone is found again, and what is remembered is corrected.
TEST_F(ClusterOverSim, FindsAGrainAgainThatWasPassivated) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    options.cluster.placement.placement.idle_ttl = absl::Seconds(20);
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(2);
    for (int g = 0; g < 6; ++g) ASSERT_EQ(AddTo(cluster, 0, absl::StrCat("g", g), 1).value().value, 1);
    sim.Advance(absl::Seconds(15));
    EXPECT_EQ(AddTo(cluster, 0, "g0", 1).value().value, 2) << "a use counts, also from another node";
    sim.Advance(absl::Seconds(15));
    EXPECT_EQ(AddTo(cluster, 0, "g0", 1).value().value, 3);
    for (int g = 1; g < 6; ++g) EXPECT_EQ(AddTo(cluster, 0, absl::StrCat("g", g), 1).value().value, 1);
    for (int g = 1; g < 6; ++g) {
      const GrainKey key("counter", absl::StrCat("g", g));
      const Count again = AddTo(cluster, 0, key.identity(), 1).value();
      EXPECT_EQ(again.value, 2);
      const PlacementResolutionPtr known = cluster[0].driver().Cached(key);
      ASSERT_NE(known, nullptr);
      EXPECT_EQ(known->token, again.token) << key.ToString() << ": of the former activation";
    }
  });
}

}  // namespace
}  // namespace fraktor
