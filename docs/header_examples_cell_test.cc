// The examples of the headers of actor/cell and actor/system that header_examples_test.cc does not
// have, so that they compile and run. //tools/tidy:tidy_test checks that each paragraph of an
// example stands here, line by line.
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/fencing_token.h"
#include "fraktor/actor/testkit/test_kit.h"

namespace fraktor {
namespace {

class Counter final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

class Greeter final : public ActorInstance {
 public:
  explicit Greeter(std::string greeting) : greeting_(std::move(greeting)) {}
  absl::Status Receive(ActorContext& context, Envelope&) override {
    context.Reply(greeting_);
    return absl::OkStatus();
  }

 private:
  const std::string greeting_;
};

TEST(HeaderExamples, ActorProps) {
  TestKit kit;
  ActorSystem& system = kit.system();
  const ActorProps& counters = PropsOf<Counter>();                                  // Counter()
  PropsPtr greeters = MakeProps<Greeter>({.mailbox = {.capacity = 100}}, "hello");  // Greeter(std::string)
  ActorRef counter = system.Spawn(counters);
  ActorRef greeter = system.Spawn(*greeters, "greeter");
  kit.Settle();
  EXPECT_TRUE(counter.IsCurrent());
  EXPECT_EQ(system.AskAndWait<std::string>(greeter, 1, absl::Seconds(1)).value(), "hello");
}

class Observer final : public ActorInstance {
 public:
  explicit Observer(int* notices) : notices_(*notices) {}
  absl::Status Receive(ActorContext&, Envelope& message) override {
    if (message.Is<DeadLetterNotice>()) ++notices_;
    return absl::OkStatus();
  }

 private:
  int& notices_;
};

TEST(HeaderExamples, ActorSubscriber) {
  TestKit kit;
  ActorSystem& system = kit.system();
  int notices = 0;
  const PropsPtr observers = MakeProps<Observer>({}, &notices);
  const ActorRef observer = system.Spawn(*observers);
  SubscribeActor<AllDeadLetters>(system.events(), observer).value();  // a DeadLetterNotice for each
  UnsubscribeActor<Dropped>(system.events(), observer);               // except those of full mailboxes
  Tell(ActorRef(), 7);
  kit.Settle();
  EXPECT_EQ(notices, 1);
}

class Parent final : public ActorInstance {
 public:
  Parent(int* identities, int* ends) : identities_(*identities), ends_(*ends) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Terminated>()) ++ends_;
    if (message.Is<ActorIdentity>()) {
      ++identities_;
      const ActorRef child = message.As<ActorIdentity>().ref;
      // clang-format off
      context.Tell(child, PoisonPill{});          // the child ends after the messages before it
      context.Watch(child).IgnoreError();         // a Terminated comes when the child has ended
      context.Tell(child, Identify{.id = 7});     // an ActorIdentity comes back
      // clang-format on
    }
    if (message.Is<int>()) context.Tell(context.TrySpawn(PropsOf<Counter>()).value(), Identify{});
    return absl::OkStatus();
  }

 private:
  int& identities_;
  int& ends_;
};

TEST(HeaderExamples, LifecycleMessages) {
  TestKit kit;
  int identities = 0;
  int ends = 0;
  const PropsPtr parents = MakeProps<Parent>({}, &identities, &ends);
  const ActorRef parent = kit.system().Spawn(*parents);
  Tell(parent, 1);
  kit.Settle();
  // The pill comes before the second Identify.
  EXPECT_EQ(identities, 1);
  EXPECT_EQ(ends, 1);
}

TEST(HeaderExamples, FencingToken) {
  {
    const FencingTokenScope scope(7);              // around the constructor of the actor
    const uint64_t token = CurrentFencingToken();  // 7, in that constructor
    EXPECT_EQ(token, 7u);
  }
  EXPECT_EQ(CurrentFencingToken(), 0u);
}

}  // namespace
}  // namespace fraktor
