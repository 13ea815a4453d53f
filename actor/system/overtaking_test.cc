// A message of the runtime (Terminated, a timer's message, PoisonPill) is handled after the
// messages that were in the mailbox before it, with each overflow policy.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/mailbox/overflow/overflow_policy.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/stash.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timers.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor {

using actor_internal::RestartActor;
using actor_internal::ResumeActor;
using actor_internal::SuspendActor;
using system_internal::Act;
using system_internal::Lines;
using system_internal::SystemTest;

namespace {

// Does not count as activity, so that a receive timeout can be due while some of these wait.
struct Quiet {
  int number;
};
// No limit refuses it.
struct Urgent {};
struct Tick {};

}  // namespace

template <>
inline constexpr bool kLeavesReceiveTimeout<Quiet> = true;
template <>
inline constexpr bool kPassesMailboxLimits<Urgent> = true;

namespace {

// A policy of the user that always gives the same answer.
class Always final : public OverflowPolicy {
 public:
  Always(OverflowNeeds needs, OverflowDecision (*decide)()) : needs_(needs), decide_(decide) {}
  std::string_view name() const noexcept override { return "Always"; }
  OverflowNeeds needs() const noexcept override { return needs_; }
  OverflowDecision Decide(const OverflowCase&) const override { return decide_(); }

 private:
  const OverflowNeeds needs_;
  OverflowDecision (*const decide_)();
};

// A mailbox that takes two of the messages 1 to 4.
struct Mailbox {
  std::string name;
  MailboxOptions options;
  Lines handled;  // The messages of 1 to 4 that its actor handles.
};

std::vector<Mailbox> AllMailboxes() {
  const Lines all = {"1", "2", "3", "4"};
  const Lines oldest = {"1", "2"};
  const Lines newest = {"3", "4"};
  const auto of_user = [](OverflowNeeds needs, OverflowDecision (*decide)()) {
    return MailboxOptions{.capacity = 2, .overflow_policy = std::make_shared<Always>(needs, decide)};
  };
  return {
      {"unbounded", {}, all},
      {"kDropOldest", {.capacity = 2, .overflow = OverflowStrategy::kDropOldest}, newest},
      {"kDropNewest", {.capacity = 2, .overflow = OverflowStrategy::kDropNewest}, oldest},
      {"kBlockProducer", {.capacity = 2, .overflow = OverflowStrategy::kBlockProducer}, all},
      {"kReject", {.capacity = 2, .overflow = OverflowStrategy::kReject}, oldest},
      {"kDeadLetter", {.capacity = 2, .overflow = OverflowStrategy::kDeadLetter}, oldest},
      {"a policy that rejects", of_user(OverflowNeeds::kCount, [] { return OverflowDecision::Reject(); }), oldest},
      {"a policy that holds", of_user(OverflowNeeds::kLine, [] { return OverflowDecision::Hold(); }), all},
      {"a policy that replaces", of_user(OverflowNeeds::kQueue, [] { return OverflowDecision::DropOldest(); }), newest},
  };
}

Lines And(Lines lines, const std::string& last) {
  lines.push_back(last);
  return lines;
}

class Overtaking : public SystemTest {
 protected:
  // An actor with this mailbox, which notes what it handles, and another that sends to it.
  void SpawnPair(const Mailbox& mailbox) {
    const std::string number = std::to_string(pairs_++);
    actor_ = Spawn("actor" + number,
                   {.post_stop = [this](ActorContext&) { noted_.emplace_back("PostStop"); },
                    .terminated =
                        [this](ActorContext&, const Terminated&) {
                          noted_.emplace_back("Terminated");
                          return absl::OkStatus();
                        },
                    .other =
                        [this](ActorContext& context, Envelope& message) {
                          if (const auto* quiet = message.TryAs<Quiet>()) {
                            noted_.push_back(std::to_string(quiet->number));
                          }
                          if (message.Is<Urgent>()) noted_.emplace_back("Urgent");
                          if (message.Is<Tick>()) noted_.emplace_back("Tick");
                          if (message.Is<ReceiveTimeout>()) {
                            noted_.emplace_back("ReceiveTimeout");
                            CancelReceiveTimeout(context);
                          }
                          return absl::OkStatus();
                        }},
                   {.mailbox = mailbox.options});
    sender_ = Spawn("sender" + number);
    Noted();
  }
  // Suspends the actor, as the failure of an ancestor does, until Resume.
  void Suspend() {
    TellSystem(actor_, MakeEnvelope<SuspendActor>(ActorRef()));
    Settle();
  }
  void Resume() {
    TellSystem(actor_, MakeEnvelope<ResumeActor>(ActorRef()));
    Settle();
  }
  // Sends 1 to 4 in a turn of the sender, and then what `last` says.
  void SendFour(std::function<void(ActorContext&)> last = [](ActorContext&) {}) {
    Let(sender_, [this, last = std::move(last)](ActorContext& context) {
      for (int i = 1; i <= 4; ++i) context.Tell(actor_, Quiet{i});
      last(context);
      return absl::OkStatus();
    });
  }
  Lines Noted() { return std::exchange(noted_, {}); }

  int pairs_ = 0;
  ActorRef actor_;
  ActorRef sender_;
  Lines noted_;
};

// SCH-4
TEST_F(Overtaking, IsNotDoneByTerminated) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    for (const bool is_suspended : {false, true}) {
      SpawnPair(mailbox);
      Let(actor_, [this](ActorContext& context) { return context.Watch(sender_); });
      if (is_suspended) Suspend();
      SendFour([](ActorContext& context) { context.Stop(); });
      ASSERT_FALSE(IsAlive(sender_));
      if (is_suspended) Resume();
      EXPECT_EQ(Noted(), And(mailbox.handled, "Terminated")) << mailbox.name << (is_suspended ? ", suspended" : "");
    }
  }
}

// SCH-4
TEST_F(Overtaking, IsNotDoneByAPoisonPill) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    for (const bool is_suspended : {false, true}) {
      SpawnPair(mailbox);
      if (is_suspended) Suspend();
      SendFour([this](ActorContext& context) { context.Tell(actor_, PoisonPill{}); });
      if (is_suspended) Resume();
      EXPECT_EQ(Noted(), And(mailbox.handled, "PostStop")) << mailbox.name << (is_suspended ? ", suspended" : "");
    }
  }
}

// SCH-4: the timers are due while the actor is suspended, after the four messages have come.
TEST_F(Overtaking, IsNotDoneByMessagesOfTimers) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Let(actor_, [](ActorContext& context) { return Timers(context).StartSingle("t", Tick{}, absl::Milliseconds(1)); });
    Suspend();
    SendFour();
    RunFor(absl::Milliseconds(1));
    Resume();
    EXPECT_EQ(Noted(), And(mailbox.handled, "Tick")) << mailbox.name;
    SpawnPair(mailbox);
    Let(actor_, [](ActorContext& context) { return SetReceiveTimeout(context, absl::Milliseconds(1)); });
    Suspend();
    SendFour();
    RunFor(absl::Milliseconds(1));
    Resume();
    EXPECT_EQ(Noted(), And(mailbox.handled, "ReceiveTimeout")) << mailbox.name;
  }
}

// SCH-4: a timer's message is handled before the messages that come after it.
TEST_F(Overtaking, IsNotDoneToMessagesOfTimers) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Let(actor_, [](ActorContext& context) { return Timers(context).StartSingle("t", Tick{}, absl::Milliseconds(1)); });
    Suspend();
    RunFor(absl::Milliseconds(1));
    SendFour();
    Resume();
    Lines expected = {"Tick"};
    expected.insert(expected.end(), mailbox.handled.begin(), mailbox.handled.end());
    EXPECT_EQ(Noted(), expected) << mailbox.name;
  }
}

// SCH-4: a timer that was cancelled while its message waited has no message.
TEST_F(Overtaking, IsNotDoneByATimerThatIsCancelledMeanwhile) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Let(actor_, [](ActorContext& context) {
      FRAKTOR_RETURN_IF_ERROR(Timers(context).StartSingle("t", Tick{}, absl::Milliseconds(1)));
      return Timers(context).StartSingle("later", Tick{}, absl::Seconds(1));
    });
    Suspend();
    SendFour();
    RunFor(absl::Milliseconds(1));
    TellSystem(actor_, MakeEnvelope<RestartActor>(ActorRef(), absl::InternalError("broken")));
    Settle();
    RunFor(absl::Seconds(2));
    Lines expected = {"PostStop"};  // The instance before the restart.
    expected.insert(expected.end(), mailbox.handled.begin(), mailbox.handled.end());
    EXPECT_EQ(Noted(), expected) << mailbox.name;
  }
}

// SCH-4: an actor sends to itself. The message after the pill is not handled, but it takes a place:
// a mailbox that drops the oldest message drops one more for it.
TEST_F(Overtaking, IsNotDoneByMessagesOfTheActorToItself) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Let(actor_, [](ActorContext& context) {
      for (int i = 1; i <= 3; ++i) context.Tell(context.self(), Quiet{i});
      context.Tell(context.self(), PoisonPill{});
      context.Tell(context.self(), Quiet{9});
      return absl::OkStatus();
    });
    Lines expected = {"1", "2", "3"};  // An actor never waits for room in its own mailbox.
    if (mailbox.handled.size() == 2) expected = mailbox.handled.front() == "1" ? Lines{"1", "2"} : Lines{"3"};
    EXPECT_EQ(Noted(), And(expected, "PostStop")) << mailbox.name;
  }
}

// An actor that stashes everything until it is told to unstash.
class Stasher final : public ActorInstance {
 public:
  explicit Stasher(Lines* noted) : noted_(*noted) {}
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (auto* act = message.TryAs<Act>()) return act->what(context);
    if (is_stashing_) return Stash(context);
    if (message.Is<Terminated>()) noted_.emplace_back("Terminated");
    if (message.Is<Urgent>()) noted_.emplace_back("Urgent");
    if (const auto* quiet = message.TryAs<Quiet>()) {
      noted_.push_back(std::to_string(quiet->number));
      if (quiet->number == 1 && unstashes_at_1_) UnstashAll(context);
    }
    return absl::OkStatus();
  }
  static void Unstash(ActorContext& context) {
    static_cast<Stasher&>(*context.slot().instance).is_stashing_ = false;
    UnstashAll(context);
  }
  static void UnstashAt1(ActorContext& context) {
    auto& self = static_cast<Stasher&>(*context.slot().instance);
    self.is_stashing_ = false;
    self.unstashes_at_1_ = true;
  }

 private:
  Lines& noted_;
  bool is_stashing_ = true;
  bool unstashes_at_1_ = false;
};

// SCH-4: all stashed messages come back in order, including those that pass limits.
TEST_F(Overtaking, IsNotDoneByAStash) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Lines noted;
    const ActorRef stasher =
        system().Spawn(*MakeProps<Stasher>({.mailbox = mailbox.options}, &noted), "stasher" + std::to_string(pairs_));
    Let(stasher, [this](ActorContext& context) { return context.Watch(sender_); });
    actor_ = stasher;
    SendFour([](ActorContext& context) { context.Stop(); });
    EXPECT_EQ(noted, Lines());
    Let(stasher, [](ActorContext& context) {
      Stasher::Unstash(context);
      return absl::OkStatus();
    });
    EXPECT_EQ(noted, And(mailbox.handled, "Terminated")) << mailbox.name;
  }
}

// SCH-4: the mailbox is full when the stash gives back a message that no limit refuses.
TEST_F(Overtaking, IsNotDoneToAStashedMessageThatPassesLimits) {
  for (const Mailbox& mailbox : AllMailboxes()) {
    SpawnPair(mailbox);
    Lines noted;
    const ActorRef stasher =
        system().Spawn(*MakeProps<Stasher>({.mailbox = mailbox.options}, &noted), "stasher" + std::to_string(pairs_));
    Tell(stasher, Urgent{});
    Settle();
    Let(stasher, [](ActorContext& context) {
      Stasher::UnstashAt1(context);
      return absl::OkStatus();
    });
    actor_ = stasher;
    SendFour();
    Lines expected = mailbox.handled;
    if (expected.front() == "1") expected.insert(expected.begin() + 1, "Urgent");
    EXPECT_EQ(noted, expected) << mailbox.name;
  }
}

}  // namespace
}  // namespace fraktor
