// Bounded mailboxes, through real sends: from foreign threads, and from actors in their turns.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"

namespace fraktor::actor_internal {
namespace {

constexpr auto kFull = DeadLetterReason::kMailboxFull;
constexpr auto kStopped = DeadLetterReason::kStopped;
constexpr auto kLate = DeadLetterReason::kPushTimedOut;

class BackPressureTest : public InvokerTest {
 protected:
  using InvokerTest::InvokerTest;

  ActorRef SpawnBounded(size_t capacity, OverflowStrategy overflow, std::string name = {},
                        absl::Duration push_timeout = absl::Seconds(10)) {
    const MailboxOptions options{.capacity = capacity, .overflow = overflow, .push_timeout = push_timeout};
    return SpawnDoer(std::move(name), &options);
  }

  // Takes the next scheduled actor without running it.
  ReadyNode* TakeReady() {
    ReadyNode* node = nullptr;
    coordinator_.DrainReady(0, absl::MakeSpan(&node, 1));
    return node;
  }
  // Empties the mailbox of a scheduled actor, as an executor that ends does.
  void EmptyIt(ActorRef ref) {
    ASSERT_EQ(TakeReady(), ref.slot());
    DispatcherTable::Empty(*ref.slot());
  }

  static MailboxLimits& LimitsOf(ActorRef ref) { return *ref.slot()->limits.load(); }
  uint64_t ForeignDead(DeadLetterReason reason) { return mailboxes_.core().foreign_dead_letters(reason); }

  // Lets `sender` send the numbers from `first` to `last`.
  static void OrderNumbers(ActorRef sender, ActorRef target, int first, int last) {
    Order(sender, [=](ActorContext& context) {
      for (int i = first; i <= last; ++i) context.Tell(target, Number{i});
    });
  }
};

// SCH-4: DropOldest keeps the newest messages and publishes the dropped ones.
TEST_F(BackPressureTest, DropOldestKeepsTheNewest) {
  ActorRef target = SpawnBounded(3, OverflowStrategy::kDropOldest);
  ActorRef sender = SpawnDoer();
  std::vector<absl::Status> told;
  Order(sender, [&](ActorContext& context) {
    for (int i = 1; i <= 5; ++i) told.push_back(context.TryTell(target, Number{i}));
  });
  Run(sender);
  EXPECT_EQ(told, std::vector<absl::Status>(5, absl::OkStatus()));
  EXPECT_EQ(dead_, Dead({{1, kFull}, {2, kFull}}));
  EXPECT_EQ(LimitsOf(target).depth(), 3u);
  EXPECT_EQ(Run(target), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"3", "4", "5"}));
  EXPECT_EQ(LimitsOf(target).counters().dropped_oldest, 2u);
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
  EXPECT_TRUE(target.slot()->mailbox.inbox.IsIdle());
}

// SCH-4
TEST_F(BackPressureTest, DropOldestGoesOnAcrossRuns) {
  ActorRef target = SpawnBounded(3, OverflowStrategy::kDropOldest);
  for (int i = 1; i <= 3; ++i) Tell(target, Number{i});
  EXPECT_EQ(Run(target, 1), InvokeResult::kYielded);
  for (int i = 4; i <= 5; ++i) EXPECT_TRUE(TryTell(target, Number{i}).ok());
  EXPECT_EQ(ForeignDead(kFull), 1u) << "2 was the oldest then";
  Run(target);
  EXPECT_EQ(log_, Log({"1", "3", "4", "5"}));
  Tell(target, Number{6});
  Run(target);
  EXPECT_EQ(log_.back(), "6") << "the bell rings again after it had ended";
}

// A58: the kept messages become dead letters, but their mailbox bell does not.
TEST_F(BackPressureTest, DropOldestLeavesItsMessagesOnlyWhenTheActorStops) {
  ActorRef target = SpawnBounded(3, OverflowStrategy::kDropOldest);
  for (int i = 1; i <= 3; ++i) Tell(target, Number{i});
  Run(target, 1);
  StopIt(target);
  EXPECT_EQ(Run(target), InvokeResult::kStopped);
  EXPECT_EQ(dead_, Dead({{2, kStopped}, {3, kStopped}}));
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
}

TEST_F(BackPressureTest, ALateBellRingsForNobody) {
  ActorRef first = SpawnBounded(3, OverflowStrategy::kDropOldest);
  // Pushes a mailbox bell after its actor has ended and another actor has taken the slot.
  Tell(first, Number{1});
  const MailLists bell = first.slot()->mailbox.Hold();
  ASSERT_NE(bell.user.first, nullptr);
  StopIt(first);
  Run(first);
  EXPECT_EQ(dead_, Dead({{1, kStopped}}));
  ActorRef second = SpawnDoer();
  ASSERT_EQ(second.slot(), first.slot());
  ASSERT_TRUE(second.slot()->mailbox.Post(bell.user.first));
  DispatcherTable::RegisterOrEmpty(*second.slot());
  EXPECT_EQ(Run(second), InvokeResult::kCompleted);
  EXPECT_EQ(dead_.size(), 1u);
}

// SCH-4: DropNewest drops the arriving message and reports OK.
TEST_F(BackPressureTest, DropNewestKeepsTheOldest) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kDropNewest);
  ActorRef sender = SpawnDoer();
  std::vector<absl::Status> told;
  Order(sender, [&](ActorContext& context) {
    for (int i = 1; i <= 4; ++i) told.push_back(context.TryTell(target, Number{i}));
  });
  Run(sender);
  EXPECT_EQ(told, std::vector<absl::Status>(4, absl::OkStatus()));
  EXPECT_EQ(dead_, Dead({{3, kFull}, {4, kFull}}));
  EXPECT_TRUE(TryTell(target, Number{5}).ok());
  EXPECT_EQ(ForeignDead(kFull), 1u);
  Run(target);
  EXPECT_EQ(log_, Log({"1", "2"}));
  EXPECT_EQ(LimitsOf(target).counters().dropped_newest, 3u);
}

// SCH-4: Reject reports ResourceExhausted to TryTell; a plain Tell makes a dead letter.
TEST_F(BackPressureTest, RejectTellsTheSender) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kReject);
  ActorRef sender = SpawnDoer();
  Order(sender, [&](ActorContext& context) {
    EXPECT_TRUE(context.TryTell(target, Number{1}).ok());
    EXPECT_TRUE(context.TryTell(target, Number{2}).ok());
    const absl::Status full = context.TryTell(target, Number{3});
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(full.message().find("Number"), std::string::npos) << full;
    EXPECT_NE(full.message().find("capacity"), std::string::npos) << full;
    EXPECT_NE(full.message().find("is full (2 messages)"), std::string::npos) << full;
    context.Tell(target, Number{4});
  });
  Run(sender);
  EXPECT_EQ(dead_, Dead({{3, kFull}, {4, kFull}}));
  EXPECT_EQ(TryTell(target, Number{5}).code(), absl::StatusCode::kResourceExhausted);
  Tell(target, Number{6});
  EXPECT_EQ(ForeignDead(kFull), 2u);
  Run(target, 1);
  EXPECT_TRUE(TryTell(target, Number{7}).ok()) << "one has left";
  Run(target);
  EXPECT_EQ(log_, Log({"1", "2", "7"}));
  EXPECT_EQ(LimitsOf(target).counters().rejected, 4u);
}

// SCH-4: DeadLetter reports OK and publishes.
TEST_F(BackPressureTest, DeadLetterReportsOk) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kDeadLetter);
  ActorRef sender = SpawnDoer();
  Order(sender, [&](ActorContext& context) {
    for (int i = 1; i <= 2; ++i) EXPECT_TRUE(context.TryTell(target, Number{i}).ok());
    context.Tell(target, Number{3});
  });
  Run(sender);
  EXPECT_EQ(dead_, Dead({{2, kFull}, {3, kFull}}));
  EXPECT_TRUE(TryTell(target, Number{4}).ok());
  EXPECT_EQ(ForeignDead(kFull), 1u);
  Run(target);
  EXPECT_EQ(log_, Log({"1"}));
  EXPECT_EQ(LimitsOf(target).counters().dead_lettered, 3u);
}

// SCH-4: user messages cannot use the reserve, and no limit applies to system messages.
TEST_F(BackPressureTest, AReserveIsKeptFromUserMessages) {
  const MailboxOptions options{.capacity = 5, .overflow = OverflowStrategy::kReject, .reserve_for_system = 3};
  ActorRef target = SpawnDoer({}, &options);
  EXPECT_TRUE(TryTell(target, Number{1}).ok());
  EXPECT_TRUE(TryTell(target, Number{2}).ok());
  EXPECT_EQ(TryTell(target, Number{3}).code(), absl::StatusCode::kResourceExhausted);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(TellSystem(target, MakeEnvelope<Mark>(ActorRef(), i)), nullptr);
  Run(target);
  EXPECT_EQ(log_.size(), 22u);
  EXPECT_EQ(log_[20], "1");
}

// SCH-3: an ask that times out tells the asker that its target is suspended, and what it waits for.
TEST_F(BackPressureTest, TheErrorOfAnAskTellsThatItsTargetWaitsForRoom) {
  ActorRef full = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  TellSystem(full, MakeEnvelope<Suspend>(ActorRef()));
  ActorRef sender = SpawnDoer();
  OrderNumbers(sender, full, 1, 2);
  ErrorOfAsk error(absl::Seconds(1));
  ActorRef asker = SpawnDoer();
  Order(asker, [&](ActorContext&) { return SendAsk(worker_, sender, MakeEnvelope<Number>(ActorRef(), 3), error); });
  RunAll();
  Advance(absl::Seconds(1));
  EXPECT_NE(error.text.find("1 message waits in its mailbox, and it waits for room in a mailbox"), std::string::npos)
      << error.text;
}

// SCH-4: the sender is suspended after its handler, and its messages wait in order. It resumes when
// the mailbox is half empty.
TEST_F(BackPressureTest, BlockProducerSuspendsTheSenderUntilThereIsRoom) {
  ActorRef target = SpawnBounded(4, OverflowStrategy::kBlockProducer);
  const uint64_t held_before = LimitsOf(target).counters().held;
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 6);
  Tell(sender, Number{100});
  EXPECT_EQ(Run(sender), InvokeResult::kSuspended);
  EXPECT_NE(sender.slot()->gate & static_cast<uint8_t>(Gate::kBackpressure), 0);
  EXPECT_TRUE(log_.empty()) << "the next message of the sender waits";
  EXPECT_EQ(LimitsOf(target).depth(), 4u);

  EXPECT_EQ(Run(target, 1), InvokeResult::kYielded);
  EXPECT_TRUE(sender.slot()->mailbox.inbox.IsParked()) << "3 of 4 are more than half";
  EXPECT_EQ(Run(target, 1), InvokeResult::kYielded);
  EXPECT_FALSE(sender.slot()->mailbox.inbox.IsParked());
  EXPECT_EQ(LimitsOf(target).depth(), 4u) << "both were let in";
  RunAll();
  // The run queue decides which of the two actors runs first.
  Log numbers;
  for (const std::string& line : log_) {
    if (line != "sender 100") numbers.push_back(line);
  }
  EXPECT_EQ(numbers, Log({"1", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(log_.size(), 7u);
  EXPECT_TRUE(dead_.empty());
  Advance(absl::Hours(1));
  EXPECT_TRUE(dead_.empty()) << "the push timeout is off";
  EXPECT_EQ(LimitsOf(target).counters().held, held_before + 2);
}

// SCH-4: no message overtakes an earlier one of its sender, even if there is room in between.
TEST_F(BackPressureTest, BlockProducerKeepsTheOrderOfASender) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer();
  int next = 1;
  for (int round = 0; round < 20; ++round) {
    OrderNumbers(sender, target, next, next + 3);
    next += 4;
  }
  RunAll();
  ASSERT_EQ(log_.size(), 80u);
  for (int i = 0; i < 80; ++i) EXPECT_EQ(log_[static_cast<size_t>(i)], std::to_string(i + 1));
  EXPECT_TRUE(dead_.empty());
}

// SCH-4: after the push timeout the messages become dead letters, and the sender resumes.
TEST_F(BackPressureTest, BlockProducerGivesUpAfterThePushTimeout) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer, {}, absl::Seconds(3));
  TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  Run(target);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 4);
  Tell(sender, Number{100});
  Run(sender);
  Advance(absl::Seconds(3) - absl::Nanoseconds(1));
  EXPECT_TRUE(dead_.empty());
  Advance(absl::Nanoseconds(1));
  EXPECT_EQ(dead_, Dead({{3, kLate}, {4, kLate}}));
  EXPECT_EQ(log_, Log({"sender 100"}));
  ResumeIt(target);
  RunAll();
  EXPECT_EQ(log_, Log({"sender 100", "1", "2"}));
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
  EXPECT_EQ(LimitsOf(target).counters().timed_out, 2u);
}

// SCH-4: with a push timeout of zero the sender never waits.
TEST_F(BackPressureTest, BlockProducerWithoutATimeoutDoesNotWait) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer, {}, absl::ZeroDuration());
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 2);
  EXPECT_EQ(Run(sender), InvokeResult::kCompleted);
  EXPECT_EQ(dead_, Dead({{2, kLate}}));
}

// SCH-4: with an infinite push timeout the sender waits for ever.
TEST_F(BackPressureTest, BlockProducerMayWaitForEver) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer, {}, absl::InfiniteDuration());
  TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  Run(target);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 2);
  Run(sender);
  Advance(absl::Hours(24 * 365));
  EXPECT_TRUE(dead_.empty());
  ResumeIt(target);
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2"}));
  EXPECT_TRUE(sender.slot()->mailbox.inbox.IsIdle());
}

// SCH-4: the sender resumes when the target stops.
TEST_F(BackPressureTest, ATargetThatStopsLetsTheSenderGoOn) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 4);
  Tell(sender, Number{100});
  Run(sender);
  StopIt(target);
  EXPECT_EQ(Run(target), InvokeResult::kStopped);
  EXPECT_EQ(dead_, Dead({{3, kStopped}, {4, kStopped}, {1, kStopped}, {2, kStopped}}));
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
  log_.clear();
  EXPECT_EQ(Run(sender), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"sender 100"}));
}

// SCH-4: an actor never waits for room in its own mailbox, since it would wait for itself.
TEST_F(BackPressureTest, AnActorIsNotBlockedByItself) {
  ActorRef actor = SpawnBounded(2, OverflowStrategy::kBlockProducer);
  Order(actor, [](ActorContext& context) {
    for (int i = 1; i <= 10; ++i) context.Tell(context.self(), Number{i});
  });
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_.size(), 10u);
  EXPECT_EQ(LimitsOf(actor).depth(), 0u);
}

// SCH-4: two actors that send to each other's full mailboxes resume after the push timeout.
TEST_F(BackPressureTest, TwoThatFillEachOtherGoOn) {
  ActorRef a = SpawnBounded(1, OverflowStrategy::kBlockProducer, "a");
  ActorRef b = SpawnBounded(1, OverflowStrategy::kBlockProducer, "b");
  OrderNumbers(a, b, 1, 2);
  OrderNumbers(b, a, 1, 2);
  RunAll();
  Advance(absl::Seconds(10));
  RunAll();
  EXPECT_TRUE(a.slot()->mailbox.inbox.IsIdle());
  EXPECT_TRUE(b.slot()->mailbox.inbox.IsIdle());
  EXPECT_EQ(log_.size() + dead_.size(), 4u) << "each message was handled or published";
  EXPECT_EQ(LimitsOf(a).depth(), 0u);
  EXPECT_EQ(LimitsOf(b).depth(), 0u);
}

// SCH-4: as many messages as the capacity may wait for room; one more is rejected.
TEST_F(BackPressureTest, AHandlerThatSendsOnAndOnIsRejected) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer();
  Order(sender, [&](ActorContext& context) {
    for (int i = 1; i <= 4; ++i) EXPECT_TRUE(context.TryTell(target, Number{i}).ok());
    EXPECT_EQ(context.TryTell(target, Number{5}).code(), absl::StatusCode::kResourceExhausted);
    context.Tell(target, Number{6});
  });
  Run(sender);
  EXPECT_EQ(dead_, Dead({{5, kFull}, {6, kFull}}));
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2", "3", "4"}));
}

// SCH-4: a sender that waits for two mailboxes resumes when both have room.
TEST_F(BackPressureTest, ASenderMayWaitAtTwoMailboxes) {
  ActorRef first = SpawnBounded(1, OverflowStrategy::kBlockProducer, "first ");
  ActorRef second = SpawnBounded(1, OverflowStrategy::kBlockProducer, "second ");
  for (ActorRef target : {first, second}) TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  RunAll();
  ActorRef sender = SpawnDoer("sender ");
  Order(sender, [=](ActorContext& context) {
    for (ActorRef target : {first, second}) {
      context.Tell(target, Number{1});
      context.Tell(target, Number{2});
    }
  });
  Tell(sender, Number{100});
  RunAll();
  ResumeIt(first);
  RunAll();
  EXPECT_EQ(log_, Log({"first 1", "first 2"}));
  EXPECT_TRUE(sender.slot()->mailbox.inbox.IsParked());
  ResumeIt(second);
  RunAll();
  EXPECT_EQ(log_.size(), 5u);
  EXPECT_TRUE(sender.slot()->mailbox.inbox.IsIdle());
}

// SCH-4: the messages of a sender that ends still arrive.
TEST_F(BackPressureTest, ASenderMayStopWhileItWaits) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer();
  OrderNumbers(sender, target, 1, 2);
  Run(sender);
  StopIt(sender);
  Run(target, 1);
  RunAll();
  EXPECT_EQ(log_, Log({"1", "ending", "ended", "2"}));
  EXPECT_TRUE(dead_.empty());
  Advance(absl::Seconds(20));
  EXPECT_TRUE(dead_.empty());
}

TEST_F(BackPressureTest, ASenderThatStopsLeavesNoTimerForTheNextActorOfItsSlot) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  Run(target);
  ActorRef sender = SpawnDoer();
  OrderNumbers(sender, target, 1, 2);
  Run(sender);
  StopIt(sender);
  RunAll();
  ActorRef heir = SpawnDoer("heir ");
  ASSERT_EQ(heir.slot(), sender.slot());
  Advance(absl::Seconds(5));
  Order(heir, [=](ActorContext& context) {
    EXPECT_EQ(context.TryTell(target, Number{3}).code(), absl::StatusCode::kResourceExhausted)
        << "the line is full of what its predecessor has sent";
  });
  RunAll();
  Advance(absl::Seconds(5));
  EXPECT_EQ(dead_, Dead({{3, kFull}})) << "the time of its predecessor is nothing to it";
  ResumeIt(target);
  RunAll();
  EXPECT_EQ(log_.back(), "2");
}

// The timers of a toolbox are limited: a wait that ends, or a sender that ends, leaves none behind.
TEST_F(BackPressureTest, AWaitThatIsOverLeavesNoTimer) {
  const uint64_t before = toolbox_->steps();
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef lucky = SpawnDoer();
  OrderNumbers(lucky, target, 1, 2);
  RunAll();
  ActorRef stopped = SpawnDoer();
  TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  RunAll();
  OrderNumbers(stopped, target, 3, 4);
  RunAll();
  StopIt(stopped);
  RunAll();
  Advance(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps(), before);
}

// The push timeout of one wait does not end the next wait for the same mailbox.
TEST_F(BackPressureTest, ALateTimerDoesNotEndALaterWait) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer();
  OrderNumbers(sender, target, 1, 2);
  RunAll();
  TellSystem(target, MakeEnvelope<Suspend>(ActorRef()));
  RunAll();
  OrderNumbers(sender, target, 3, 4);
  RunAll();
  TellSystem(sender, MakeEnvelope<RoomTimedOut>(ActorRef(), target.slot(), uint64_t{0}));
  RunAll();
  EXPECT_TRUE(dead_.empty());
  EXPECT_TRUE(sender.slot()->mailbox.inbox.IsParked());
  TellSystem(sender, MakeEnvelope<RoomTimedOut>(ActorRef(), target.slot(), uint64_t{1}));
  RunAll();
  EXPECT_EQ(dead_, Dead({{4, kLate}}));
}

// SCH-7 and SCH-4: an actor that fails while it waits for room stays suspended until both are over.
TEST_F(BackPressureTest, ASenderThatFailsToo) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer("sender ");
  Order(sender, [=](ActorContext& context) {
    context.Tell(target, Number{1});
    context.Tell(target, Number{2});
    return absl::AbortedError("as well");
  });
  Tell(sender, Number{100});
  EXPECT_EQ(Run(sender), InvokeResult::kFailed);
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2"})) << "there is room, but no verdict";
  ResumeIt(sender);
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2", "sender 100"}));
}

// SCH-8
TEST_F(BackPressureTest, ABlockedSenderHandlesSystemMessages) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 2);
  Run(sender);
  TellSystem(sender, MakeEnvelope<Mark>(ActorRef(), 7));
  RunAll();
  EXPECT_EQ(log_[2], "system 7");
}

// SCH-4: a message that an actor sends in its last hook arrives.
TEST_F(BackPressureTest, AnActorThatEndsMaySendToAFullMailbox) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer();
  on_ending_ = [=](ActorContext& context) {
    if (context.self() != sender) return;
    context.Tell(target, Number{1});
    context.Tell(target, Number{2});
  };
  StopIt(sender);
  EXPECT_EQ(Run(sender), InvokeResult::kStopped);
  log_.clear();
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2"}));
  ActorRef heir = SpawnDoer();
  ASSERT_EQ(heir.slot(), sender.slot());
  Tell(heir, Number{3});
  EXPECT_EQ(Run(heir), InvokeResult::kCompleted);
}

// SCH-4: without worker threads a caller does not wait, since no thread would make room.
TEST_F(BackPressureTest, AForeignThreadNeverWaitsWhereNothingRunsMeanwhile) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer);
  Tell(target, Number{1});
  const absl::Status late = TryTell(target, Number{2});
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << "it is a dead letter, and that is known";
  EXPECT_NE(late.message().find("Number within MailboxOptions.push_timeout"), std::string::npos) << late;
  EXPECT_EQ(ForeignDead(kLate), 1u);
  Run(target);
  EXPECT_EQ(log_, Log({"1"}));
}

// SCH-5: the count belongs to the slot. A counted message that arrives after its actor has ended is
// uncounted again.
TEST_F(BackPressureTest, LateMessagesDoNotUseUpTheRoomOfTheNextActor) {
  ActorRef first = SpawnBounded(2, OverflowStrategy::kReject);
  const auto late = [&](int value) {
    // The limits count the message in time, and it is pushed too late.
    EnvelopePtr envelope = MakeEnvelope<Number>(ActorRef(), value);
    envelope->set_target_word(first.word());
    EXPECT_EQ(LimitsOf(first).Admit(envelope.get(), ActorRef(), Producer::kForeignThread).kind, AdmissionKind::kPush);
    envelope->set_target_word(first.word() | kCountedMark);
    return envelope;
  };
  EnvelopePtr to_bounded = late(1);
  EnvelopePtr to_unbounded = late(2);
  StopIt(first);
  Run(first);
  EXPECT_EQ(LimitsOf(first).depth(), 2u) << "they are on their way";

  ActorRef second = SpawnBounded(3, OverflowStrategy::kReject);
  ASSERT_EQ(second.slot(), first.slot());
  EXPECT_TRUE(TryTell(second, Number{3}).ok());
  EXPECT_FALSE(TryTell(second, Number{4}).ok());
  second.slot()->mailbox.Post(to_bounded.release());
  Run(second);
  EXPECT_EQ(log_.back(), "3");
  EXPECT_EQ(dead_, Dead({{1, kStopped}}));
  EXPECT_EQ(LimitsOf(second).depth(), 1u);
  StopIt(second);
  Run(second);

  ActorRef third = SpawnDoer();
  ASSERT_EQ(third.slot(), first.slot());
  Tell(third, Number{5});
  third.slot()->mailbox.Post(to_unbounded.release());
  Run(third);
  EXPECT_EQ(log_.back(), "5");
  EXPECT_EQ(dead_, Dead({{1, kStopped}, {2, kStopped}}));
  EXPECT_EQ(LimitsOf(third).depth(), 0u);
}

// A subscriber to dead letters gets them at once, before the worker does anything else.
TEST_F(BackPressureTest, WhoIsToldOfADeadLetterIsMadeReady) {
  ActorRef listener = SpawnDoer("listener ");
  ActorRef first = SpawnDoer();
  StopIt(first);
  Run(first);
  ActorRef second = SpawnDoer();
  ASSERT_EQ(second.slot(), first.slot());
  on_dead_letter_ = [=](const Envelope& letter) { Tell(listener, Number{letter.As<Number>().value}); };
  EnvelopePtr late = MakeEnvelope<Number>(ActorRef(), 9);
  late->set_target_word(first.word());
  ASSERT_TRUE(second.slot()->mailbox.Post(late.release()));
  DispatcherTable::RegisterOrEmpty(*second.slot());
  EXPECT_EQ(Run(second), InvokeResult::kCompleted);
  on_dead_letter_ = nullptr;
  ASSERT_TRUE(AnythingReady());
  Run(listener);
  EXPECT_EQ(log_.back(), "listener 9");
}

// SCH-4: senders resume also if a mailbox is emptied without handling its messages, because the
// workers of the target have stopped.
TEST_F(BackPressureTest, ASenderGoesOnWhenTheMailboxIsEmptiedUnhandled) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, target, 1, 4);
  Tell(sender, Number{100});
  Run(sender);
  EXPECT_EQ(log_, Log());
  EmptyIt(target);
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
  ASSERT_TRUE(AnythingReady());
  EXPECT_EQ(Run(sender), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"sender 100"}));
}

// SCH-4: when the system of a target ends, a waiting sender of another system resumes.
TEST_F(BackPressureTest, ASenderGoesOnWhenTheSystemOfTheTargetEnds) {
  MailboxRegistry other(/*threaded=*/false);
  Doer instance(log_);
  const MailboxOptions options{
      .capacity = 1, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::InfiniteDuration()};
  ActorSlot* const slot = other.Register({.instance = &instance, .dispatcher = number_, .options = &options}).value();
  MailboxRegistry::LetGo(*slot);
  ActorRef sender = SpawnDoer("sender ");
  OrderNumbers(sender, slot->ref(), 1, 2);
  Tell(sender, Number{100});
  Run(sender);
  EXPECT_EQ(log_, Log());
  ASSERT_EQ(TakeReady(), slot);
  MailboxRegistry::Discard(*slot);
  ASSERT_TRUE(AnythingReady());
  EXPECT_EQ(Run(sender), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"sender 100"}));
}

class ThreadedBackPressureTest : public BackPressureTest {
 protected:
  ThreadedBackPressureTest() : BackPressureTest(InvokerTestOptions{.threaded = true}) {}
};

// SCH-4: a foreign thread waits in line, and its message keeps its place.
TEST_F(ThreadedBackPressureTest, AForeignThreadWaitsForRoom) {
  ActorRef target = SpawnBounded(2, OverflowStrategy::kBlockProducer, {}, absl::InfiniteDuration());
  Tell(target, Number{1});
  Tell(target, Number{2});
  // The counters belong to the slot: earlier actors may have changed them.
  const uint64_t blocked_before = LimitsOf(target).counters().blocked;
  std::thread foreign([=] {
    for (int i = 3; i <= 6; ++i) EXPECT_TRUE(TryTell(target, Number{i}).ok());
  });
  while (LimitsOf(target).counters().blocked == blocked_before) std::this_thread::yield();
  EXPECT_TRUE(log_.empty());
  while (log_.size() < 6) {
    RunAll();
    std::this_thread::yield();
  }
  foreign.join();
  EXPECT_EQ(log_, Log({"1", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(LimitsOf(target).depth(), 0u);
}

TEST_F(ThreadedBackPressureTest, AForeignThreadIsLetGoByATargetThatStops) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer, {}, absl::InfiniteDuration());
  Tell(target, Number{1});
  // The counters belong to the slot: earlier actors may have changed them.
  const uint64_t blocked_before = LimitsOf(target).counters().blocked;
  std::thread foreign([=] { EXPECT_TRUE(TryTell(target, Number{2}).ok()); });
  while (LimitsOf(target).counters().blocked == blocked_before) std::this_thread::yield();
  StopIt(target);
  RunAll();
  foreign.join();
  EXPECT_EQ(ForeignDead(kStopped), 1u);
}

TEST_F(ThreadedBackPressureTest, AForeignThreadIsLetInWhenTheMailboxIsEmptiedUnhandled) {
  ActorRef target = SpawnBounded(1, OverflowStrategy::kBlockProducer, {}, absl::Seconds(30));
  Tell(target, Number{1});
  absl::Status sent;
  // The counters belong to the slot: earlier actors may have changed them.
  const uint64_t blocked_before = LimitsOf(target).counters().blocked;
  std::thread foreign([&] { sent = TryTell(target, Number{2}); });
  while (LimitsOf(target).counters().blocked == blocked_before) std::this_thread::yield();
  const uint64_t late_before = DispatcherTable::LateDeadLetters();
  EmptyIt(target);
  foreign.join();
  EXPECT_TRUE(sent.ok()) << sent;
  RunAll();
  // The second message arrives after the mailbox is emptied, or before that and is emptied too.
  if (DispatcherTable::LateDeadLetters() == late_before + 2) {
    EXPECT_EQ(log_, Log());
  } else {
    EXPECT_EQ(log_, Log({"2"}));
  }
}

std::atomic<uint32_t> every_message{1};

class MeasuredBackPressureTest : public BackPressureTest {
 protected:
  MeasuredBackPressureTest() : BackPressureTest(InvokerTestOptions{.metrics = &Metrics()}) {}
  static WorkerMetrics& Metrics() {
    static WorkerMetrics& metrics = *new WorkerMetrics(every_message, 8);
    return metrics;
  }

  // Counts messages of actors. These metrics do not count those of foreign threads.
  void ExpectBalanced(OverflowStrategy overflow) {
    const uint64_t enqueued = Metrics().enqueued(0);
    const uint64_t handled = Metrics().handled(0);
    ActorRef target = SpawnBounded(4, overflow);
    ActorRef sender = SpawnDoer();
    OrderNumbers(sender, target, 1, 7);
    Run(sender);
    RunAll();
    // A foreign thread has sent the order to the sender.
    EXPECT_EQ(Metrics().enqueued(0) - enqueued + 1, Metrics().handled(0) - handled) << ToString(overflow);
  }
};

// SCH-11: the depth of mailboxes is the number of enqueued messages minus that of handled ones.
TEST_F(MeasuredBackPressureTest, WhatGoesInComesOut) {
  for (const OverflowStrategy overflow :
       {OverflowStrategy::kReject, OverflowStrategy::kDropNewest, OverflowStrategy::kDeadLetter,
        OverflowStrategy::kBlockProducer, OverflowStrategy::kDropOldest}) {
    ExpectBalanced(overflow);
  }
}

// SCH-11: a message without a trace is handled on the path that times sampled messages.
TEST_F(MeasuredBackPressureTest, UntimedMessagesToABoundedMailboxAreHandled) {
  ActorRef target = SpawnBounded(4, OverflowStrategy::kReject);
  Tell(target, Number{1});
  Run(target);
  EXPECT_EQ(log_, Log({"1"}));
}

}  // namespace
}  // namespace fraktor::actor_internal
