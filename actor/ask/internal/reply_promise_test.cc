#include "fraktor/actor/ask/internal/reply_promise.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::ActorWorker;
using actor_internal::AskCompletion;
using actor_internal::AskDeadlineReached;
using actor_internal::InvokerTest;
using actor_internal::Number;
using actor_internal::PromiseSlot;
using actor_internal::ReadyNode;
using actor_internal::ReadyQueueCoordinator;
using actor_internal::SendAsk;
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
  EXPECT_EQ(dead_.back(), std::make_pair(1, DeadLetterReason::kLateReply));
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

// Asks that time out together count against the budget, one by one.
class AsksThatTimeOutTogetherTest : public AskTest {
 protected:
  static constexpr int kAsks = 10;
  static constexpr uint32_t kBudget = 4;

  // Records how an ask ends.
  class RecordedAsk final : public AskCompletion {
   public:
    RecordedAsk(int number, absl::Duration waits, std::vector<int>& failed)
        : AskCompletion(MessageTypeOf<Number>(), waits), number_(number), failed_(failed) {}

    void TakeReply(Envelope&) noexcept override { ++answers; }
    void Fail(absl::Status) noexcept override {
      ++failures;
      failed_.push_back(number_);
    }
    void Abandon() noexcept override { ++ends_with_asker; }

    int answers = 0;
    int failures = 0;
    int ends_with_asker = 0;

   private:
    const int number_;
    std::vector<int>& failed_;
  };

  // The asker sends asks with these timeouts to the target.
  void Ask(const std::vector<absl::Duration>& timeouts) {
    Order(asker_, [this, timeouts](ActorContext&) {
      for (const absl::Duration timeout : timeouts) {
        RecordedAsk& ask = recorded_.emplace_back(static_cast<int>(recorded_.size()), timeout, failed_);
        EXPECT_TRUE(SendAsk(worker_, target_, MakeEnvelope<Number>(ActorRef(), 1), ask).ok());
      }
    });
    RunAll();
  }
  void Ask() { Ask(std::vector<absl::Duration>(kAsks, absl::Seconds(1))); }
  // The asks time out. The asker is ready and has not run since.
  void PassTime() { ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok()); }
  void EndTarget() {
    StopIt(target_);
    RunAll();
  }
  // Takes the next ready actor, which must be `ref`, out of the run queue.
  ActorSlot& TakeReady(ActorRef ref) {
    ReadyNode* node = nullptr;
    EXPECT_EQ(coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)), 1u);
    EXPECT_EQ(node, ref.slot());
    return *ref.slot();
  }
  // Runs turns of the asker until all asks have failed.
  void ExpectFailuresInTurns() {
    for (size_t expected = failed_.size() + kBudget; failed_.size() < kAsks; expected += kBudget) {
      Run(asker_, kBudget);
      ASSERT_EQ(failed_.size(), std::min<size_t>(expected, kAsks)) << "asks that have failed";
    }
    RunAll();
    EXPECT_EQ(failed_, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }

  std::vector<int> failed_;
  std::deque<RecordedAsk> recorded_;
  ActorRef target_ = SpawnSilent();
  ActorRef asker_ = SpawnDoer();
};

// SCH-14
TEST_F(AsksThatTimeOutTogetherTest, FailInSeveralTurnsIfTheirTargetHasEnded) {
  Ask();
  EndTarget();
  PassTime();
  ExpectFailuresInTurns();
}

// SCH-14
TEST_F(AsksThatTimeOutTogetherTest, FailInSeveralTurnsAfterTheReportOfTheirTarget) {
  Ask();
  PassTime();
  EXPECT_EQ(Run(asker_), InvokeResult::kCompleted);
  EXPECT_TRUE(failed_.empty());
  Run(target_);
  ExpectFailuresInTurns();
}

// SCH-14
TEST_F(AsksThatTimeOutTogetherTest, FailInSeveralTurnsIfTheirTargetReportsTooLate) {
  Ask();
  PassTime();
  Run(asker_);
  ActorSlot& target = TakeReady(target_);
  ASSERT_TRUE(toolbox_->RunFor(absl::Milliseconds(20)).ok());
  Run(asker_, kBudget);
  EXPECT_EQ(failed_.size(), size_t{kBudget});
  RunHeld(target, 64);
  ExpectFailuresInTurns();
}

// A target with a long mailbox takes long for a status report.
TEST_F(AsksThatTimeOutTogetherTest, ShareOneStatusRequest) {
  Ask();
  PassTime();
  Run(asker_, kBudget);
  // The target reports before the asker has looked at its other asks.
  Run(target_);
  RunAll();
  EXPECT_EQ(asker_.slot()->extension->ask_extras->status_requests, 1u);
  EXPECT_EQ(failed_, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(AsksThatTimeOutTogetherTest, FailInTheOrderOfTheirDeadlines) {
  std::vector<absl::Duration> timeouts;
  for (const int milliseconds : {30, 10, 20, 10, 5, 30, 1}) timeouts.push_back(absl::Milliseconds(milliseconds));
  for (const bool target_ends : {true, false}) {
    failed_.clear();
    recorded_.clear();
    target_ = SpawnSilent();
    Ask(timeouts);
    ActorSlot* const target = target_.slot();
    if (target_ends) EndTarget();
    PassTime();
    while (AnythingReady()) {
      ReadyNode* node = nullptr;
      ASSERT_EQ(coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)), 1u);
      RunHeld(static_cast<ActorSlot&>(*node), node == target ? 64 : 2);
    }
    EXPECT_EQ(failed_, std::vector<int>({6, 4, 1, 3, 2, 0, 5})) << target_ends;
  }
}

// One reply is in the mailbox when the time is up, the other one comes while asks time out.
TEST_F(AsksThatTimeOutTogetherTest, GetRepliesThatComeBeforeTheirTurn) {
  Ask();
  ASSERT_EQ(asked_.size(), size_t{kAsks});
  PassTime();
  Tell(asked_[1], Number{1});
  Run(asker_, kBudget);
  Tell(asked_[9], Number{1});
  RunAll();
  for (size_t i = 0; i < recorded_.size(); ++i) {
    const bool has_reply = i == 1 || i == 9;
    EXPECT_EQ(recorded_[i].answers, has_reply ? 1 : 0) << i;
    EXPECT_EQ(recorded_[i].failures, has_reply ? 0 : 1) << i;
  }
}

// The asker stops when some asks have failed, before and after the report of the target.
TEST_F(AsksThatTimeOutTogetherTest, EndOnceIfTheAskerStopsMeanwhile) {
  for (const bool target_ends : {true, false}) {
    failed_.clear();
    recorded_.clear();
    asker_ = SpawnDoer();
    target_ = SpawnSilent();
    Ask();
    if (target_ends) EndTarget();
    PassTime();
    if (!target_ends) {
      Run(asker_);
      Run(target_);
    }
    StopIt(asker_);
    while (AnythingReady()) Run(asker_, kBudget);
    for (const RecordedAsk& ask : recorded_) EXPECT_EQ(ask.answers + ask.failures + ask.ends_with_asker, 1);
    EXPECT_GE(failed_.size(), size_t{kBudget});
    EXPECT_LT(failed_.size(), size_t{kAsks});
  }
}

// While asks wait for their turn, those that have failed are asked again.
TEST_F(AsksThatTimeOutTogetherTest, MayBeAskedAgain) {
  int failed = 0;
  asker_ = SpawnDoer({}, nullptr, [&](ActorContext& context, ActorRef, absl::StatusOr<Envelope*>) {
    ++failed;
    return context.AskOnReply(target_, Number{1}, absl::Seconds(1)).status();
  });
  OrderAsks(asker_, target_, kAsks, absl::Seconds(1));
  RunAll();
  for (int i = 1; i <= 3; ++i) {
    PassTime();
    ReadyNode* node = nullptr;
    while (coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)) == 1) {
      const int before = failed;
      RunHeld(static_cast<ActorSlot&>(*node), kBudget);
      EXPECT_LE(failed - before, static_cast<int>(kBudget));
    }
    EXPECT_EQ(failed, kAsks * i);
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
