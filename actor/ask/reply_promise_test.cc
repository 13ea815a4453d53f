#include "fraktor/actor/ask/reply_promise.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor {

using actor_internal::ActorWorker;
using actor_internal::AskDeadlineReached;
using actor_internal::InvokerTest;
using actor_internal::Number;
using actor_internal::PromiseSlot;
using actor_internal::Suspend;
using actor_internal::Turn;
using actor_internal::WorkerScope;

namespace {

struct Parcel {
  std::unique_ptr<int> content;
};
// A message whose copy constructor throws.
struct Unmakeable {
  Unmakeable() = default;
  Unmakeable(Unmakeable&&) noexcept {}
  Unmakeable(const Unmakeable&) { throw std::runtime_error("cannot be copied"); }
};

class AskTest : public InvokerTest {
 protected:
  // Replies to each number with the next one.
  ActorRef SpawnServer() {
    return Spawn([](ActorContext& context, Envelope& message) {
      context.Tell(context.sender(), Number{message.As<Number>().value + 1});
      return absl::OkStatus();
    });
  }
  // Keeps the promises, and does not reply.
  ActorRef SpawnSilent() {
    return Spawn([this](ActorContext& context, Envelope&) {
      asked_.push_back(context.sender());
      return absl::OkStatus();
    });
  }
  // Lets `asker` ask `target` `count` numbers, from 0 on.
  void OrderAsks(ActorRef asker, ActorRef target, int count, absl::Duration timeout) {
    Order(asker, [=, this](ActorContext& context) {
      for (int i = 0; i < count; ++i) asks_.push_back(*context.AskOnReply(target, Number{i}, timeout));
    });
  }

  std::vector<ActorRef> asked_;
  std::vector<ActorRef> asks_;
};

TEST_F(AskTest, AnAnswerComesUnderTheNameOfTheQuestion) {
  ActorRef server = SpawnServer();
  ActorRef named;
  ActorRef asker = SpawnDoer({}, nullptr, [&](ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) {
    named = ask;
    log_.push_back(std::to_string((*answer)->As<Number>().value));
    EXPECT_EQ(context.self().slot(), &context.slot());
    return absl::OkStatus();
  });
  OrderAsks(asker, server, 1, absl::Seconds(1));
  RunAll();
  EXPECT_EQ(log_, Log({"1"}));
  EXPECT_EQ(named, asks_[0]);
  EXPECT_NE(named, asker);
  Advance(absl::Seconds(2));
  EXPECT_EQ(log_, Log({"1"})) << "an ask that has got its reply does not fail";
  EXPECT_TRUE(dead_.empty());
}

TEST_F(AskTest, OtherMessagesAreHandledMeanwhile) {
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, SpawnServer(), 1, absl::Seconds(1));
  Tell(asker, Number{100});
  EXPECT_EQ(Run(asker), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"100"}));
  RunAll();
  EXPECT_EQ(log_, Log({"100", "reply 1"}));
}

// A reply reaches a suspended actor, which handles no user messages.
TEST_F(AskTest, AnAnswerReachesASuspendedActor) {
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, SpawnServer(), 1, absl::Seconds(1));
  Run(asker);
  TellSystem(asker, MakeEnvelope<Suspend>(ActorRef()));
  RunAll();
  EXPECT_EQ(log_, Log({"reply 1"}));
}

TEST_F(AskTest, ASecondAnswerIsADeadLetter) {
  ActorRef server = Spawn([](ActorContext& context, Envelope&) {
    for (int i = 1; i <= 3; ++i) context.Tell(context.sender(), Number{i});
    return absl::OkStatus();
  });
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, server, 1, absl::Seconds(1));
  RunAll();
  EXPECT_EQ(log_, Log({"reply 1"}));
  EXPECT_EQ(dead_, Dead({{2, DeadLetterReason::kLateReply}, {3, DeadLetterReason::kLateReply}}));
}

TEST_F(AskTest, AnAnswerAfterTheTimeoutIsADeadLetter) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 1, absl::Seconds(1));
  RunAll();
  Advance(absl::Seconds(1));
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED"}));
  Order(asker, [&](ActorContext& context) { context.Tell(asked_[0], Number{5}); });
  RunAll();
  EXPECT_EQ(dead_, Dead({{5, DeadLetterReason::kLateReply}}));
  EXPECT_EQ(log_.size(), 1u);

  // A late reply of a foreign thread is counted under the same reason.
  Tell(asked_[0], Number{6});
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kLateReply), 1u);
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kStopped), 0u);
}

// SCH-10: the timeouts of asks come from the timing wheel, as system messages.
TEST_F(AskTest, ATimeoutIsNeverEarlyAndTheEarliestIsFirst) {
  ActorRef silent = SpawnSilent();
  std::vector<ActorRef> failed;
  ActorRef asker = SpawnDoer({}, nullptr, [&](ActorContext&, ActorRef ask, absl::StatusOr<Envelope*> answer) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
    failed.push_back(ask);
    return absl::OkStatus();
  });
  for (int seconds : {3, 1, 2, 1}) OrderAsks(asker, silent, 1, absl::Seconds(seconds));
  RunAll();
  Advance(absl::Seconds(1) - absl::Nanoseconds(1));
  EXPECT_TRUE(failed.empty());
  Advance(absl::Nanoseconds(1));
  EXPECT_EQ(failed, std::vector<ActorRef>({asks_[1], asks_[3]}));
  Advance(absl::Seconds(1));
  EXPECT_EQ(failed, std::vector<ActorRef>({asks_[1], asks_[3], asks_[2]}));
  Advance(absl::Seconds(1) - absl::Nanoseconds(1));
  EXPECT_EQ(failed.size(), 3u);
  Advance(absl::Nanoseconds(1));
  EXPECT_EQ(failed.back(), asks_[0]);
}

TEST_F(AskTest, AnInfiniteTimeoutWaitsForEver) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 1, absl::InfiniteDuration());
  OrderAsks(asker, silent, 1, absl::Seconds(1));
  RunAll();
  Advance(absl::Hours(24 * 365));
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED"}));
  Tell(asked_[0], Number{7});
  RunAll();
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED", "reply 7"}));
}

TEST_F(AskTest, AnAnswerThatIsInTheMailboxWhenTheTimeIsUpCounts) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 1, absl::Seconds(1));
  RunAll();
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());  // The timer's message is in front.
  Tell(asked_[0], Number{7});
  RunAll();
  EXPECT_EQ(log_, Log({"reply 7"}));
  EXPECT_TRUE(dead_.empty());
}

// The timers of a toolbox are limited: all asks of an actor share one, also if their timeouts
// differ.
TEST_F(AskTest, OneTimerServesAllQuestionsOfAnActor) {
  ActorRef asker = SpawnDoer();
  ActorRef server = SpawnServer();
  // Timers that were left behind would fire, each in a step of its own.
  for (int round = 0; round < 100; ++round) {
    for (int seconds : {1000, 100, 10}) OrderAsks(asker, server, 10, absl::Seconds(seconds));
    RunAll();
  }
  const uint64_t before = toolbox_->steps();
  ASSERT_TRUE(toolbox_->RunFor(absl::Hours(1)).ok());
  EXPECT_LE(toolbox_->steps() - before, 2u);
}

TEST_F(AskTest, QuestionsWithDecreasingTimeoutsHaveOneTimer) {
  ActorRef asker = SpawnDoer();
  ActorRef silent = SpawnSilent();
  for (int seconds = 100; seconds > 0; --seconds) OrderAsks(asker, silent, 1, absl::Seconds(seconds));
  RunAll();
  const uint64_t before = toolbox_->steps();
  Advance(absl::Seconds(1));
  EXPECT_EQ(toolbox_->steps() - before, 1u);
  for (int i = 1; i < 100; ++i) Advance(absl::Seconds(1));
  EXPECT_EQ(log_.size(), 100u);
  EXPECT_EQ(toolbox_->steps() - before, 100u);
}

// The message of a timer that fired just before an earlier one replaced it.
TEST_F(AskTest, AnOldTimerArmsNoSecondOne) {
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, SpawnSilent(), 1, absl::Seconds(10));
  RunAll();
  const uint64_t before = toolbox_->steps();
  TellSystem(asker, MakeEnvelope<AskDeadlineReached>(ActorRef(), toolbox_->Now() + absl::Seconds(20)));
  RunAll();
  Advance(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps() - before, 1u);
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED"}));
}

TEST_F(AskTest, AnActorThatEndsLeavesNoTimer) {
  ActorRef silent = SpawnSilent();
  const uint64_t before = toolbox_->steps();
  for (int i = 0; i < 100; ++i) {
    ActorRef asker = SpawnDoer();
    OrderAsks(asker, silent, 1, absl::Seconds(30));
    RunAll();
    StopIt(asker);
    RunAll();
  }
  Advance(absl::Minutes(1));
  EXPECT_EQ(toolbox_->steps() - before, 0u);
}

// The slots of promises are used again: the table does not grow with the number of asks.
TEST_F(AskTest, PromisesAreRecycledHoweverTheyEnd) {
  ActorRef server = SpawnServer();
  ActorRef silent = SpawnSilent();
  std::set<PromiseSlot*> slots;
  for (int round = 0; round < 2000; ++round) {
    asks_.clear();
    asked_.clear();
    log_.clear();
    ActorRef asker = SpawnDoer();
    OrderAsks(asker, server, 3, absl::Seconds(1));
    OrderAsks(asker, silent, 3, absl::Seconds(1));
    RunAll();
    if (round % 3 == 0) Advance(absl::Seconds(1));
    StopIt(asker);
    if (round % 3 == 1) {
      for (ActorRef ask : asked_) Tell(ask, Number{1});  // On their way when the asker ends.
    }
    RunAll();
    spawned_.pop_back();
    instances_.pop_back();
    for (ActorRef ask : asks_) slots.insert(ask.promise_slot());
  }
  EXPECT_LT(slots.size(), 200u) << "two magazines, and the promises in use";
}

TEST_F(AskTest, AnAnswerThatMeetsTheEndOfTheAskerFreesItsPromise) {
  ActorRef silent = SpawnSilent();
  std::set<PromiseSlot*> slots;
  on_ending_ = [&](ActorContext&) { Tell(asks_.back(), Number{1}); };
  for (int round = 0; round < 500; ++round) {
    ActorRef asker = SpawnDoer();
    OrderAsks(asker, silent, 1, absl::InfiniteDuration());
    RunAll();
    StopIt(asker);
    RunAll();
    spawned_.pop_back();
    instances_.pop_back();
    slots.insert(asks_.back().promise_slot());
  }
  on_ending_ = nullptr;
  EXPECT_LT(slots.size(), 200u);
  ASSERT_EQ(dead_.size(), 500u);
  EXPECT_EQ(dead_.back(), std::make_pair(1, DeadLetterReason::kStopped));
}

// Calls a function in the last turn of an actor, when its references are stale and its asks are
// still open.
class AskOfEndingTest : public AskTest {
 protected:
  void OnEnding(Turn turn) override {
    AskTest::OnEnding(turn);
    if (on_stale_) on_stale_();
  }

  std::function<void()> on_stale_;
};

// A promise whose reply comes after the asker has ended still belongs to the asker: no other worker
// may use it.
TEST_F(AskOfEndingTest, AnAnswerThatIsLostLeavesThePromiseToTheAsker) {
  ActorWorker other({.coordinator = coordinator_,
                     .lifecycle = *this,
                     .index = 0,
                     .dispatcher = number_,
                     .toolbox = toolbox_.get(),
                     .slots = &mailboxes_.slots(),
                     .promises = &mailboxes_.promises()});
  other.AdoptThread();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, SpawnSilent(), 1, absl::InfiniteDuration());
  RunAll();
  PromiseSlot* next = nullptr;
  on_stale_ = [&] {
    const WorkerScope scope(other);
    Tell(asks_[0], Number{1});
    next = other.promises().Reserve().value().slot;
    other.promises().Release(next);
  };
  StopIt(asker);
  RunAll();
  on_stale_ = nullptr;
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kLateReply}}));
  EXPECT_NE(next, asks_[0].promise_slot());
}

TEST_F(AskOfEndingTest, AnAnswerOfAForeignThreadThatIsLostFreesThePromise) {
  ActorRef silent = SpawnSilent();
  std::set<PromiseSlot*> slots;
  on_stale_ = [&] { std::thread([&] { Tell(asks_.back(), Number{1}); }).join(); };
  for (int round = 0; round < 300; ++round) {
    ActorRef asker = SpawnDoer();
    OrderAsks(asker, silent, 1, absl::InfiniteDuration());
    RunAll();
    StopIt(asker);
    RunAll();
    spawned_.pop_back();
    instances_.pop_back();
    slots.insert(asks_.back().promise_slot());
  }
  on_stale_ = nullptr;
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kLateReply), 300u);
  EXPECT_LT(slots.size(), 200u);
}

// The ask of an actor in its last hook is closed when the actor ends.
TEST_F(AskTest, AQuestionOfAnActorThatEndsIsClosed) {
  ActorRef silent = SpawnSilent();
  std::set<PromiseSlot*> slots;
  on_ending_ = [&](ActorContext& context) {
    slots.insert(context.AskOnReply(silent, Number{1}, absl::InfiniteDuration())->promise_slot());
  };
  for (int round = 0; round < 500; ++round) {
    ActorRef asker = SpawnDoer();
    StopIt(asker);
    RunAll();
    spawned_.pop_back();
    instances_.pop_back();
  }
  on_ending_ = nullptr;
  EXPECT_LT(slots.size(), 200u);
  ASSERT_FALSE(asked_.empty());
  dead_.clear();
  Order(SpawnDoer(), [&](ActorContext& context) { context.Tell(asked_.back(), Number{2}); });
  RunAll();
  EXPECT_EQ(dead_, Dead({{2, DeadLetterReason::kLateReply}}));
}

TEST_F(AskTest, AnAnswerToAnAskerThatHasEndedIsADeadLetter) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 2, absl::Seconds(1));
  RunAll();
  StopIt(asker);
  Run(asker);
  Order(SpawnDoer(), [&](ActorContext& context) { context.Tell(asked_[0], Number{1}); });
  Tell(asked_[1], Number{2});
  RunAll();
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kLateReply}}));
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kLateReply), 1u);
  Advance(absl::Seconds(1));
  EXPECT_EQ(log_, Log({"ending", "ended"}));
}

// Another promise uses the slot by then.
TEST_F(AskTest, AStalePromiseDoesNotReachTheNextUserOfItsSlot) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 1, absl::Seconds(1));
  RunAll();
  Advance(absl::Seconds(1));
  OrderAsks(asker, silent, 1, absl::Seconds(1));
  RunAll();
  ASSERT_EQ(asks_[0].promise_slot(), asks_[1].promise_slot());
  ASSERT_NE(asks_[0], asks_[1]);
  Tell(asks_[0], Number{1});
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED"}));
  Tell(asks_[1], Number{2});
  RunAll();
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED", "reply 2"}));
}

TEST_F(AskTest, AForeignThreadMayAnswer) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, silent, 100, absl::Seconds(1));
  RunAll();
  std::vector<std::thread> threads;
  // All threads reply to every ask: one of them is first.
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (ActorRef ask : asked_) Tell(ask, Number{1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  RunAll();
  EXPECT_EQ(log_.size(), 100u);
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kLateReply), 200u);
}

TEST_F(AskTest, ManyQuestionsMayBeOpen) {
  ActorRef asker = SpawnDoer();
  ActorRef server = SpawnServer();
  OrderAsks(asker, server, 5000, absl::Seconds(1));
  RunAll();
  ASSERT_EQ(log_.size(), 5000u);
  EXPECT_EQ(log_.back(), "reply 5000");
  EXPECT_EQ(std::set<std::string>(log_.begin(), log_.end()).size(), 5000u);
}

// SCH-7
TEST_F(AskTest, AnActorThatAsksMustTakeAnswers) {
  ActorRef server = SpawnServer();
  ActorRef asker = Spawn([=](ActorContext& context, Envelope&) {
    return context.AskOnReply(server, Number{1}, absl::Seconds(1)).status();
  });
  Tell(asker, Number{0});
  RunAll();
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(failures_[0].message().find("OnReply"), std::string::npos) << failures_[0];

  ResumeIt(asker);
  ActorRef silent = SpawnSilent();
  ActorRef late = Spawn([=](ActorContext& context, Envelope&) {
    return context.AskOnReply(silent, Number{1}, absl::Seconds(1)).status();
  });
  Tell(late, Number{0});
  RunAll();
  Advance(absl::Seconds(1));
  ASSERT_EQ(failures_.size(), 2u);
  EXPECT_EQ(failures_[1].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(failed_on_.back(), -2);
}

// SCH-7
TEST_F(AskTest, WhatAnAnswersHandlerThrowsIsTheActorsFailure) {
  ActorRef asker = SpawnDoer({}, nullptr, [](ActorContext&, ActorRef, absl::StatusOr<Envelope*>) -> absl::Status {
    throw std::runtime_error("not that");
  });
  OrderAsks(asker, SpawnServer(), 1, absl::Seconds(1));
  Run(asker);
  RunAll();
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_NE(failures_[0].message().find("not that"), std::string::npos);
  EXPECT_EQ(failed_on_, std::vector<int>({1}));
  Tell(asker, Number{100});
  RunAll();
  EXPECT_TRUE(log_.empty()) << "suspended";
}

TEST_F(AskTest, AnAnswerMayBeMoveOnlyAndBeTaken) {
  ActorRef server = Spawn([](ActorContext& context, Envelope&) {
    context.Tell(context.sender(), Parcel{std::make_unique<int>(42)});
    return absl::OkStatus();
  });
  std::unique_ptr<int> content;
  ActorRef asker = SpawnDoer({}, nullptr, [&](ActorContext&, ActorRef, absl::StatusOr<Envelope*> answer) {
    content = (*answer)->Take<Parcel>().content;
    return absl::OkStatus();
  });
  OrderAsks(asker, server, 1, absl::Seconds(1));
  RunAll();
  ASSERT_NE(content, nullptr);
  EXPECT_EQ(*content, 42);
}

TEST_F(AskTest, AnAnswersHandlerMayAsk) {
  ActorRef server = SpawnServer();
  ActorRef asker = SpawnDoer({}, nullptr, [=, this](ActorContext& context, ActorRef, absl::StatusOr<Envelope*> answer) {
    const int value = (*answer)->As<Number>().value;
    log_.push_back(std::to_string(value));
    return value < 5 ? context.AskOnReply(server, Number{value}, absl::Seconds(1)).status() : absl::OkStatus();
  });
  OrderAsks(asker, server, 1, absl::Seconds(1));
  RunAll();
  EXPECT_EQ(log_, Log({"1", "2", "3", "4", "5"}));
}

// The same when several asks time out at once.
TEST_F(AskTest, AFailedQuestionMayBeAskedAgain) {
  ActorRef silent = SpawnSilent();
  int failed = 0;
  ActorRef asker = SpawnDoer({}, nullptr, [&, silent](ActorContext& context, ActorRef, absl::StatusOr<Envelope*>) {
    ++failed;
    return context.AskOnReply(silent, Number{1}, absl::Seconds(1)).status();
  });
  OrderAsks(asker, silent, 10, absl::Seconds(1));
  RunAll();
  for (int i = 1; i <= 5; ++i) {
    Advance(absl::Seconds(1));
    EXPECT_EQ(failed, 10 * i);
  }
}

TEST_F(AskTest, AQuestionThatCannotBeMadeLeavesNoPromise) {
  ActorRef silent = SpawnSilent();
  ActorRef asker = SpawnDoer();
  const Unmakeable question;
  Order(asker, [&](ActorContext& context) { return context.AskOnReply(silent, question, absl::Seconds(1)).status(); });
  RunAll();
  ASSERT_EQ(failures_.size(), 1u);
  ResumeIt(asker);
  RunAll();
  Advance(absl::Seconds(1));
  EXPECT_TRUE(log_.empty()) << "nothing was asked, so nothing fails";
}

TEST_F(AskTest, AQuestionToNobodyFailsByItsTimeout) {
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, ActorRef::NoOne(), 1, absl::Seconds(1));
  RunAll();
  EXPECT_EQ(dead_, Dead({{0, DeadLetterReason::kNoRecipient}}));
  Advance(absl::Seconds(1));
  EXPECT_EQ(log_, Log({"DEADLINE_EXCEEDED"}));
}

// A promise may be sent to others like any reference.
TEST_F(AskTest, AThirdActorMayAnswer) {
  ActorRef server = SpawnServer();
  ActorRef relay = Spawn([=](ActorContext& context, Envelope& message) {
    ActorContext::worker().Send(server, MakeEnvelope<Number>(context.sender(), message.As<Number>()).release());
    return absl::OkStatus();
  });
  ActorRef asker = SpawnDoer();
  OrderAsks(asker, relay, 1, absl::Seconds(1));
  RunAll();
  EXPECT_EQ(log_, Log({"reply 1"}));
}

}  // namespace
}  // namespace fraktor
