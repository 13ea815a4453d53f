#include "fraktor/cluster/pubsub/pubsub.h"

#include <algorithm>
#include <cstdint>
#include <map>
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
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/grain/cluster_fixture.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/pubsub/topic_delivery.h"
#include "fraktor/cluster/pubsub/topic_grain.h"
#include "fraktor/cluster/pubsub/topic_messages.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/testing/counted_key.h"

namespace fraktor {

using actor_internal::RestartActor;

namespace {

struct News {
  uint32_t publisher = 0;
  int64_t number = 0;
  std::string text = {};
};
struct Unknown {};
// Cannot be copied.
struct Parcel {
  std::unique_ptr<int64_t> number = {};
};

}  // namespace

inline namespace v0 {
template <>
struct Codec<News> : FieldCodec<News, &News::publisher, &News::number, &News::text> {
  static constexpr std::string_view kManifest = "test.news";
};
template <>
struct Codec<Unknown> : FieldCodec<Unknown> {
  static constexpr std::string_view kManifest = "test.unknown";
};
template <>
struct Codec<Parcel> {
  static constexpr std::string_view kManifest = "test.parcel";
  static void Encode(const Parcel& parcel, Encoder& out) { out.Signed(*parcel.number); }
  static Parcel Decode(Decoder& in) { return {.number = std::make_unique<int64_t>(in.Signed())}; }
};
}  // namespace v0

namespace {

struct Stop {};
// Says so to somebody, as itself.
struct Claim {
  ActorRef to = {};
  TopicJoined joined = {};
};
class Impostor : public Actor<Impostor, Claim> {
 public:
  void On(Context& context, const Claim& claim) { context.Tell(claim.to, claim.joined); }
};

using Heard = std::map<uint32_t, std::vector<int64_t>>;  // numbers by publisher

class Reader : public Actor<Reader, News, Parcel, Stop> {
 public:
  explicit Reader(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
  void On(Context&, const News& news) { (*heard_)[news.publisher].push_back(news.number); }
  void On(Context&, const Parcel& parcel) { (*heard_)[0].push_back(*parcel.number); }
  void On(Context& context, const Stop&) { context.Stop(); }

 private:
  const std::shared_ptr<Heard> heard_;
};

// A cluster whose nodes publish and subscribe.
class Press {
 public:
  Press(Simulation& sim, int count, const TopicOptions& topics = {}, const PubSubOptions& options = {})
      : sim_(sim), nodes(sim, {.cluster = {.kinds = {TopicKind(topics)}}, .codecs = Codecs()}, count) {
    for (size_t i = 0; i < nodes.size(); ++i) PubSub::Start(nodes.system(i), options).value();
    sim.Advance(absl::Seconds(1));
  }

  static std::shared_ptr<const CodecRegistry> Codecs() {
    CodecSetup setup;
    setup.Add<News, Parcel>().Add(PubSubCodecs());
    return setup.Build().value();
  }

  template <class M = News>
  Topic<M> On(size_t node, std::string_view name = "news") {
    return PubSub::Of(nodes.system(node))->Topic<M>(name);
  }

  struct Subscriber {
    RefOf<Reader> ref;
    std::shared_ptr<Heard> heard;
  };
  Subscriber Spawn(size_t node, std::string_view name = {}) {
    auto heard = std::make_shared<Heard>();
    return {.ref = nodes.system(node).Spawn<Reader>(name, heard), .heard = heard};
  }
  absl::Status Subscribe(size_t node, const Subscriber& subscriber, std::string_view name = "news") {
    Future<Subscribed> subscribing = On(node, name).Subscribe(nodes.system(node), subscriber.ref, absl::Seconds(30));
    sim_.RunUntil([&] { return subscribing.IsReady(); }, absl::Minutes(1));
    return subscribing.Take().status();
  }
  Subscriber SubscribeInGroup(size_t node, std::string_view group) {
    Subscriber subscriber = Spawn(node);
    Future<Subscribed> subscribing =
        On(node).SubscribeInGroup(nodes.system(node), group, subscriber.ref, absl::Seconds(30));
    sim_.RunUntil([&] { return subscribing.IsReady(); }, absl::Minutes(1));
    const absl::StatusOr<Subscribed> subscribed = subscribing.Take();
    EXPECT_TRUE(subscribed.ok()) << subscribed.status();
    return subscriber;
  }
  absl::StatusOr<Subscribed> Put(size_t node, const Subscriber& actor) {
    Future<Subscribed> putting =
        PubSub::Of(nodes.system(node))->Put(nodes.system(node), actor.ref.untyped(), absl::Seconds(30));
    sim_.RunUntil([&] { return putting.IsReady(); }, absl::Minutes(1));
    return putting.Take();
  }
  absl::StatusOr<Published> ConfirmToGroups(size_t node, const News& news) {
    Future<Published> publishing = On(node).PublishToGroupsConfirmed(nodes.system(node), news, absl::Seconds(30));
    sim_.RunUntil([&] { return publishing.IsReady(); }, absl::Minutes(1));
    return publishing.Take();
  }
  Subscriber Subscribe(size_t node, std::string_view name = "news") {
    Subscriber subscriber = Spawn(node);
    const absl::Status subscribed = Subscribe(node, subscriber, name);
    EXPECT_TRUE(subscribed.ok()) << subscribed;
    return subscriber;
  }
  absl::StatusOr<Published> Confirm(size_t node, const News& news) {
    Future<Published> publishing = On(node).PublishConfirmed(nodes.system(node), news, absl::Seconds(30));
    sim_.RunUntil([&] { return publishing.IsReady(); }, absl::Minutes(1));
    return publishing.Take();
  }
  size_t HostOf(std::string_view name) {
    const std::vector<size_t> hosts = nodes.HostsOf(GrainKey(TopicGrain::kGrainKind, name));
    EXPECT_EQ(hosts.size(), 1u);
    return hosts.empty() ? 0 : hosts[0];
  }

 private:
  Simulation& sim_;

 public:
  ClusterFixture nodes;
};

// As its supervisor does after a failure.
void Restart(ActorRef actor) {
  TellSystem(actor, MakeEnvelope<RestartActor>(ActorRef(), absl::InternalError("it has failed")));
}

std::vector<int64_t> UpTo(int64_t n) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

// C27, G11: what is published on any node comes to all subscribers on all nodes, in the order of each publisher.
TEST(PubSub, ReachesAllSubscribersInOrder) {
  Simulate({.seeds = 20}, [](Simulation& sim) {
    Press press(sim, 3);
    std::vector<Press::Subscriber> subscribers;
    for (size_t node = 0; node < 3; ++node) {
      for (int i = 0; i < 2; ++i) subscribers.push_back(press.Subscribe(node));
    }
    const Press::Subscriber other = press.Subscribe(1, "weather");
    for (int64_t number = 0; number < 50; ++number) {
      for (uint32_t publisher = 0; publisher < 3; ++publisher) {
        ASSERT_TRUE(press.On(publisher).Publish({.publisher = publisher, .number = number}).ok());
      }
      if (number % 10 == 0) sim.Settle();
    }
    sim.Advance(absl::Seconds(1));
    for (const Press::Subscriber& subscriber : subscribers) {
      ASSERT_EQ(subscriber.heard->size(), 3u);
      for (const auto& [publisher, numbers] : *subscriber.heard) EXPECT_EQ(numbers, UpTo(50));
    }
    EXPECT_TRUE(other.heard->empty());
  });
}

// The cost of a subscription does not depend on the number of subscribers. Counts comparisons and
// not time.
TEST(PubSub, ComparesAConstantNumberOfSubscribersInEachCall) {
  constexpr uint64_t kCount = 20'000;
  RoomsOf<CountedKey> rooms;
  auto& room = rooms[TopicRoom{.kind = TopicRoomKind::kSubscribers}];
  CountedKey::comparisons = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_FALSE(room.Contains({i}));
    ASSERT_TRUE(room.Insert({i}));
  }
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(room.Contains({i}));
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(room.Erase({i}));
  EXPECT_LT(CountedKey::comparisons, 4 * kCount * IndexedSet<CountedKey>::kMaxUnindexed);
}

// Who has been told that he is a subscriber gets what is published from then on, wherever.
TEST(PubSub, AcknowledgesWhatItThenKeeps) {
  Simulate({.seeds = 30}, [](Simulation& sim) {
    Press press(sim, 3);
    for (size_t node = 0; node < 3; ++node) {
      const Press::Subscriber subscriber = press.Subscribe(node);
      ASSERT_TRUE(press.Subscribe(node, subscriber).ok()) << "once more: still one subscriber";
      const size_t from = (node + 1) % 3;
      const absl::StatusOr<Published> published = press.Confirm(from, {.number = 7});
      ASSERT_TRUE(published.ok()) << published.status();
      EXPECT_EQ(published->members, node + 1);
      EXPECT_EQ(published->dropped, 0u);
      sim.Advance(absl::Seconds(1));
      EXPECT_EQ((*subscriber.heard)[0], (std::vector<int64_t>{7}));
    }
  });
}

// G11: those who leave the topic and those who end get nothing more; then it has no nodes, and in the end is none.
TEST(PubSub, ForgetsSubscribersThatGo) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Press press(sim, 2);
    const Press::Subscriber stays = press.Subscribe(0);
    const Press::Subscriber leaves = press.Subscribe(0);
    const Press::Subscriber ends = press.Subscribe(1);
    ASSERT_TRUE(press.Subscribe(1, ends, "weather").ok());
    Future<Unsubscribed> leaving = press.On(0).Unsubscribe(press.nodes.system(0), leaves.ref, absl::Seconds(5));
    ends.ref.Tell(Stop{});
    sim.Advance(absl::Seconds(1));
    ASSERT_TRUE(leaving.IsReady());
    EXPECT_TRUE(leaving.Take().ok());
    EXPECT_EQ(press.Confirm(1, {.number = 1}).value().members, 1u);
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(stays.heard->size(), 1u);
    EXPECT_TRUE(leaves.heard->empty());
    EXPECT_TRUE(ends.heard->empty());
    EXPECT_EQ(press.nodes.store().activations(), 2u);
    stays.ref.Tell(Stop{});
    sim.Advance(absl::Minutes(2));
    EXPECT_EQ(press.nodes.store().activations(), 0u) << "topics that nobody needs end";
  });
}

// C27: without subscribers it is a dead letter.
TEST(PubSub, MakesDeadLettersOfWhatNobodyWants) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    Press press(sim, 1);
    EXPECT_EQ(press.Confirm(0, {}).value().members, 0u);
    sim.Advance(absl::Seconds(10));
    EXPECT_EQ(press.nodes.system(0).dead_letters().count(DeadLetterReason::kNoRecipient), 1u) << "when it has settled";
    EXPECT_EQ(press.Confirm(0, {}).value().members, 0u);
    EXPECT_EQ(press.nodes.system(0).dead_letters().count(DeadLetterReason::kNoRecipient), 2u) << "and then at once";
  });
}

// C27: of what is published to groups one of each group gets it, by chance; the other subscribers none of it, nor do
// groups get what is published to all.
TEST(PubSub, ReachesOneOfEachGroup) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    constexpr int64_t kJobs = 60;
    Press press(sim, 3);
    std::vector<Press::Subscriber> red;
    std::vector<Press::Subscriber> blue;
    for (size_t node = 0; node < 3; ++node) {
      for (int i = 0; i < 2; ++i) red.push_back(press.SubscribeInGroup(node, "red"));
    }
    for (size_t node = 1; node < 3; ++node) blue.push_back(press.SubscribeInGroup(node, "blue"));
    const Press::Subscriber alone = press.Subscribe(0);
    for (int64_t number = 0; number < kJobs; ++number) {
      ASSERT_TRUE(press.On(static_cast<size_t>(number) % 3).PublishToGroups({.publisher = 1, .number = number}).ok());
      if (number % 10 == 0) sim.Settle();
    }
    ASSERT_TRUE(press.On(0).Publish({.publisher = 2, .number = 5}).ok());
    sim.Advance(absl::Seconds(1));
    for (const std::vector<Press::Subscriber>* const group : {&red, &blue}) {
      std::vector<int64_t> all;
      for (const Press::Subscriber& subscriber : *group) {
        EXPECT_FALSE(subscriber.heard->contains(2)) << "that was for those without a group";
        std::vector<int64_t>& numbers = (*subscriber.heard)[1];
        EXPECT_FALSE(numbers.empty()) << "each gets its share";
        EXPECT_LT(numbers.size(), static_cast<size_t>(kJobs));
        all.insert(all.end(), numbers.begin(), numbers.end());
      }
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, UpTo(kJobs)) << "one of them, and one only";
    }
    EXPECT_EQ(*alone.heard, (Heard{{2, {5}}}));

    // A group without members is none.
    for (const Press::Subscriber& subscriber : blue) subscriber.ref.Tell(Stop{});
    Future<Unsubscribed> leaving =
        press.On(0).UnsubscribeFromGroup(press.nodes.system(0), "red", red[0].ref, absl::Seconds(5));
    sim.Advance(absl::Seconds(1));
    EXPECT_TRUE(leaving.IsReady());
    const size_t heard_before = (*red[0].heard)[1].size();
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(press.ConfirmToGroups(0, {.publisher = 1, .number = kJobs}).value().members, 1u) << "to one of red";
    }
    sim.Advance(absl::Seconds(1));
    for (size_t i = 1; i < red.size(); ++i) red[i].ref.Tell(Stop{});
    sim.Advance(absl::Seconds(10));
    EXPECT_EQ((*red[0].heard)[1].size(), heard_before);
    EXPECT_EQ(press.ConfirmToGroups(0, {}).value().members, 0u);
    uint64_t dead_letters = 0;
    for (size_t i = 0; i < 3; ++i) {
      dead_letters += press.nodes.system(i).dead_letters().count(DeadLetterReason::kNoRecipient);
    }
    EXPECT_EQ(dead_letters, 1u);
  });
}

// C27: by path, to one or to all; one that is here is preferred.
TEST(PubSub, SendsByPath) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Press press(sim, 4);
    const auto send = [&](size_t from, int64_t number, bool prefers_local) {
      return PubSub::Of(press.nodes.system(from))
          ->Send("/user/printer", News{.number = number}, {.prefers_local = prefers_local});
    };
    const auto count = [](const std::vector<Press::Subscriber>& all) {
      std::vector<size_t> counts;
      for (const Press::Subscriber& one : all) counts.push_back((*one.heard)[0].size());
      return counts;
    };
    std::vector<Press::Subscriber> printers;
    for (size_t node = 0; node < 3; ++node) {
      printers.push_back(press.Spawn(node, "printer"));
      EXPECT_EQ(press.Put(node, printers[node]).value().topic, "/user/printer");
    }
    // A topic of that name is something else.
    const Press::Subscriber reader = press.Subscribe(0, "/user/printer");

    for (int64_t i = 0; i < 30; ++i) ASSERT_TRUE(send(1, i, /*prefers_local=*/true).ok());
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(count(printers), (std::vector<size_t>{0, 30, 0})) << "it is on this node";
    for (int64_t i = 0; i < 60; ++i) ASSERT_TRUE(send(1, i, /*prefers_local=*/false).ok());
    for (int64_t i = 0; i < 60; ++i) ASSERT_TRUE(send(3, i, /*prefers_local=*/true).ok());
    sim.Advance(absl::Seconds(1));
    size_t sum = 0;
    for (const size_t each : count(printers)) {
      EXPECT_GE(each, 10u) << "by chance";
      sum += each;
    }
    EXPECT_EQ(sum, 150u);

    const std::vector<size_t> before = count(printers);
    PubSub& pubsub = *PubSub::Of(press.nodes.system(1));
    ASSERT_TRUE(pubsub.SendToAll("/user/printer", News{}).ok());
    ASSERT_TRUE(pubsub.SendToAll("/user/printer", News{}, {.all_but_self = true}).ok());
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(count(printers), (std::vector<size_t>{before[0] + 2, before[1] + 1, before[2] + 2}));
    EXPECT_TRUE(reader.heard->empty());

    // Those that have ended or were removed are not there any more.
    printers[1].ref.Tell(Stop{});
    Future<Unsubscribed> removing =
        PubSub::Of(press.nodes.system(0))->Remove(press.nodes.system(0), printers[0].ref.untyped(), absl::Seconds(5));
    sim.Advance(absl::Seconds(1));
    EXPECT_TRUE(removing.IsReady());
    ASSERT_TRUE(send(1, 0, /*prefers_local=*/true).ok());
    ASSERT_TRUE(pubsub.SendToAll("/user/printer", News{}).ok());
    sim.Advance(absl::Seconds(10));
    EXPECT_EQ(count(printers), (std::vector<size_t>{before[0] + 2, before[1] + 1, before[2] + 4}));
    printers[2].ref.Tell(Stop{});
    sim.Advance(absl::Seconds(1));
    ASSERT_TRUE(send(1, 0, /*prefers_local=*/true).ok());
    sim.Advance(absl::Seconds(10));
    uint64_t dead_letters = 0;
    for (size_t i = 0; i < 4; ++i) {
      dead_letters += press.nodes.system(i).dead_letters().count(DeadLetterReason::kNoRecipient);
    }
    EXPECT_EQ(dead_letters, 1u) << "nobody is there";
    EXPECT_TRUE(
        absl::IsInvalidArgument(pubsub.Put(press.nodes.system(1), ActorRef(), absl::Seconds(1)).Take().status()));
  });
}

TEST(PubSub, DeliversWhatCannotBeCopied) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    Press press(sim, 2);
    std::vector<Press::Subscriber> subscribers;
    for (int i = 0; i < 3; ++i) subscribers.push_back(press.Subscribe(0));
    ASSERT_TRUE(press.On<Parcel>(1).Publish({.number = std::make_unique<int64_t>(5)}).ok());
    sim.Advance(absl::Seconds(1));
    for (const Press::Subscriber& subscriber : subscribers) {
      EXPECT_EQ((*subscriber.heard)[0], (std::vector<int64_t>{5}));
    }
  });
}

TEST(PubSub, HasLimitsAndSaysSo) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    Press press(sim, 1, {}, {.max_topics = 2, .max_subscribers = 2, .max_publication_bytes = 100});
    const Press::Subscriber first = press.Subscribe(0);
    press.Subscribe(0);
    EXPECT_TRUE(absl::IsResourceExhausted(press.Subscribe(0, press.Spawn(0))));
    EXPECT_TRUE(press.Subscribe(0, first).ok()) << "who is one already";
    EXPECT_TRUE(press.Subscribe(0, first, "weather").ok());
    EXPECT_TRUE(absl::IsResourceExhausted(press.Subscribe(0, first, "sports")));
    EXPECT_TRUE(absl::IsInvalidArgument(press.On(0).Publish({.text = std::string(101, 'x')})));
    EXPECT_TRUE(absl::IsInvalidArgument(press.Confirm(0, {.text = std::string(101, 'x')}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(press.On(0, "").Publish({})));
    EXPECT_TRUE(absl::IsInvalidArgument(press.Subscribe(0, first, "")));
    EXPECT_EQ(ErrorKindOf<SerializationErrorKind>(press.On<Unknown>(0).Publish({})),
              SerializationErrorKind::kNotRegistered);
    EXPECT_TRUE(absl::IsInvalidArgument(
        PubSub::Start(press.nodes.system(0), {.rejoin_period = absl::ZeroDuration()}).status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(PubSub::Start(press.nodes.system(0)).status()));
  });
  TestKit kit;
  EXPECT_TRUE(absl::IsFailedPrecondition(PubSub::Start(kit.system()).status()));
}

// When the topic's node leaves, subscribers notice nothing.
TEST(PubSub, LosesNothingWhenTheTopicMoves) {
  Simulate({.seeds = 50}, [](Simulation& sim) {
    Press press(sim, 3);
    std::vector<Press::Subscriber> subscribers;
    for (size_t node = 0; node < 3; ++node) subscribers.push_back(press.Subscribe(node));
    const size_t host = press.HostOf("news");
    const size_t from = (host + 1) % 3;
    Future<void> left;
    for (int64_t number = 0; number < 60; ++number) {
      if (number == 20) left = press.nodes[host].Leave();
      ASSERT_TRUE(press.On(from).Publish({.publisher = 9, .number = number}).ok());
      if (number % 4 == 0) sim.Advance(absl::Milliseconds(1));
    }
    sim.Advance(absl::Seconds(10));
    ASSERT_TRUE(left.IsReady());
    EXPECT_NE(press.HostOf("news"), host);
    for (const Press::Subscriber& subscriber : subscribers) {
      std::vector<int64_t>& numbers = (*subscriber.heard)[9];
      EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.begin() + 16)) << "before it began to move";
      std::sort(numbers.begin(), numbers.end());
      EXPECT_EQ(numbers, UpTo(60)) << "each once";
    }
  });
}

// When it dies, the nodes with subscribers have it back as soon as the membership has found out.
TEST(PubSub, GoesOnAfterTheTopicsNodeHasCrashed) {
  Simulate({.seeds = 30}, [](Simulation& sim) {
    Press press(sim, 3);
    std::vector<Press::Subscriber> subscribers;
    for (size_t node = 0; node < 3; ++node) subscribers.push_back(press.Subscribe(node));
    const size_t host = press.HostOf("news");
    const size_t from = (host + 1) % 3;
    ASSERT_TRUE(press.Confirm(from, {.publisher = 9, .number = 0}).ok());
    sim.Advance(absl::Seconds(1));
    press.nodes.Crash(host);
    for (int64_t number = 1; number < 10; ++number) {
      ASSERT_TRUE(press.On(from).Publish({.publisher = 9, .number = number}).ok());
    }
    sim.Advance(ClusterFixture::kTerm + absl::Seconds(3));
    EXPECT_NE(press.HostOf("news"), host) << "nobody has published since: the nodes drive it";
    for (int64_t number = 10; number < 20; ++number) {
      const absl::StatusOr<Published> published = press.Confirm(from, {.publisher = 9, .number = number});
      ASSERT_TRUE(published.ok()) << published.status();
      EXPECT_EQ(published->members, 2u);
    }
    sim.Advance(absl::Seconds(1));
    for (size_t node = 0; node < 3; ++node) {
      if (node == host) continue;
      const std::vector<int64_t>& numbers = (*subscribers[node].heard)[9];
      ASSERT_GE(numbers.size(), 11u);
      EXPECT_EQ(numbers.front(), 0);
      for (size_t i = 1; i < numbers.size(); ++i) EXPECT_LT(numbers[i - 1], numbers[i]) << "in order, and once";
      EXPECT_EQ(std::vector<int64_t>(numbers.end() - 10, numbers.end()),
                (std::vector<int64_t>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
    }
  });
}

// A node that dies is no node of the topic any more.
TEST(PubSub, ForgetsNodesThatCrash) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Press press(sim, 3);
    for (size_t node = 0; node < 3; ++node) press.Subscribe(node);
    const size_t host = press.HostOf("news");
    press.nodes.Crash((host + 1) % 3);
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(press.Confirm(host, {}).value().members, 2u);
  });
}

// A restart keeps the topic's reference, so nobody is told: the nodes join again by themselves, and get what was
// published meanwhile.
TEST(PubSub, GoesOnAfterTheTopicWasRestarted) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Press press(sim, 3);
    std::vector<Press::Subscriber> subscribers;
    for (size_t node = 0; node < 3; ++node) subscribers.push_back(press.Subscribe(node));
    const size_t host = press.HostOf("news");
    Restart(press.nodes[host].driver().Local(GrainKey(TopicGrain::kGrainKind, "news"))->actor);
    sim.Settle();
    ASSERT_EQ(press.Confirm(host, {.number = 0}).value().members, 0u) << "it has forgotten them";
    sim.Advance(PubSubOptions().rejoin_period + PubSubOptions().join_period);
    EXPECT_EQ(press.Confirm(host, {.number = 1}).value().members, 3u);
    sim.Advance(absl::Seconds(1));
    for (const Press::Subscriber& subscriber : subscribers) EXPECT_EQ((*subscriber.heard)[0], UpTo(2));
  });
}

// Nor does a restart of the actor that delivers lose subscribers, or those who wait to become some.
TEST(PubSub, KeepsItsSubscribersWhenItsDeliveryIsRestarted) {
  Simulate({.seeds = 10}, [](Simulation& sim) {
    Press press(sim, 2);
    std::vector<Press::Subscriber> subscribers;
    for (size_t node = 0; node < 2; ++node) subscribers.push_back(press.Subscribe(node));
    const Press::Subscriber ends = press.Subscribe(0, "weather");
    for (size_t node = 0; node < 2; ++node) Restart(PubSub::Of(press.nodes.system(node))->delivery());
    sim.Settle();
    EXPECT_EQ(press.Confirm(0, {.number = 0}).value().members, 2u);
    const Press::Subscriber later = press.Subscribe(0);
    EXPECT_EQ(press.Confirm(1, {.number = 1}).value().members, 2u);
    ends.ref.Tell(Stop{});
    sim.Advance(absl::Seconds(1));
    for (const Press::Subscriber& subscriber : subscribers) EXPECT_EQ((*subscriber.heard)[0], UpTo(2));
    EXPECT_EQ((*later.heard)[0], (std::vector<int64_t>{1}));
    sim.Advance(absl::Minutes(2));
    EXPECT_EQ(press.nodes.store().activations(), 1u) << "it still knows when a subscriber ends";
  });
  Simulate({.seeds = 2}, [](Simulation& sim) {
    ClusterFixture nodes(sim, {.codecs = Press::Codecs()}, 1);
    PubSub& pubsub = *PubSub::Start(nodes.system(0)).value();
    sim.Advance(absl::Seconds(1));
    const RefOf<Reader> reader = nodes.system(0).Spawn<Reader>("reader", std::make_shared<Heard>());
    Future<Subscribed> subscribing = pubsub.Topic<News>("news").Subscribe(nodes.system(0), reader, absl::Seconds(5));
    sim.Settle();
    Restart(pubsub.delivery());
    sim.Advance(absl::Seconds(5));
    ASSERT_TRUE(subscribing.IsReady());
    const absl::Status why = subscribing.Take().status();
    EXPECT_TRUE(absl::IsUnavailable(why)) << "it hears what is missing: " << why;
  });
}

// Peers that are not trusted may not watch each other: a topic that ends while its node lives is missed all the same.
TEST(PubSub, FindsTheNextActivationOfATopicThatItMayNotWatch) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    TestClusterOptions options;
    options.kinds = {TopicKind()};
    options.codecs.Add<News>().Add(PubSubCodecs());
    options.remote.untrusted = true;
    SimTestCluster cluster(sim, options);
    const GrainKey key(TopicGrain::kGrainKind, "news");
    const auto publish = [&](int64_t number) {
      return cluster.Await(PubSub::Of(cluster.system(0))
                               ->Topic<News>("news")
                               .PublishConfirmed(cluster.system(0), {.number = number}, absl::Seconds(20)));
    };
    // The first node has the topic, the second the subscriber.
    cluster.AddNodes(1);
    PubSub::Start(cluster.system(0)).value();
    ASSERT_TRUE(publish(-1).ok());
    sim.Advance(absl::Seconds(7));
    cluster.AddNodes(1);
    auto heard = std::make_shared<Heard>();
    const RefOf<Reader> reader = cluster.system(1).Spawn<Reader>("reader", heard);
    const absl::StatusOr<Subscribed> subscribed =
        cluster.Await(PubSub::Start(cluster.system(1))
                          .value()
                          ->Topic<News>("news")
                          .Subscribe(cluster.system(1), reader, absl::Seconds(20)));
    ASSERT_TRUE(subscribed.ok()) << subscribed.status();
    ASSERT_NE(cluster[0].driver().Local(key), nullptr);
    ASSERT_EQ(publish(0).value().members, 1u);
    sim.Advance(absl::Seconds(1));
    cluster[0].driver().Passivate(key);
    sim.Settle();
    ASSERT_TRUE(publish(1).ok()) << "to the next activation";
    sim.Advance(PubSubOptions().rejoin_period + PubSubOptions().join_period + absl::Milliseconds(100));
    EXPECT_EQ(publish(2).value().members, 1u);
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ((*heard)[0], UpTo(3));
  });
}

// Over remoting, and through filters, nodes and topics are known as who they are.
TEST(PubSub, IsJoinedAndLeftFromOtherNodes) {
  Simulate({.seeds = 5}, [](Simulation& sim) {
    TestClusterOptions options;
    options.kinds = {TopicKind()};
    options.codecs.Add<News>().Add(PubSubCodecs());
    options.cluster.incoming_filters = {std::make_shared<GrainCallFilter>()};
    options.cluster.outgoing_filters = {std::make_shared<GrainCallFilter>()};
    SimTestCluster cluster(sim, options);
    cluster.AddNodes(3);
    const auto count = [&] {
      return cluster
          .Await(PubSub::Of(cluster.system(0))
                     ->Topic<News>("news")
                     .PublishConfirmed(cluster.system(0), {}, absl::Seconds(20)))
          .value()
          .members;
    };
    std::vector<RefOf<Reader>> readers;
    for (size_t node = 0; node < 3; ++node) {
      ActorSystem& system = cluster.system(node);
      readers.push_back(system.Spawn<Reader>("reader", std::make_shared<Heard>()));
      const absl::StatusOr<Subscribed> subscribed = cluster.Await(
          PubSub::Start(system).value()->Topic<News>("news").Subscribe(system, readers[node], absl::Seconds(20)));
      ASSERT_TRUE(subscribed.ok()) << subscribed.status();
    }
    EXPECT_EQ(count(), 3u);
    sim.Advance(absl::Seconds(10));
    EXPECT_EQ(count(), 3u);
    for (size_t node = 0; node < 3; ++node) readers[node].Tell(Stop{});
    sim.Advance(absl::Seconds(1));
    EXPECT_EQ(count(), 0u);
    for (size_t node = 0; node < 3; ++node) {
      EXPECT_EQ(cluster.system(node).dead_letters().count(DeadLetterReason::kUnhandled), 0u);
    }
  });
}

// Only a topic says that it was joined, and only of what it was told.
TEST(PubSub, BelievesNobodyWhoSpeaksForATopic) {
  Simulate({.seeds = 2}, [](Simulation& sim) {
    // Nobody hosts topics: all that comes is forged.
    ClusterFixture nodes(sim, {.codecs = Press::Codecs()}, 1);
    ActorSystem& system = nodes.system(0);
    PubSub& pubsub = *PubSub::Start(system).value();
    const RefOf<Reader> reader = system.Spawn<Reader>("reader", std::make_shared<Heard>());
    const RefOf<Impostor> impostor = system.Spawn<Impostor>("impostor");
    Future<Subscribed> subscribing = pubsub.Topic<News>("news").Subscribe(system, reader, absl::Seconds(30));
    sim.Advance(absl::Seconds(1));
    Tell(pubsub.delivery(), TopicJoined{.topic = "news", .actor = impostor.untyped(), .version = 1});
    impostor.Tell(Claim{.to = pubsub.delivery(), .joined = {.topic = "news", .actor = reader.untyped(), .version = 1}});
    impostor.Tell(Claim{.to = pubsub.delivery(),
                        .joined = {.topic = "news", .actor = impostor.untyped(), .version = uint64_t{1} << 40}});
    sim.Advance(absl::Seconds(1));
    EXPECT_FALSE(subscribing.IsReady());
    EXPECT_EQ(system.dead_letters().count(DeadLetterReason::kUnhandled), 3u);
  });
}

// A topic by itself, with probes for nodes.
class TopicGrainTest : public testing::Test {
 protected:
  ActorRef Spawn(const TopicOptions& options) {
    return kit_.Spawn(*MakeTypedProps<TopicGrain>(
        PropsOptions(), GrainContext{.key = GrainKey(TopicGrain::kGrainKind, "news"), .token = 1}, options));
  }
  static PublishToTopic Make(int number, size_t bytes = 4) {
    return {
        .publication = {.manifest = "m", .version = static_cast<uint32_t>(number), .bytes = std::string(bytes, 'x')}};
  }
  static std::vector<uint32_t> NumbersOf(const TopicBatch& batch) {
    std::vector<uint32_t> numbers;
    for (const TopicParcel& parcel : batch.parcels) numbers.push_back(parcel.publication->version);
    return numbers;
  }
  void Join(TestProbe& node, ActorRef topic, bool was_joined = false) {
    JoinIn(node, topic, {TopicRoom()}, 0, was_joined);
  }
  void JoinIn(TestProbe& node, ActorRef topic, std::vector<TopicRoom> rooms, uint64_t version,
              bool was_joined = false) {
    node.Send(
        topic,
        JoinTopic{.delivery = node.ref(), .rooms = std::move(rooms), .version = version, .was_joined = was_joined});
    const TopicJoined joined = node.Expect<TopicJoined>();
    EXPECT_EQ(joined.actor, topic);
    EXPECT_EQ(joined.version, version);
  }
  static PublishToTopic Make(int number, TopicAudience audience) {
    PublishToTopic publish = Make(number);
    publish.publication.audience = audience;
    return publish;
  }
  static TopicRoom Group(std::string name) { return {.kind = TopicRoomKind::kGroup, .group = std::move(name)}; }

  TestKit kit_;
};

// G11: one batch is under way; the next has what came meanwhile, up to the limits.
TEST_F(TopicGrainTest, SendsBatches) {
  const ActorRef topic = Spawn({.max_batch = 5, .max_batch_bytes = 20});
  TestProbe node = kit_.Probe();
  Join(node, topic);
  for (int i = 0; i < 12; ++i) Tell(topic, Make(i, i == 7 ? 100 : 1));
  TopicBatch batch = node.Expect<TopicBatch>();
  EXPECT_EQ(batch.topic, "news");
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{0, 1, 2, 3, 4})) << "max_batch";
  node.ExpectNoMessage(absl::Seconds(1));
  node.Reply(BatchDelivered{batch.number});
  batch = node.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{5, 6})) << "max_batch_bytes";
  node.Reply(BatchDelivered{batch.number});
  batch = node.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{7})) << "one in any case";
  node.Reply(BatchDelivered{batch.number});
  batch = node.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{8, 9, 10, 11}));
}

TEST_F(TopicGrainTest, DropsWhatASlowNodeHasNoRoomFor) {
  const ActorRef topic = Spawn({.max_batch = 1, .max_queued = 3});
  TestProbe slow = kit_.Probe();
  TestProbe quick = kit_.Probe();
  Join(slow, topic);
  Join(quick, topic);
  kit_.ExpectDeadLetters<Publication>(2, [&] {
    for (int i = 0; i < 6; ++i) {
      Tell(topic, Make(i));
      const TopicBatch batch = quick.Expect<TopicBatch>();
      EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{static_cast<uint32_t>(i)}));
      quick.Reply(BatchDelivered{batch.number});
      kit_.Settle();
    }
  });
  for (uint32_t i = 0; i < 4; ++i) {
    const TopicBatch batch = slow.Expect<TopicBatch>();
    EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{i}));
    slow.Reply(BatchDelivered{batch.number});
  }
  slow.ExpectNoMessage(absl::Seconds(1));
}

// A batch that nobody answers for is given up, not the node.
TEST_F(TopicGrainTest, GoesOnAfterABatchThatWasLost) {
  const ActorRef topic = Spawn({.max_batch = 1, .delivery_timeout = absl::Seconds(5)});
  TestProbe node = kit_.Probe();
  Join(node, topic);
  Tell(topic, Make(0));
  Tell(topic, Make(1));
  EXPECT_EQ(NumbersOf(node.Expect<TopicBatch>()), (std::vector<uint32_t>{0}));
  node.ExpectNoMessage(absl::Seconds(4));
  EXPECT_EQ(NumbersOf(node.Expect<TopicBatch>()), (std::vector<uint32_t>{1}));
}

// Who was with an earlier activation gets what was published before it was back; who is new does not.
TEST_F(TopicGrainTest, KeepsPublicationsForNodesThatComeBack) {
  const ActorRef topic = Spawn({.settle_time = absl::Seconds(5)});
  Tell(topic, Make(0));
  TestProbe fresh = kit_.Probe();
  TestProbe back = kit_.Probe();
  TestProbe late = kit_.Probe();
  Join(fresh, topic);
  Join(back, topic, /*was_joined=*/true);
  EXPECT_EQ(NumbersOf(back.Expect<TopicBatch>()), (std::vector<uint32_t>{0}));
  Join(back, topic, /*was_joined=*/true);
  back.ExpectNoMessage(absl::Milliseconds(10));
  kit_.Advance(absl::Seconds(10));
  Join(late, topic, /*was_joined=*/true);
  late.ExpectNoMessage(absl::Seconds(1));
  fresh.ExpectNoMessage(absl::Seconds(1));
}

TEST_F(TopicGrainTest, RefusesNodesBeyondItsLimit) {
  const ActorRef topic = Spawn({.max_members = 1});
  TestProbe first = kit_.Probe();
  TestProbe second = kit_.Probe();
  Join(first, topic);
  second.Send(topic, JoinTopic{.delivery = second.ref(), .rooms = {TopicRoom()}});
  EXPECT_TRUE(absl::IsResourceExhausted(second.Expect<ErrorReply>().status));
  first.Send(topic, LeaveTopic{.delivery = first.ref()});
  Join(second, topic);
}

// A node joins, leaves and acknowledges for itself.
TEST_F(TopicGrainTest, BelievesNobodyWhoSpeaksForANode) {
  const ActorRef topic = Spawn({.max_batch = 1});
  TestProbe node = kit_.Probe();
  TestProbe other = kit_.Probe();
  other.Send(topic, JoinTopic{.delivery = node.ref(), .rooms = {TopicRoom()}});
  EXPECT_TRUE(absl::IsPermissionDenied(other.Expect<ErrorReply>().status));
  JoinIn(node, topic, {TopicRoom()}, 1);
  other.Send(topic, JoinTopic{.delivery = node.ref(), .rooms = {Group("a")}, .version = 5});
  EXPECT_TRUE(absl::IsPermissionDenied(other.Expect<ErrorReply>().status));
  other.Send(topic, LeaveTopic{.delivery = node.ref(), .version = 5});
  kit_.Settle();
  EXPECT_EQ(kit_.system().dead_letters().count(DeadLetterReason::kUnhandled), 1u);
  Tell(topic, Make(0));
  Tell(topic, Make(1));
  const TopicBatch batch = node.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{0})) << "it has not left";
  other.Send(topic, BatchDelivered{batch.number});
  node.ExpectNoMessage(absl::Seconds(1));
  node.Reply(BatchDelivered{batch.number});
  EXPECT_EQ(NumbersOf(node.Expect<TopicBatch>()), (std::vector<uint32_t>{1}));
}

// What a node has said last counts, in whichever order it comes.
TEST_F(TopicGrainTest, GoesByTheLatestThatANodeHasSaid) {
  const ActorRef topic = Spawn({});
  TestProbe node = kit_.Probe();
  JoinIn(node, topic, {TopicRoom()}, 5);
  JoinIn(node, topic, {Group("a")}, 7);
  JoinIn(node, topic, {TopicRoom()}, 6);
  kit_.ExpectDeadLetters<Publication>(0, [&] {
    Tell(topic, Make(1, TopicAudience::kOneOfEachGroup));
    kit_.Settle();
  });
  const TopicBatch batch = node.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{1}));
  EXPECT_EQ(batch.parcels[0].groups, (std::vector<std::string>{"a"}));
  node.Reply(BatchDelivered{batch.number});
  node.Send(topic, LeaveTopic{.delivery = node.ref(), .version = 6});
  Tell(topic, Make(2, TopicAudience::kOneOfEachGroup));
  EXPECT_EQ(NumbersOf(node.Expect<TopicBatch>()), (std::vector<uint32_t>{2})) << "it has come back since";
}

// One of a group that is back gets what was kept; the others of the group do not get it again.
TEST_F(TopicGrainTest, KeepsWhatIsForAGroupForTheFirstOfItThatComesBack) {
  const ActorRef topic = Spawn({.settle_time = absl::Seconds(5)});
  Tell(topic, Make(0, TopicAudience::kOneOfEachGroup));
  Tell(topic, Make(1, TopicAudience::kOneAtPath));
  TestProbe first = kit_.Probe();
  TestProbe second = kit_.Probe();
  const TopicRoom path{.kind = TopicRoomKind::kPath};
  JoinIn(first, topic, {Group("a"), path}, 1, /*was_joined=*/true);
  const TopicBatch batch = first.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(batch), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(batch.parcels[0].groups, (std::vector<std::string>{"a"}));
  JoinIn(second, topic, {Group("a"), Group("b"), path}, 1, /*was_joined=*/true);
  const TopicBatch rest = second.Expect<TopicBatch>();
  EXPECT_EQ(NumbersOf(rest), (std::vector<uint32_t>{0}));
  EXPECT_EQ(rest.parcels[0].groups, (std::vector<std::string>{"b"}));
}

// What goes between nodes can be written and read.
TEST(TopicMessages, HaveCodecs) {
  const std::shared_ptr<const CodecRegistry> codecs = Press::Codecs();
  std::string bytes;
  TopicBatch batch{.topic = "news", .number = 7};
  for (uint32_t i = 0; i < 3; ++i) {
    batch.parcels.push_back(
        {.publication = std::make_shared<const Publication>(Publication{
             .manifest = "m", .version = i, .bytes = absl::StrCat("b", i), .audience = TopicAudience::kOneOfEachGroup}),
         .groups = {"a", absl::StrCat("g", i)}});
  }
  const MessageCodec* const codec = codecs->Encode(batch, bytes).value();
  const TopicBatch read = codecs->DecodeAs<TopicBatch>({codec->manifest(), codec->version(), bytes}).value();
  EXPECT_EQ(read.topic, "news");
  EXPECT_EQ(read.number, 7u);
  ASSERT_EQ(read.parcels.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.parcels[i].publication->version, i);
    EXPECT_EQ(read.parcels[i].publication->bytes, absl::StrCat("b", i));
    EXPECT_EQ(read.parcels[i].publication->audience, TopicAudience::kOneOfEachGroup);
    EXPECT_EQ(read.parcels[i].groups, (std::vector<std::string>{"a", absl::StrCat("g", i)}));
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(
        codecs->DecodeAs<TopicBatch>({codec->manifest(), codec->version(), std::string_view(bytes).substr(0, size)})
            .ok());
  }
  for (const std::string_view manifest : {"publish", "published", "join", "joined", "leave", "delivered"}) {
    EXPECT_NE(codecs->FindManifest(absl::StrCat("fraktor.pubsub.", std::string(manifest))), nullptr) << manifest;
  }
}

}  // namespace
}  // namespace fraktor
