// Mailboxes with MessageOrder::kControlFirst and kPriority, run by an invoker.
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor {
namespace ordered_mailbox_test {

struct Urgent {
  int value = 0;
};

}  // namespace ordered_mailbox_test

template <>
inline constexpr bool kIsControlMessage<ordered_mailbox_test::Urgent> = true;

namespace actor_internal {
namespace {

using ordered_mailbox_test::Urgent;

class OrderedMailboxTest : public InvokerTest {
 protected:
  // Logs numbers, and urgent ones with a mark.
  ActorRef SpawnReader(const MailboxOptions& options) {
    return Spawn(
        [this](ActorContext&, Envelope& message) {
          const auto* const urgent = message.TryAs<Urgent>();
          log_.push_back(urgent != nullptr ? "!" + std::to_string(urgent->value)
                                           : std::to_string(message.As<Number>().value));
          return absl::OkStatus();
        },
        &options);
  }

  // The lowest tens digit first.
  static MailboxOptions ByTens() {
    return {.order = MessageOrder::kPriority,
            .priority = [](const Envelope& message) { return message.As<Number>().value / 10; }};
  }
};

// A65
TEST_F(OrderedMailboxTest, GivesControlMessagesFirst) {
  ActorRef actor = SpawnReader({.order = MessageOrder::kControlFirst});
  Tell(actor, Number{1});
  Tell(actor, Urgent{1});
  Tell(actor, Number{2});
  Tell(actor, Urgent{2});
  Run(actor);
  EXPECT_EQ(log_, Log({"!1", "!2", "1", "2"}));
}

// SCH-4, A65: a full mailbox has room for control messages, with each overflow policy. A flood of
// them is bounded, too.
TEST_F(OrderedMailboxTest, GivesControlMessagesRoomBeyondTheCapacity) {
  for (const OverflowStrategy overflow : {OverflowStrategy::kReject, OverflowStrategy::kDropNewest,
                                          OverflowStrategy::kDeadLetter, OverflowStrategy::kBlockProducer}) {
    const MailboxOptions options{.capacity = 2,
                                 .overflow = overflow,
                                 .reserve_for_control = 3,
                                 .push_timeout = absl::ZeroDuration(),
                                 .order = MessageOrder::kControlFirst};
    ActorRef actor = SpawnReader(options);
    for (int i = 1; i <= 9; ++i) Tell(actor, Number{i});
    for (int i = 1; i <= 100; ++i) Tell(actor, Urgent{i});
    RunAll();
    EXPECT_EQ(std::exchange(log_, {}), Log({"!1", "!2", "!3", "1", "2"})) << ToString(overflow);
  }
}

// A65: the error names the mailbox that is full, and its reserve.
TEST_F(OrderedMailboxTest, SaysHowMuchIsReservedForControlMessages) {
  ActorRef actor = SpawnReader({.capacity = 1, .reserve_for_control = 1, .order = MessageOrder::kControlFirst});
  EXPECT_TRUE(TryTell(actor, Number{1}).ok());
  EXPECT_TRUE(TryTell(actor, Urgent{2}).ok());
  const absl::Status full = TryTell(actor, Urgent{3});
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(full.message().find("is full (1 messages, and 1 more for control messages)"), std::string::npos) << full;
  RunAll();
}

// A65: also for a message that comes while others are handled that were taken out of the inbox.
TEST_F(OrderedMailboxTest, AControlMessageOvertakesWhatWasSentBefore) {
  const MailboxOptions options{.order = MessageOrder::kControlFirst};
  ActorRef actor = Spawn(
      [this](ActorContext& context, Envelope& message) {
        const auto* const urgent = message.TryAs<Urgent>();
        log_.push_back(urgent != nullptr ? "!" : std::to_string(message.As<Number>().value));
        if (log_.size() == 1) context.Tell(context.self(), Urgent{});
        return absl::OkStatus();
      },
      &options);
  for (int i = 1; i <= 3; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  Tell(actor, Urgent{});
  Run(actor);
  EXPECT_EQ(log_.size(), 5u);
  EXPECT_EQ(log_[0], "1");
  EXPECT_EQ(log_[4], "3") << "the last number is behind both";
}

// A65: equal ranks stay in the order of sending.
TEST_F(OrderedMailboxTest, GivesTheLowestRankFirstAndEqualOnesAsTheyWereSent) {
  ActorRef actor = SpawnReader(ByTens());
  for (int value : {21, 11, 22, 1, 12, 2, 23}) Tell(actor, Number{value});
  Run(actor);
  EXPECT_EQ(log_, Log({"1", "2", "11", "12", "21", "22", "23"}));
}

TEST_F(OrderedMailboxTest, KeepsItsOrderOverRunsAndWakeUps) {
  ActorRef actor = SpawnReader(ByTens());
  for (int value : {31, 21, 11}) Tell(actor, Number{value});
  EXPECT_EQ(Run(actor, 1), InvokeResult::kYielded);
  Tell(actor, Number{1});
  Tell(actor, Number{22});
  Run(actor);
  EXPECT_EQ(log_, Log({"11", "1", "21", "22", "31"}));
  Tell(actor, Number{5});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_.back(), "5");
}

// A56
TEST_F(OrderedMailboxTest, GivesSystemMessagesBeforeAll) {
  ActorRef actor = SpawnReader({.order = MessageOrder::kControlFirst});
  Tell(actor, Urgent{1});
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 7));
  Run(actor);
  EXPECT_EQ(log_, Log({"system 7", "!1"}));
}

// SCH-8
TEST_F(OrderedMailboxTest, KeepsItsMessagesWhileTheActorIsSuspended) {
  ActorRef actor = SpawnReader(ByTens());
  Tell(actor, Number{20});
  Tell(actor, Number{10});
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  Tell(actor, Number{1});
  ResumeIt(actor);
  Run(actor);
  EXPECT_EQ(log_, Log({"1", "10", "20"}));
}

// SCH-4
TEST_F(OrderedMailboxTest, MayHaveALimit) {
  MailboxOptions options = ByTens();
  options.capacity = 3;
  options.overflow = OverflowStrategy::kReject;
  ActorRef actor = SpawnReader(options);
  for (int value : {30, 20, 10}) EXPECT_TRUE(TryTell(actor, Number{value}).ok());
  EXPECT_EQ(TryTell(actor, Number{0}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Run(actor, 1), InvokeResult::kYielded);
  EXPECT_TRUE(TryTell(actor, Number{1}).ok()) << "what was handled has made room, what waits in order has not";
  EXPECT_EQ(TryTell(actor, Number{2}).code(), absl::StatusCode::kResourceExhausted);
  Run(actor);
  EXPECT_EQ(log_, Log({"10", "1", "20", "30"}));
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 0u);
}

// A58: in the order in which they would have been handled.
TEST_F(OrderedMailboxTest, WhatIsLeftAtTheEndAreDeadLettersInOrder) {
  MailboxOptions options = ByTens();
  options.capacity = 10;
  ActorRef actor = SpawnReader(options);
  for (int value : {30, 20, 10}) Tell(actor, Number{value});
  Run(actor, 1);
  StopIt(actor);
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(dead_, Dead({{20, DeadLetterReason::kStopped}, {30, DeadLetterReason::kStopped}}));
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 0u);

  ActorRef plain = SpawnLogger();
  ASSERT_EQ(plain.slot(), actor.slot());
  for (int value : {2, 1}) Tell(plain, Number{value});
  log_.clear();
  Run(plain);
  EXPECT_EQ(log_, Log({"2", "1"})) << "the next actor of the slot has no order";
}

// A65
TEST_F(OrderedMailboxTest, ARankThatThrowsGoesLast) {
  ActorRef actor = SpawnReader({.order = MessageOrder::kPriority, .priority = [](const Envelope& message) {
                                  if (message.As<Number>().value == 1) throw std::runtime_error("no rank");
                                  return message.As<Number>().value;
                                }});
  for (int value : {1, 3, 2}) Tell(actor, Number{value});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"2", "3", "1"}));
}

// A69
TEST_F(OrderedMailboxTest, WhatIsUnstashedGoesBeforeEverything) {
  EnvelopeList stashed;
  const MailboxOptions options = ByTens();
  ActorRef actor = Spawn(
      [&](ActorContext& context, Envelope& message) {
        const int value = message.As<Number>().value;
        if (value < 30 && log_.empty()) {
          stashed.PushBack(context.Stash().release());
          return absl::OkStatus();
        }
        log_.push_back(std::to_string(value));
        if (value == 30) {
          context.Tell(context.self(), Number{1});
          context.Unstash(stashed);
        }
        return absl::OkStatus();
      },
      &options);
  for (int value : {30, 20, 10}) Tell(actor, Number{value});
  Run(actor);
  EXPECT_EQ(log_, Log({"30", "10", "20", "1"}));
}

}  // namespace
}  // namespace actor_internal
}  // namespace fraktor
