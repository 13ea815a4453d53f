#include "fraktor/actor/event/event_stream.h"

#include <pthread.h>

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
#include "gtest/gtest.h"

#include "fraktor/actor/event/event_type.h"

namespace fraktor {
namespace {

struct Fruit {
  static constexpr EventInfo<Fruit> kEvent{"Fruit"};
  int number = 0;
};
struct Red {
  static constexpr EventInfo<Red> kEvent{"Red"};
  int shade = 0;
};
struct Apple : Fruit {
  static constexpr EventInfo<Apple, Fruit> kEvent{"Apple"};
};
struct RedApple : Apple, Red {
  static constexpr EventInfo<RedApple, Apple, Red> kEvent{"RedApple"};
};
struct Pear : Fruit {
  static constexpr EventInfo<Pear, Fruit> kEvent{"Pear"};
};

RedApple MakeRedApple(int number, int shade) {
  RedApple apple;
  apple.number = number;
  apple.shade = shade;
  return apple;
}

// Records the events that it receives. The words of the subscriber point to it.
struct Recorder {
  std::vector<std::string> names;
  bool ended = false;

  EventSubscriber subscriber() {
    return {.deliver =
                [](const EventSubscriber& self, const EventRef& event) {
                  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the subscriber chose
                  auto* recorder = reinterpret_cast<Recorder*>(self.word0);
                  if (recorder->ended) return false;
                  recorder->names.emplace_back(event.type().name());
                  return true;
                },
            .word0 = reinterpret_cast<uintptr_t>(this),
            .word1 = 0};
  }
};

using Names = std::vector<std::string>;

TEST(EventType, KnowsItsDeclaredBases) {
  EXPECT_TRUE(EventTypeOf<RedApple>().Is(EventTypeOf<RedApple>()));
  EXPECT_TRUE(EventTypeOf<RedApple>().Is(EventTypeOf<Fruit>()));
  EXPECT_TRUE(EventTypeOf<RedApple>().Is(EventTypeOf<Red>()));
  EXPECT_FALSE(EventTypeOf<Fruit>().Is(EventTypeOf<Apple>()));
  EXPECT_FALSE(EventTypeOf<Pear>().Is(EventTypeOf<Red>()));
  EXPECT_EQ(EventTypeOf<Pear>().name(), "Pear");
}

TEST(EventRef, FindsEveryBaseOfTheEvent) {
  const RedApple apple = MakeRedApple(3, 7);
  const EventRef event = EventRef::To(apple);
  EXPECT_EQ(event.As<Fruit>()->number, 3);
  EXPECT_EQ(event.As<Red>()->shade, 7);  // not the first base: the address differs
  EXPECT_EQ(event.As<RedApple>(), &apple);
  EXPECT_EQ(event.As<Pear>(), nullptr);
}

TEST(EventStream, TellsWhetherASubscriptionIsNew) {  // A89
  EventStream stream;
  Recorder recorder;
  EXPECT_TRUE(*stream.Subscribe<Apple>(recorder.subscriber()));
  EXPECT_FALSE(*stream.Subscribe<Apple>(recorder.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Fruit>(recorder.subscriber()));
  EXPECT_FALSE(*stream.Subscribe<Pear>(recorder.subscriber()));  // it receives pears as Fruit
  EXPECT_EQ(stream.subscriber_count(), 1u);
}

TEST(EventStream, DeliversByTypeAndByDeclaredBase) {  // A89
  EventStream stream;
  Recorder fruit, red, apple;
  stream.Subscribe<Fruit>(fruit.subscriber()).IgnoreError();
  stream.Subscribe<Red>(red.subscriber()).IgnoreError();
  stream.Subscribe<Apple>(apple.subscriber()).IgnoreError();
  stream.Publish(Fruit{});
  stream.Publish(Apple{});
  stream.Publish(Pear{});
  stream.Publish(RedApple{});
  stream.Publish(Red{});
  EXPECT_EQ(fruit.names, (Names{"Fruit", "Apple", "Pear", "RedApple"}));
  EXPECT_EQ(apple.names, (Names{"Apple", "RedApple"}));
  EXPECT_EQ(red.names, (Names{"RedApple", "Red"}));
}

TEST(EventStream, TellsWhetherSomebodyGetsAType) {
  EventStream stream;
  const uint64_t at_first = stream.changes();
  EXPECT_FALSE(stream.HasSubscribers<Apple>());
  EventSubscription fruits = stream.Listen<Fruit>([](const Fruit&) {});
  const uint64_t with_fruits = stream.changes();
  EXPECT_GT(with_fruits, at_first);
  // Subscribers to a base count; other types have none.
  EXPECT_TRUE(stream.HasSubscribers<Apple>());
  EXPECT_TRUE(stream.HasSubscribers<RedApple>());
  EXPECT_FALSE(stream.HasSubscribers<Red>());
  EXPECT_EQ(stream.changes(), with_fruits);
  fruits.Reset();
  EXPECT_GT(stream.changes(), with_fruits);
  EXPECT_FALSE(stream.HasSubscribers<Apple>());
}

TEST(EventStream, DeliversOnceToWhoSubscribedTwice) {
  EventStream stream;
  Recorder recorder;
  EXPECT_TRUE(*stream.Subscribe<Red>(recorder.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Fruit>(recorder.subscriber()));
  stream.Publish(RedApple{});
  EXPECT_EQ(recorder.names, (Names{"RedApple"}));
}

TEST(EventStream, LeavesOutAPartOfWhatIsSubscribed) {  // A90
  EventStream stream;
  Recorder recorder, other;
  EXPECT_TRUE(*stream.Subscribe<Fruit>(recorder.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Fruit>(other.subscriber()));
  EXPECT_TRUE(stream.Unsubscribe<Apple>(recorder.subscriber()));
  EXPECT_FALSE(stream.Unsubscribe<Apple>(recorder.subscriber()));
  stream.Publish(Apple{});
  stream.Publish(RedApple{});
  stream.Publish(Pear{});
  EXPECT_EQ(recorder.names, (Names{"Pear"}));
  EXPECT_EQ(other.names, (Names{"Apple", "RedApple", "Pear"}));
  EXPECT_TRUE(*stream.Subscribe<Fruit>(recorder.subscriber()));  // all of it again
  stream.Publish(Apple{});
  EXPECT_EQ(recorder.names, (Names{"Pear", "Apple"}));
}

TEST(EventStream, EndsWhatDerivesFromWhatIsUnsubscribed) {  // A90
  EventStream stream;
  Recorder recorder;
  EXPECT_TRUE(*stream.Subscribe<Apple>(recorder.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Red>(recorder.subscriber()));
  EXPECT_TRUE(stream.Unsubscribe<Fruit>(recorder.subscriber()));
  stream.Publish(Apple{});
  stream.Publish(Red{});
  EXPECT_EQ(recorder.names, (Names{"Red"}));
  EXPECT_TRUE(stream.Unsubscribe<Red>(recorder.subscriber()));
  EXPECT_EQ(stream.subscriber_count(), 0u);
  EXPECT_FALSE(stream.Unsubscribe<Red>(recorder.subscriber()));
}

TEST(EventStream, HeedsEveryChangeOfABaseOrAnotherTypeAfterAPublication) {
  EventStream stream;
  Recorder one, two;
  const auto publish = [&] {
    one.names.clear();
    two.names.clear();
    stream.Publish(MakeRedApple(1, 1));
    stream.Publish(Pear{});
    return std::pair(one.names, two.names);
  };
  ASSERT_TRUE(*stream.Subscribe<RedApple>(one.subscriber()));
  EXPECT_EQ(publish(), std::pair(Names({"RedApple"}), Names()));
  ASSERT_TRUE(*stream.Subscribe<Fruit>(two.subscriber()));
  EXPECT_EQ(publish(), std::pair(Names({"RedApple"}), Names({"RedApple", "Pear"})));
  ASSERT_TRUE(stream.Unsubscribe<Apple>(two.subscriber()));
  EXPECT_EQ(publish(), std::pair(Names({"RedApple"}), Names({"Pear"})));
  ASSERT_TRUE(*stream.Subscribe<Red>(two.subscriber()));
  ASSERT_TRUE(stream.UnsubscribeAll(one.subscriber()));
  EXPECT_EQ(publish().first, Names());
  ASSERT_TRUE(stream.UnsubscribeAll(two.subscriber()));
  EXPECT_EQ(publish(), std::pair(Names(), Names()));
}

TEST(EventStream, RemovesASubscriberThatHasEnded) {  // A92
  EventStream stream;
  Recorder alive, dead;
  dead.ended = true;
  EXPECT_TRUE(*stream.Subscribe<Fruit>(dead.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Red>(dead.subscriber()));
  EXPECT_TRUE(*stream.Subscribe<Fruit>(alive.subscriber()));
  stream.Publish(Apple{});
  EXPECT_EQ(stream.subscriber_count(), 1u);
  EXPECT_EQ(alive.names, (Names{"Apple"}));
  EXPECT_FALSE(stream.UnsubscribeAll(dead.subscriber()));
}

TEST(EventStream, DeliversInTheOrderOfSubscription) {
  EventStream stream;
  std::string order;
  std::vector<EventSubscription> subscriptions;
  for (char c : std::string("abcdefgh")) {
    subscriptions.push_back(stream.Listen<Fruit>([&order, c](const Fruit&) { order.push_back(c); }));
  }
  stream.Publish(Pear{});
  EXPECT_EQ(order, "abcdefgh");
}

TEST(EventStream, LetsSubscribersChangeSubscriptionsDuringAPublication) {
  EventStream stream;
  int first = 0, second = 0, third = 0;
  EventSubscription itself, other, late;
  itself = stream.Listen<Fruit>([&](const Fruit&) {
    ++first;
    itself.Reset();
    other.Reset();
    late = stream.Listen<Fruit>([&](const Fruit&) { ++third; });
  });
  other = stream.Listen<Fruit>([&](const Fruit&) { ++second; });
  stream.Publish(Fruit{});
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);  // it ended before its turn
  EXPECT_EQ(third, 0);   // it subscribed after the publication began
  stream.Publish(Fruit{});
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(third, 1);
}

TEST(EventStream, StopsPublicationsThatNestWithoutEnd) {
  EventStream stream({.max_nesting = 8});
  int calls = 0;
  const EventSubscription again = stream.Listen<Fruit>([&](const Fruit& fruit) {
    ++calls;
    stream.Publish(fruit);
  });
  stream.Publish(Fruit{});
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(stream.dropped_count(), 1u);
  stream.Publish(Fruit{});
  EXPECT_EQ(calls, 16);
}

TEST(EventStream, RefusesMoreSubscriptionsThanItsLimit) {
  EventStream stream({.max_subscriptions = 2});
  Recorder a, b, c;
  EXPECT_TRUE(stream.Subscribe<Fruit>(a.subscriber()).ok());
  EXPECT_TRUE(stream.Subscribe<Fruit>(b.subscriber()).ok());
  const absl::StatusOr<bool> refused = stream.Subscribe<Fruit>(c.subscriber());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(stream.UnsubscribeAll(a.subscriber()));
  EXPECT_TRUE(stream.Subscribe<Fruit>(c.subscriber()).ok());
  EXPECT_EQ(stream.Subscribe<Fruit>(EventSubscriber{}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(stream.Listen<Fruit>([](const Fruit&) {}).IsListening());
  EXPECT_TRUE(stream.UnsubscribeAll(b.subscriber()));
  EventSubscription listening = stream.Listen<Fruit>([](const Fruit&) {});
  EXPECT_TRUE(listening.IsListening());
  listening.Reset();
  EXPECT_FALSE(listening.IsListening());
}

TEST(EventStream, HoldsWhatAListenerNeedsUntilItHasReturnedEverywhere) {
  EventStream stream;
  std::atomic<bool> stop{false};
  std::vector<std::thread> publishers;
  for (int i = 0; i < 2; ++i) {
    publishers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) stream.Publish(RedApple{});
    });
  }
  for (int round = 0; round < 300; ++round) {
    // Destroyed right after the subscription: TSan or ASan reports a call that is still running.
    auto calls = std::make_unique<std::atomic<int>>(0);
    EventSubscription subscription = stream.Listen<Fruit>(
        [counter = calls.get()](const Fruit&) { counter->fetch_add(1, std::memory_order_relaxed); });
    if (round % 2 == 0) stream.Publish(Apple{});
    subscription.Reset();
    calls.reset();
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& publisher : publishers) publisher.join();
  EXPECT_EQ(stream.subscriber_count(), 0u);
}

TEST(EventStream, DeliversEverythingToThoseWhoStayWhileOthersComeAndGo) {
  EventStream stream;
  std::atomic<int> received{0};
  const EventSubscription steady =
      stream.Listen<Fruit>([&](const Fruit&) { received.fetch_add(1, std::memory_order_relaxed); });
  constexpr int kThreads = 3;
  constexpr int kRounds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const EventSubscription brief = stream.Listen<Red>([](const Red&) {});
        stream.Publish(Apple{});
        stream.Publish(RedApple{});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received.load(), 2 * kThreads * kRounds);
  EXPECT_EQ(stream.subscriber_count(), 1u);
}

TEST(EventStream, GivesThePublisherWhatASubscriberThrows) {
  EventStream stream;
  Recorder behind;
  const EventSubscription thrower = stream.Listen<Fruit>([](const Fruit&) { throw std::runtime_error("rotten"); });
  ASSERT_TRUE(stream.Subscribe<Fruit>(behind.subscriber()).ok());
  EXPECT_THROW(stream.Publish(Apple{}), std::runtime_error);
  EXPECT_TRUE(behind.names.empty());
  EXPECT_EQ(stream.throw_count(), 0u);
}

TEST(EventStream, ReachesThoseBehindOneThatThrowsIfThePublisherWantsThat) {
  std::vector<std::string> lines;
  EventStream stream({.on_throw = [&](std::string_view line) { lines.emplace_back(line); }});
  Recorder behind;
  const EventSubscription first = stream.Listen<Fruit>([](const Fruit&) { throw std::runtime_error("rotten"); });
  const EventSubscription second = stream.Listen<Fruit>([](const Fruit&) { throw 7; });
  ASSERT_TRUE(stream.Subscribe<Fruit>(behind.subscriber()).ok());
  EXPECT_NO_THROW(stream.PublishToAll(Apple{}));
  EXPECT_EQ(behind.names, std::vector<std::string>({"Apple"}));
  EXPECT_EQ(lines, std::vector<std::string>(
                       {"a listener of Apple threw: rotten; listeners must catch it",
                        "a listener of Apple threw: something that is no std::exception; listeners must catch it"}));
  EXPECT_EQ(stream.throw_count(), 2u);
  EventStream silent;
  const EventSubscription third = silent.Listen<Fruit>([](const Fruit&) { throw 7; });
  EXPECT_NO_THROW(silent.PublishToAll(Apple{}));
  EXPECT_EQ(silent.throw_count(), 1u);
}

TEST(EventStream, GoesOnIfTheLogOfThrowingListenersThrows) {
  EventStream stream({.on_throw = [](std::string_view) { throw std::runtime_error("no log"); }});
  Recorder behind;
  const EventSubscription first = stream.Listen<Fruit>([](const Fruit&) { throw 7; });
  ASSERT_TRUE(stream.Subscribe<Fruit>(behind.subscriber()).ok());
  EXPECT_NO_THROW(stream.PublishToAll(Apple{}));
  EXPECT_EQ(behind.names, std::vector<std::string>({"Apple"}));
  EXPECT_EQ(stream.throw_count(), 1u);
}

// A thread that is cancelled inside a listener ends.
TEST(EventStream, LetsAThreadEndInASubscriber) {
  static bool goes_on = false;
  EventStream stream;
  const EventSubscription last = stream.Listen<Fruit>([](const Fruit&) { pthread_exit(nullptr); });
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* to) -> void* {
                  static_cast<EventStream*>(to)->PublishToAll(Apple{});
                  goes_on = true;
                  return nullptr;
                },
                &stream),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(goes_on);
  EXPECT_EQ(stream.throw_count(), 0u);
}

}  // namespace
}  // namespace fraktor
