#include "fraktor/actor/pattern/stash.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

using pattern_internal::Do;
using pattern_internal::HoldUp;
using pattern_internal::PatternTest;
using pattern_internal::Script;
using pattern_internal::WaitingHandler;

namespace {

struct Item {
  int number;
};
struct Open {};
struct Gone {};  // Instead of Terminated.

class PatternStashTest : public PatternTest {
 protected:
  // Stashes everything until it gets Open.
  Script Stashing() {
    return {.receive = [this](ActorContext& context, Envelope& message) -> absl::Status {
      if (message.Is<Open>()) {
        open_ = true;
        UnstashAll(context);
        return absl::OkStatus();
      }
      if (!open_) return Stash(context);
      if (const auto* item = message.TryAs<Item>()) {
        log_.push_back(absl::StrCat(item->number));
      } else {
        log_.push_back(message.Is<Terminated>() ? "terminated" : "gone");
      }
      return absl::OkStatus();
    }};
  }
  void TellItems(ActorRef actor, std::vector<int> numbers) {
    for (const int number : numbers) Tell(actor, Item{number});
  }

  bool open_ = false;
};

// A69
TEST_F(PatternStashTest, BringsBackAllInOrderBeforeOthers) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2, 3});
  Tell(actor, Open{});
  TellItems(actor, {4, 5});
  Settle();
  EXPECT_EQ(Take(), Log({"1", "2", "3", "4", "5"}));
}

// A64: every kind of mailbox takes messages back at its front.
TEST_F(PatternStashTest, WorksWithEveryMailbox) {
  const std::vector<MailboxOptions> all{
      {.capacity = 10, .overflow = OverflowStrategy::kDropOldest},
      {.capacity = 10, .overflow = OverflowStrategy::kDropNewest},
      {.capacity = 10, .overflow = OverflowStrategy::kBlockProducer},
      {.capacity = 10, .overflow = OverflowStrategy::kReject},
      {.capacity = 10, .overflow = OverflowStrategy::kDeadLetter},
      {.order = MessageOrder::kControlFirst},
      {.order = MessageOrder::kPriority, .priority = [](const Envelope&) { return 1; }},
      {.capacity = 10, .overflow = OverflowStrategy::kReject, .order = MessageOrder::kControlFirst}};
  for (const MailboxOptions& options : all) {
    open_ = false;
    const ActorRef actor = Spawn(Stashing(), {.mailbox = options});
    TellItems(actor, {1, 2});
    Tell(actor, Open{});
    TellItems(actor, {3});
    Settle();
    EXPECT_EQ(Take(), Log({"1", "2", "3"})) << ToString(options.overflow) << " " << ToString(options.order);
  }
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

TEST_F(PatternStashTest, BringsBackOneAtATime) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2, 3});
  Settle();
  In(actor, [this](ActorContext& context) {
    EXPECT_EQ(StashSize(context), 3u);
    open_ = true;
    EXPECT_TRUE(UnstashOne(context));
    EXPECT_EQ(StashSize(context), 2u);
  });
  EXPECT_EQ(Take(), Log({"1"}));
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(UnstashOne(context));
    EXPECT_TRUE(UnstashOne(context));
    EXPECT_FALSE(UnstashOne(context));
  });
  EXPECT_EQ(Take(), Log({"3", "2"})) << "each goes before all others";
}

// A message may be stashed again, and keeps its sender.
TEST_F(PatternStashTest, KeepsTheSender) {
  int times = 0;
  const ActorRef actor = Spawn({.receive = [&](ActorContext& context, Envelope& message) -> absl::Status {
    if (message.Is<Open>()) {
      UnstashAll(context);
      return absl::OkStatus();
    }
    if (++times < 3) return Stash(context);
    context.Reply(Item{message.As<Item>().number + 1});
    return absl::OkStatus();
  }});
  const auto answer = system_->Ask<Item>(actor, Item{1}, absl::Seconds(10));
  Settle();
  Tell(actor, Open{});
  Settle();
  EXPECT_FALSE(answer.IsReady());
  Tell(actor, Open{});
  Settle();
  EXPECT_TRUE(answer.IsReady());
  EXPECT_EQ(times, 3);
}

// A71: the sender of a message without room is told, too.
TEST_F(PatternStashTest, OverflowsBeyondItsCapacity) {
  Script script = Stashing();
  absl::Status overflow;
  script.receive = [&, receive = script.receive](ActorContext& context, Envelope& message) -> absl::Status {
    overflow = receive(context, message);
    return absl::OkStatus();
  };
  const ActorRef actor = Spawn(std::move(script));
  In(actor, [](ActorContext& context) {
    EXPECT_FALSE(StashIsFull(context));
    SetStashCapacity(context, 2);
  });
  TellItems(actor, {1, 2});
  In(actor, [](ActorContext& context) { EXPECT_TRUE(StashIsFull(context)); });
  EXPECT_TRUE(overflow.ok());
  const absl::StatusOr<Item> answer = system_->AskAndWait<Item>(actor, Item{3}, absl::Seconds(10));
  EXPECT_NE(answer.status().message().find("its stash was full; unstash earlier there, or raise "),
            absl::string_view::npos)
      << answer.status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(overflow), ActorErrorKind::kStashOverflow);
  EXPECT_EQ(overflow.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(overflow.message().find(" has no room to stash "), absl::string_view::npos) << overflow;
  EXPECT_NE(overflow.message().find(": 2 messages are there; unstash earlier"), absl::string_view::npos) << overflow;
  EXPECT_EQ(dead_letters(DeadLetterReason::kStashFull), 1u);
  Tell(actor, Open{});
  Settle();
  EXPECT_EQ(Take(), Log({"1", "2"}));
}

// A71: as the result of a handler it is a failure of the actor.
TEST_F(PatternStashTest, AnOverflowThatIsReturnedFailsTheActor) {
  Script script = Stashing();
  script.pre_restart = [this](ActorContext&, Envelope*) { log_.push_back("restart"); };
  const ActorRef actor = Spawn(std::move(script));
  In(actor, [](ActorContext& context) { SetStashCapacity(context, 1); });
  open_ = false;
  TellItems(actor, {1, 2});
  Settle();
  EXPECT_EQ(Take(), Log({"restart"}));
}

// A71
TEST_F(PatternStashTest, WhatIsLeftWhenTheActorEndsIsDeadLetters) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2, 3});
  In(actor, [](ActorContext& context) { context.Stop(); });
  EXPECT_FALSE(IsAlive(actor));
  EXPECT_EQ(dead_letters(DeadLetterReason::kStopped), 3u);
}

// A72: for a mailbox that rejects messages. One that blocks its senders accepts messages of the
// actor to itself, and one that drops the oldest does not count messages that come back.
TEST_F(PatternStashTest, HasNoRoomInAMailboxThatIsFullMeanwhile) {
  struct Case {
    OverflowStrategy overflow;
    Log received;
    uint64_t lost;
  };
  for (const Case& each :
       {Case{OverflowStrategy::kReject, {"1", "8", "9"}, 2}, Case{OverflowStrategy::kDropNewest, {"1", "8", "9"}, 2},
        Case{OverflowStrategy::kDeadLetter, {"1", "8", "9"}, 2},
        Case{OverflowStrategy::kBlockProducer, {"1", "2", "3", "8", "9"}, 0},
        Case{OverflowStrategy::kDropOldest, {"1", "2", "3", "8", "9"}, 0}}) {
    open_ = false;
    const ActorRef actor = Spawn(Stashing(), {.mailbox = {.capacity = 3, .overflow = each.overflow}});
    const uint64_t before = dead_letters(DeadLetterReason::kMailboxFull);
    TellItems(actor, {1, 2, 3});
    Settle();
    Tell(actor, Open{});
    TellItems(actor, {8, 9});
    Settle();
    EXPECT_EQ(Take(), each.received) << ToString(each.overflow);
    EXPECT_EQ(dead_letters(DeadLetterReason::kMailboxFull) - before, each.lost) << ToString(each.overflow);
    // The messages that came back have left again: there is room for as many as before.
    TellItems(actor, {4, 5, 6});
    Settle();
    EXPECT_EQ(Take(), Log({"4", "5", "6"})) << ToString(each.overflow);
  }
}

// A73
TEST_F(PatternStashTest, ARestartBringsBackWhatWasPutAside) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2});
  Settle();
  Tell(actor, Do{[this](ActorContext&) {
         open_ = true;
         return absl::InternalError("as told");
       }});
  TellItems(actor, {3});
  Settle();
  EXPECT_EQ(Take(), Log({"1", "2", "3"}));
  In(actor, [](ActorContext& context) { EXPECT_EQ(StashSize(context), 0u); });
}

// A73, A49: also through a restart.
TEST_F(PatternStashTest, ATerminatedThatWasPutAsideIsReceivedAgain) {
  const ActorRef actor = Spawn(Stashing());
  const ActorRef first = Spawn({});
  const ActorRef second = Spawn({});
  In(actor, [&](ActorContext& context) {
    EXPECT_TRUE(context.Watch(first).ok());
    return context.WatchWith(second, Gone{});
  });
  system_->Stop(first);
  Settle();
  system_->Stop(second);
  Settle();
  In(actor, [this](ActorContext& context) {
    EXPECT_EQ(StashSize(context), 2u);
    open_ = true;
    return absl::InternalError("as told");
  });
  EXPECT_EQ(Take(), Log({"terminated", "gone"}));
}

TEST_F(PatternStashTest, TakesEachMessageOnce) {
  absl::Status again;
  absl::Status without;
  const ActorRef actor = Spawn({.receive =
                                    [&](ActorContext& context, Envelope&) {
                                      EXPECT_TRUE(Stash(context).ok());
                                      again = Stash(context);
                                      return absl::OkStatus();
                                    },
                                .start =
                                    [&](ActorContext& context) {
                                      without = Stash(context);
                                      return absl::OkStatus();
                                    }});
  TellItems(actor, {1});
  Settle();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(again.message().find(" has no message to stash"), absl::string_view::npos) << again;
  EXPECT_EQ(without.code(), absl::StatusCode::kFailedPrecondition);
}

// The message that an actor failed on is current in its hooks. A handler that waits keeps it, too.
enum class Waits { kNot, kFirst };
class PatternStashInHooksTest : public PatternStashTest, public testing::WithParamInterface<Waits> {
 protected:
  // Fails on the first Item 1, and logs the others. The hook is called for the instance that
  // failed.
  Script FailingOnce() {
    return {.receive = [this](ActorContext& context, Envelope& message) -> absl::Status {
      const int number = message.As<Item>().number;
      if (number == 1 && !std::exchange(has_failed_, true)) {
        if (GetParam() == Waits::kNot) return absl::InternalError("the first try");
        return actor_internal::RunHandler(context, std::make_unique<WaitingHandler>(FailLate(context)),
                                          actor_internal::AwaitMode::kExclusive);
      }
      log_.push_back(absl::StrCat(number));
      context.Reply(Item{number + 10});
      return absl::OkStatus();
    }};
  }
  // Spawns an actor that replies with 20 more.
  ActorRef SpawnReplying() {
    return Spawn({.receive = [](ActorContext& context, Envelope& message) -> absl::Status {
      context.Reply(Item{message.As<Item>().number + 20});
      return absl::OkStatus();
    }});
  }
  void StopAfterFailures() {
    ActorSystemOptions options;
    options.toolbox = toolbox_.get();
    options.log_sink = &kept_log_;
    options.guardian_strategy.decider = [](const Failure&) { return SupervisionDirective::kStop; };
    system_ = nullptr;
    system_ = ActorSystem::Create(options).value();
  }
  static Task<void> FailLate(ActorContext& context) {
    auto delay = context.Delay(absl::Seconds(1));
    const absl::Status over = co_await delay;
    EXPECT_TRUE(over.ok()) << over;
    throw std::runtime_error("the first try");
  }

  bool has_failed_ = false;
};

TEST_P(PatternStashInHooksTest, BringsBackAMessageThatPreRestartHasStashed) {
  Script script = FailingOnce();
  script.pre_restart = [](ActorContext& context, Envelope*) { EXPECT_TRUE(Stash(context).ok()); };
  const ActorRef actor = Spawn(std::move(script));
  const absl::StatusOr<Item> answer = system_->AskAndWait<Item>(actor, Item{1}, absl::Seconds(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 11);
  EXPECT_EQ(Take(), Log({"1"}));
}

TEST_P(PatternStashInHooksTest, LeavesAMessageThatPreRestartHasForwardedToItsTarget) {
  const ActorRef other = SpawnReplying();
  Script script = FailingOnce();
  script.pre_restart = [other](ActorContext& context, Envelope*) { context.Forward(other); };
  const ActorRef actor = Spawn(std::move(script));
  const absl::StatusOr<Item> answer = system_->AskAndWait<Item>(actor, Item{1}, absl::Seconds(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 21);
  TellItems(actor, {2});
  Settle();
  EXPECT_EQ(Take(), Log({"2"}));
}

// PostStop runs after the verdict to stop, and the message is still the current one.
TEST_P(PatternStashInHooksTest, LeavesAMessageThatPostStopHasForwardedToItsTarget) {
  StopAfterFailures();
  const ActorRef other = SpawnReplying();
  Script script = FailingOnce();
  script.stop = [other](ActorContext& context) { context.Forward(other); };
  const ActorRef actor = Spawn(std::move(script));
  const absl::StatusOr<Item> answer = system_->AskAndWait<Item>(actor, Item{1}, absl::Seconds(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->number, 21);
  EXPECT_FALSE(IsAlive(actor));
}

TEST_P(PatternStashInHooksTest, EndsAMessageThatPostStopHasStashedAsADeadLetter) {
  StopAfterFailures();
  Script script = FailingOnce();
  script.stop = [](ActorContext& context) { EXPECT_TRUE(Stash(context).ok()); };
  const ActorRef actor = Spawn(std::move(script));
  TellItems(actor, {1});
  RunFor(absl::Seconds(2));
  EXPECT_FALSE(IsAlive(actor));
  EXPECT_EQ(dead_letters(DeadLetterReason::kStopped), 1u);
}

INSTANTIATE_TEST_SUITE_P(Handlers, PatternStashInHooksTest, testing::Values(Waits::kNot, Waits::kFirst));

// SCH-11
TEST_F(PatternStashTest, KeepsTheDepthOfTheMailboxRight) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2, 3});
  Settle();
  Tell(actor, Open{});
  Settle();
  EXPECT_EQ(Take().size(), 3u);
  In(actor, [](ActorContext& context) { return HoldUp(context, absl::Seconds(1)); });
  TellItems(actor, {4, 5});
  Settle();
  EXPECT_EQ(MailboxDepth(), 2);
}

// Stashed messages end with a system that ends without a shutdown. Leak checkers verify it.
TEST_F(PatternStashTest, GoesWithTheSystem) {
  const ActorRef actor = Spawn(Stashing());
  TellItems(actor, {1, 2, 3});
  Settle();
  system_->Shutdown(absl::ZeroDuration());
  system_.reset();
}

}  // namespace
}  // namespace fraktor
