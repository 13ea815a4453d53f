// How messages reach actors, through the public API: order, system messages, budgets, mailboxes,
// dispatchers.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/actor/testkit/test_kit.h"

namespace fraktor {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kScale = 1;
#else
constexpr int kScale = 5;
#endif

struct Numbered {
  int sender;
  int number;
};
struct Go {
  int messages;
};
struct Text {
  std::string text;
};
struct Urgent {
  std::string text;
};
// A function to run in the actor's turn.
struct Do {
  std::function<absl::Status(ActorContext&)> what;
};

}  // namespace

template <>
inline constexpr bool kIsControlMessage<Urgent> = true;

namespace {

// Records its texts.
class Scribe : public Actor<Scribe, Text, Urgent, Do> {
 public:
  explicit Scribe(std::vector<std::string>* lines) : lines_(*lines) {}
  void On(Context&, const Text& text) { lines_.push_back(text.text); }
  void On(Context&, const Urgent& urgent) { lines_.push_back(urgent.text); }
  absl::Status On(Context& context, const Do& action) { return action.what(context); }

 private:
  std::vector<std::string>& lines_;
};

using Lines = std::vector<std::string>;

// Checks that the numbers of each sender arrive in order, and that the actor handles one message at
// a time.
class Receiver : public Actor<Receiver, Numbered> {
 public:
  Receiver(int senders, int messages, ActorRef out)
      : next_(static_cast<size_t>(senders)), left_(senders * messages), out_(out) {}
  absl::Status On(Context& context, const Numbered& message) {
    if (busy_.exchange(true, std::memory_order_relaxed)) return absl::InternalError("two at a time");
    if (next_[static_cast<size_t>(message.sender)]++ != message.number) return absl::InternalError("out of order");
    if (--left_ == 0) context.Tell(out_, Done{});
    busy_.store(false, std::memory_order_relaxed);
    return absl::OkStatus();
  }

 private:
  std::atomic<bool> busy_{false};
  std::vector<int> next_;
  int left_;
  ActorRef out_;
};

class Sender : public Actor<Sender, Go> {
 public:
  Sender(int number, ActorRef to) : number_(number), to_(to) {}
  void On(Context& context, const Go& go) {
    for (int i = 0; i < 16 && sent_ < go.messages; ++i) context.Tell(to_, Numbered{number_, sent_++});
    if (sent_ < go.messages) context.Tell(context.self(), Go{go.messages});
  }

 private:
  const int number_;
  const ActorRef to_;
  int sent_ = 0;
};

void SendFromManyActors(TestKit& kit, int messages) {
  constexpr int kSenders = 8;
  auto probe = kit.Probe();
  auto receiver = kit.Spawn<Receiver>(kSenders, messages, probe.ref());
  for (int i = 0; i < kSenders; ++i) kit.Spawn<Sender>(i, receiver.untyped()).Tell(Go{messages});
  probe.Expect<Done>();
}

// A55
TEST(Messaging, KeepsTheOrderOfEachSenderAndDoesOneThingAtATime) {
  Simulate({.seeds = 30}, [](Simulation& sim) { SendFromManyActors(sim, 40); });
  TestKit kit({.patience = absl::Minutes(5), .threads = 4});
  SendFromManyActors(kit, 2000 * kScale);
}

// A55
TEST(Messaging, KeepsTheOrderOfEachForeignThread) {
  constexpr int kThreads = 4;
  constexpr int kMessages = 2000 * kScale;
  TestKit kit({.patience = absl::Minutes(5), .threads = 2});
  auto probe = kit.Probe();
  auto receiver = kit.Spawn<Receiver>(kThreads, kMessages, probe.ref());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([receiver, i] {
      for (int number = 0; number < kMessages; ++number) receiver.Tell(Numbered{i, number});
    });
  }
  for (std::thread& thread : threads) thread.join();
  probe.Expect<Done>();
}

// A56: the stop arrives when nine messages wait, and overtakes them. A58: they become dead letters.
TEST(Messaging, SystemMessagesGoBeforeUserMessages) {
  TestKit kit;
  Lines lines;
  auto scribe = kit.Spawn<Scribe>(&lines);
  auto probe = kit.Probe();
  probe.Watch(scribe);
  kit.Settle();
  kit.ExpectDeadLetters<Text>(9, [&] {
    scribe.Tell(Text{"first"});
    scribe.Tell(Do{[&](ActorContext& context) {
      kit.system().Stop(context.self());
      return absl::OkStatus();
    }});
    for (int i = 0; i < 9; ++i) scribe.Tell(Text{"never"});
  });
  EXPECT_EQ(lines, Lines{"first"});
  probe.ExpectTerminated(scribe);
}

// A57
TEST(Messaging, GivesTheThreadBackAfterItsBudget) {
  TestKitOptions options;
  options.system.workers = 1;
  options.system.scheduler.dispatchers.default_pool.budget = 3;
  TestKit kit(options);
  Lines lines;
  auto a = kit.Spawn<Scribe>(&lines);
  auto b = kit.Spawn<Scribe>(&lines);
  kit.Settle();
  for (int i = 0; i < 12; ++i) a.Tell(Text{"a"});
  for (int i = 0; i < 12; ++i) b.Tell(Text{"b"});
  kit.Settle();
  ASSERT_EQ(lines.size(), 24u);
  // Turns of 3. Each may have two before the other has one: a worker takes an actor
  // that another thread has scheduled at every second step at most.
  const auto last_a = std::find(lines.rbegin(), lines.rend(), "a").base();
  const auto last_b = std::find(lines.rbegin(), lines.rend(), "b").base();
  size_t in_a_row = 0;
  for (auto line = lines.begin(); line != std::min(last_a, last_b); ++line) {
    in_a_row = line != lines.begin() && *line == *(line - 1) ? in_a_row + 1 : 1;
    EXPECT_LE(in_a_row, 6u) << absl::StrJoin(lines, " ");
    if (line + 1 != lines.end() && *line != *(line + 1)) {
      EXPECT_EQ(in_a_row % 3, 0u) << absl::StrJoin(lines, " ");
    }
  }
}

// A58: later messages too; and a watch is answered at once.
TEST(Messaging, WhatAStoppedActorGetsIsADeadLetter) {
  TestKit kit;
  Lines lines;
  auto scribe = kit.Spawn<Scribe>(&lines);
  kit.ExpectDeadLetters<Text>(2, [&] {
    scribe.Tell(Text{"first"});
    Tell(scribe.untyped(), PoisonPill{});
    scribe.Tell(Text{"never"});
    kit.Settle();
    scribe.Tell(Text{"later"});
  });
  EXPECT_EQ(lines, Lines{"first"});
  kit.Probe().ExpectTerminated(scribe, absl::ZeroDuration());
  // The letter names its recipient, even if it never reached a mailbox.
  const std::string recipient = kit.system().PathOf(scribe.untyped());
  kit.ExpectEvents<DeadLetter>(
      1, [&] { scribe.Tell(Text{"later"}); }, [&](const DeadLetter& letter) { return letter.recipient == recipient; });
}

// A58: many stop while others send; each message is handled once or is a dead letter.
TEST(Messaging, LosesNoMessageToActorsThatStop) {
  Simulate({.seeds = 30}, [](Simulation& sim) {
    Random random = sim.MakeRandom("messages");
    Lines lines;
    int sent = 0;
    int lost = 0;
    const EventSubscription listening = sim.system().events().Listen<AllDeadLetters>([&](const AllDeadLetters& letter) {
      if (letter.message.type == MessageTypeOf<Text>()) ++lost;
    });
    for (int i = 0; i < 20; ++i) {
      auto scribe = sim.Spawn<Scribe>(&lines);
      const int64_t messages = random.UniformIn(0, 10);
      const int64_t end = random.UniformIn(0, 10);
      for (int64_t j = 0; j < messages; ++j) {
        scribe.Tell(Text{"x"});
        ++sent;
        if (j == end) sim.system().Stop(scribe);
        if (random.Bernoulli(0.1)) sim.Settle();
      }
    }
    sim.Settle();
    EXPECT_EQ(static_cast<int>(lines.size()) + lost, sent);
  });
}

// A65
TEST(Messaging, ControlMessagesOvertakeOthers) {
  TestKit kit;
  Lines lines;
  const ActorRef scribe =
      kit.Spawn(*MakeTypedProps<Scribe>({.mailbox = {.order = MessageOrder::kControlFirst}}, &lines), "scribe");
  for (const char* const text : {"1", "2"}) Tell(scribe, Text{text});
  for (const char* const text : {"!1", "!2"}) Tell(scribe, Urgent{text});
  Tell(scribe, Text{"3"});
  kit.Settle();
  EXPECT_EQ(lines, (Lines{"!1", "!2", "1", "2", "3"}));
}

// A65: equal priorities keep their order; there is no unstable variant.
TEST(Messaging, PrioritiesDecideWhatComesFirst) {
  TestKit kit;
  Lines lines;
  const MessagePriority by_first_letter = [](const Envelope& message) {
    const auto* const text = message.TryAs<Text>();
    return text == nullptr ? 0 : static_cast<int>(text->text[0]);
  };
  const ActorRef scribe = kit.Spawn(
      *MakeTypedProps<Scribe>({.mailbox = {.order = MessageOrder::kPriority, .priority = by_first_letter}}, &lines));
  for (const char* const text : {"c1", "a1", "b1", "a2", "c2", "b2"}) Tell(scribe, Text{text});
  Tell(scribe, Urgent{"first"});
  kit.Settle();
  EXPECT_EQ(lines, (Lines{"first", "a1", "a2", "b1", "b2", "c1", "c2"}));
}

// A66: a value chooses the dispatcher, and not a name in a file, so there are no aliases and no
// unknown names.
TEST(Messaging, ActorsRunOnTheDispatcherThatTheyChoose) {
  TestKitOptions options{.patience = absl::Minutes(5), .threads = 1};
  options.system.scheduler.dispatchers.max_pinned = 1;
  TestKit kit(options);
  std::vector<Lines> lines(4);
  const auto spawn = [&](DispatcherChoice choice, size_t i) {
    return kit.system().TrySpawn(*MakeTypedProps<Scribe>({.dispatcher = choice}, &lines[i]));
  };
  std::vector<std::thread::id> ran(3);
  std::latch all(3);
  const DispatcherChoice choices[] = {DispatcherChoice::kAutomatic, DispatcherChoice::kSystem,
                                      DispatcherChoice::kPinned};
  for (size_t i = 0; i < 3; ++i) {
    Tell(spawn(choices[i], i).value(), Do{[&ran, &all, i](ActorContext&) {
           ran[i] = std::this_thread::get_id();
           all.arrive_and_wait();  // No two of them share a thread.
           return absl::OkStatus();
         }});
  }
  all.wait();
  kit.Settle();
  EXPECT_NE(ran[0], ran[1]);
  EXPECT_NE(ran[0], ran[2]);
  EXPECT_NE(ran[1], ran[2]);
  const absl::Status one_too_many = spawn(DispatcherChoice::kPinned, 3).status();
  EXPECT_EQ(one_too_many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(one_too_many.ToString().find("max_pinned"), std::string::npos) << one_too_many;
}

// Blocks its worker until the test lets it go on.
class Blocker : public Actor<Blocker, Go> {
 public:
  Blocker(std::binary_semaphore* begun, std::binary_semaphore* go_on, std::vector<ActorRef> others)
      : begun_(*begun), go_on_(*go_on), others_(std::move(others)) {}
  void On(Context& context, const Go&) {
    for (const ActorRef other : others_) context.Tell(other, Text{"x"});
    begun_.release();
    go_on_.acquire();
  }

 private:
  std::binary_semaphore& begun_;
  std::binary_semaphore& go_on_;
  const std::vector<ActorRef> others_;
};

class Echo : public Actor<Echo, Text> {
 public:
  explicit Echo(ActorRef out) : out_(out) {}
  void On(Context& context, const Text& text) { context.Tell(out_, text); }

 private:
  ActorRef out_;
};

// A67: there is no dispatcher with one mailbox for all; idle workers steal the actors that a busy
// one has scheduled.
TEST(Messaging, ASlowActorHoldsUpNobodyElse) {
  TestKit kit({.patience = absl::Minutes(5), .threads = 2});
  auto probe = kit.Probe();
  std::vector<ActorRef> others;
  for (int i = 0; i < 50; ++i) others.push_back(kit.Spawn<Echo>(probe.ref()).untyped());
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
  auto slow = kit.Spawn<Blocker>(&begun, &go_on, others);
  slow.Tell(Go{0});
  begun.acquire();
  // Both the recipients of the busy actor and those of another sender.
  for (const ActorRef other : others) Tell(other, Text{"y"});
  for (size_t i = 0; i < 2 * others.size(); ++i) probe.Expect<Text>();
  go_on.release();
  kit.Settle();
}

// A68: a signal, as an interrupt, does not disturb a worker.
TEST(Messaging, NothingThatIsThrownEndsAWorker) {
  struct sigaction quiet = {};
  quiet.sa_handler = [](int) {};
  struct sigaction before = {};
  ASSERT_EQ(sigaction(SIGUSR1, &quiet, &before), 0);
  {
    TestKit kit({.patience = absl::Minutes(5), .threads = 2});
    auto probe = kit.Probe();
    Lines lines;
    std::vector<RefOf<Scribe>> scribes;
    for (int i = 0; i < 8; ++i) scribes.push_back(kit.Spawn<Scribe>(&lines));
    for (int i = 0; i < 200; ++i) {
      scribes[static_cast<size_t>(i) % scribes.size()].Tell(Do{[i](ActorContext&) -> absl::Status {
        if (i % 2 == 0) throw std::runtime_error("thrown");
        return absl::InternalError("returned");
      }});
      if (i % 20 == 0) kill(getpid(), SIGUSR1);
    }
    auto echo = kit.Spawn<Echo>(probe.ref());
    echo.Tell(Text{"x"});
    probe.Expect<Text>();
    kit.Settle();
    for (const auto& scribe : scribes) EXPECT_TRUE(kit.IsAlive(scribe));
    // The failure is escalated to /user, which ends the system.
    std::binary_semaphore ended{0};
    ASSERT_TRUE(kit.system().OnTermination([&] { ended.release(); }).ok());
    scribes[0].Tell(Do{[](ActorContext&) -> absl::Status { throw 1; }});
    ended.acquire();
  }
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace fraktor
