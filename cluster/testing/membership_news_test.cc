// What a node says of its membership: to callers while it is none, to the log when it has lost it, and to listeners.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/pubsub/pubsub.h"
#include "fraktor/cluster/singleton/singleton.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

struct Headline {
  std::string text = {};
};
template <>
struct Codec<Headline> : FieldCodec<Headline, &Headline::text> {
  static constexpr std::string_view kManifest = "test.headline";
};

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HeadlineReader : public Actor<HeadlineReader, Headline> {
 public:
  void On(Context&, const Headline&) {}
};

class Clerk : public Actor<Clerk, Add> {
 public:
  static constexpr std::string_view kGrainKind = "clerk";
  explicit Clerk(const GrainContext&) {}
  Count On(Context&, const Add& add) { return {.value = add.n}; }
};

TestClusterOptions Everything() {
  TestClusterOptions options = CounterCluster();
  options.kinds.push_back(TopicKind());
  options.kinds.push_back(SingletonKindOf<Clerk>());
  options.codecs.Add<Headline>().Add(PubSubCodecs());
  return options;
}

// README: errors say what is missing. A node that was never a member says so, with the reason of its last attempt to
// join.
TEST(MembershipNews, CallersHearWhyTheirNodeIsNoMemberYet) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, Everything());
    cluster.CrashStore();
    cluster.AddNode();
    PubSub& pubsub = *PubSub::Start(cluster.system(0)).value();
    const RefOf<Clerk> clerk = StartSingleton<Clerk>(cluster.system(0)).value();
    const RefOf<HeadlineReader> reader = cluster.system(0).Spawn<HeadlineReader>("reader");
    const auto tells_why =
        AllOf(HasSubstr("this node, \"n0.test:2552\", is no member of the cluster yet, after "),
              HasSubstr(" attempts to join: "), HasSubstr("the cluster's store, at \"store.test:2552\""));

    const absl::Status called = AddTo(cluster, 0, "alice", 1, absl::Seconds(5)).status();
    EXPECT_TRUE(absl::IsUnavailable(called)) << called;
    EXPECT_EQ(ErrorKindOf<LookupError>(called), LookupError::kNotStarted);
    EXPECT_THAT(called.message(), tells_why);

    const absl::Status subscribed =
        cluster.Await(pubsub.Topic<Headline>("news").Subscribe(cluster.system(0), reader, absl::Seconds(5))).status();
    EXPECT_TRUE(absl::IsUnavailable(subscribed)) << subscribed;
    EXPECT_THAT(subscribed.message(), AllOf(HasSubstr("topic \"news\" is not joined yet: "), tells_why));

    const absl::Status asked = cluster.Await(cluster.system(0).Ask(clerk, Add{1}, absl::Seconds(5))).status();
    EXPECT_TRUE(absl::IsUnavailable(asked)) << asked;
    EXPECT_THAT(asked.message(), AllOf(HasSubstr("singleton \"clerk\" is not there: "), tells_why));

    EXPECT_THAT(cluster[0].WhyNoMember().message(), tells_why);
    cluster.RestartStore();
    EXPECT_TRUE(cluster.Await(cluster[0].Joined()).ok());
    EXPECT_TRUE(cluster[0].WhyNoMember().ok()) << cluster[0].WhyNoMember();
    EXPECT_TRUE(AddTo(cluster, 0, "alice", 1).ok());
    EXPECT_TRUE(cluster.Await(cluster.system(0).Ask(clerk, Add{1}, absl::Seconds(5))).ok());
  });
}

// A node that was a member, and whose term is over, says that.
TEST(MembershipNews, CallersHearWhyTheirNodeIsNoMemberAnyMore) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(1);
    ASSERT_TRUE(AddTo(cluster, 0, "alice", 1).ok());
    cluster.CrashStore();
    sim.Advance(absl::Seconds(15));
    const absl::Status called = AddTo(cluster, 0, "bob", 1, absl::Seconds(5)).status();
    EXPECT_THAT(called.message(), AllOf(HasSubstr("this node, \"n0.test:2552\", is no member of the cluster any more"),
                                        HasSubstr("the cluster's store, at \"store.test:2552\"")));
  });
}

// A topic and a singleton that nobody hosts are known to be missing, too.
TEST(MembershipNews, CallersHearThatNobodyHostsWhatTheyWaitFor) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    TestClusterOptions options = Everything();
    options.kinds = {};
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(1);
    PubSub& pubsub = *PubSub::Start(cluster.system(0)).value();
    const RefOf<Clerk> clerk = StartSingleton<Clerk>(cluster.system(0)).value();
    const RefOf<HeadlineReader> reader = cluster.system(0).Spawn<HeadlineReader>("reader");
    EXPECT_THAT(cluster.Await(pubsub.Topic<Headline>("news").Subscribe(cluster.system(0), reader, absl::Seconds(5)))
                    .status()
                    .message(),
                HasSubstr("add TopicKind() to ClusterOptions::kinds"));
    EXPECT_THAT(cluster.Await(cluster.system(0).Ask(clerk, Add{1}, absl::Seconds(5))).status().message(),
                HasSubstr("add SingletonKindOf<A>() to ClusterOptions::kinds"));
  });
}

// Two processes with one authority take the place of each other again and again: the one that is out says so, not each
// time.
TEST(MembershipNews, TheLogSaysThatAnotherNodeHasTheSameAuthority) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    const auto membership =
        std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = absl::Seconds(6)});
    const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
    Cluster& cluster = *Cluster::Start(sim.system(), {.authority = "a:1",
                                                      .membership = membership,
                                                      .lock = store,
                                                      .storage = store,
                                                      .peers = std::make_shared<LocalGrainPeers>()})
                            .value();
    sim.Advance(absl::Seconds(1));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(cluster.WhyNoMember().ok()) << cluster.WhyNoMember();
      ASSERT_TRUE(membership->Join({.authority = "a:1"}, sim.toolbox().Now()).Take().ok());
      sim.Advance(absl::Seconds(3));
    }
    EXPECT_EQ(sim.log()
                  .Find(0, {.level = LogLevel::kWarning,
                            .contains =
                                "\"a:1\" is no member of the cluster any more: another node has joined as \"a:1\" and "
                                "has taken the place of member \"a:1#1\": two processes must not have the same "
                                "authority"})
                  .size(),
              1u);
    EXPECT_EQ(sim.log().Find(0, {.contains = "is no member of the cluster any more"}).size(), 1u) << "rate limited";
  });
}

// Others would look for the node where it is not.
TEST(MembershipNews, RefusesAnAuthorityThatIsNotThatOfRemoting) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    TestClusterOptions options = CounterCluster();
    absl::Status refused;
    options.on_system = [&](ActorSystem& system) {
      const auto membership = std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions());
      const auto store = std::make_shared<MemoryPlacementStore>(sim.toolbox());
      refused =
          Cluster::Start(
              system, {.authority = "elsewhere.test:2552", .membership = membership, .lock = store, .storage = store})
              .status();
    };
    SimTestCluster cluster(sim, options);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("\"elsewhere.test:2552\""), HasSubstr("\"store.test:2552\"")));
  });
}

std::vector<std::string> AuthoritiesOf(const std::vector<Member>& members) {
  std::vector<std::string> authorities;
  for (const Member& member : members) authorities.push_back(member.authority);
  return authorities;
}

// CLU-8, CLU-9: who listens to the event stream hears of each change of the members, in order.
TEST(MembershipNews, ListenersHearOfMembers) {
  Simulate({.seeds = 3}, [](Simulation& sim) {
    SimTestCluster cluster(sim, CounterCluster());
    cluster.AddNodes(1);
    ASSERT_TRUE(cluster.Await(cluster[0].Joined()).ok());
    sim.Advance(absl::Seconds(1));
    EXPECT_THAT(AuthoritiesOf(cluster[0].topology()->members()), ElementsAre("n0.test:2552"));

    std::vector<TopologyChanged> changes;
    const EventSubscription listening = cluster.system(0).events().Listen<TopologyChanged>(
        [&](const TopologyChanged& change) { changes.push_back(change); });
    cluster.AddNodes(1);
    sim.Advance(absl::Seconds(2));
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_THAT(AuthoritiesOf(changes[0].joined), ElementsAre("n1.test:2552"));
    EXPECT_THAT(AuthoritiesOf(changes[0].left), IsEmpty());
    EXPECT_THAT(AuthoritiesOf(changes[0].topology->members()), ElementsAre("n0.test:2552", "n1.test:2552"));
    EXPECT_EQ(changes[0].topology, cluster[0].topology());

    // Another life of a node is another member.
    cluster.Crash(1);
    cluster.Restart(1);
    sim.Advance(absl::Seconds(2));
    ASSERT_EQ(changes.size(), 2u);
    EXPECT_THAT(AuthoritiesOf(changes[1].joined), ElementsAre("n1.test:2552"));
    EXPECT_THAT(AuthoritiesOf(changes[1].left), ElementsAre("n1.test:2552"));
    EXPECT_GT(changes[1].joined[0].incarnation, changes[1].left[0].incarnation);

    Future<void> left = cluster[1].Leave();
    sim.Advance(absl::Seconds(3));
    ASSERT_EQ(changes.size(), 4u);
    EXPECT_THAT(AuthoritiesOf(changes[2].leaving), ElementsAre("n1.test:2552"));
    EXPECT_THAT(AuthoritiesOf(changes[2].left), IsEmpty());
    EXPECT_THAT(AuthoritiesOf(changes[3].left), ElementsAre("n1.test:2552"));
    EXPECT_THAT(AuthoritiesOf(changes[3].leaving), IsEmpty());
    for (size_t i = 1; i < changes.size(); ++i) {
      EXPECT_GT(changes[i].topology->epoch(), changes[i - 1].topology->epoch());
    }
  });
}

}  // namespace
}  // namespace fraktor
