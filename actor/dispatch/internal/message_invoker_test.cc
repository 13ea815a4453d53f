#include "fraktor/actor/dispatch/internal/message_invoker.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/worker_watch.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::actor_internal {
namespace {

// A55: one message at a time, in the order of sending.
TEST_F(InvokerTest, HandsOutMessagesInOrder) {
  ActorRef actor = SpawnLogger();
  for (int i = 0; i < 5; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"0", "1", "2", "3", "4"}));
  EXPECT_FALSE(AnythingReady());
}

TEST_F(InvokerTest, MakesAnIdleActorReadyOnceForManyMessages) {
  ActorRef actor = SpawnLogger();
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  EXPECT_EQ(coordinator_.ReadyCountHint(), 1u);
}

// A57
TEST_F(InvokerTest, GivesTheWorkerBackAfterItsBudget) {
  ActorRef actor = SpawnLogger();
  for (int i = 0; i < 5; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"0", "1"}));
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(Run(actor, 2), InvokeResult::kCompleted);
  EXPECT_EQ(log_.size(), 5u);
}

// A56: before any user message.
TEST_F(InvokerTest, HandlesSystemMessagesFirst) {
  ActorRef actor = SpawnLogger();
  Tell(actor, Number{1});
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 7));
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 8));
  Run(actor);
  EXPECT_EQ(log_, Log({"system 7", "system 8", "1"}));
}

// A56: also between two user messages that the worker has taken from the inbox already.
TEST_F(InvokerTest, HandlesASystemMessageBetweenTwoUserMessages) {
  ActorRef actor = Spawn([this](ActorContext& context, Envelope& message) {
    const int value = message.As<Number>().value;
    log_.push_back(std::to_string(value));
    if (value == 1) TellSystem(context.self(), MakeEnvelope<Mark>(ActorRef(), 7));
    return absl::OkStatus();
  });
  for (int i = 0; i < 4; ++i) Tell(actor, Number{i});
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "1", "system 7", "2", "3"}));
}

// SCH-14: an actor with many system messages yields.
TEST_F(InvokerTest, CountsSystemMessagesAgainstTheBudget) {
  ActorRef actor = SpawnLogger();
  Tell(actor, Number{1});
  for (int i = 0; i < 5; ++i) TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), i));
  EXPECT_EQ(Run(actor, 3), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"system 0", "system 1", "system 2"}));
  // A further system message goes behind the remaining ones and before the user message.
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 5));
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"system 0", "system 1", "system 2", "system 3", "system 4", "system 5", "1"}));
  EXPECT_FALSE(AnythingReady());
}

// SCH-14
TEST_F(InvokerTest, LetsASuspendedActorYieldToo) {
  ActorRef actor = SpawnLogger();
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Tell(actor, Number{1});
  for (int i = 0; i < 3; ++i) TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), i));
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"system 0"}));
  EXPECT_EQ(Run(actor, 2), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"system 0", "system 1", "system 2"}));
  ResumeIt(actor);
  EXPECT_EQ(Run(actor, 2), InvokeResult::kCompleted);
  EXPECT_EQ(log_.back(), "1");
}

void TellSignals(ActorRef actor, int count) {
  for (int i = 0; i < count; ++i) TellSystem(actor, MakeEnvelope<SignalArrived>(ActorRef(), SignalKey{1}));
}

// A56, SCH-14: replies and wakes that never end keep no user message out.
TEST_F(InvokerTest, HandlesUserMessagesBetweenTurnsFullOfSignals) {
  ActorRef actor = SpawnLogger();
  for (int i = 1; i <= 5; ++i) Tell(actor, Number{i});
  TellSignals(actor, 20);
  EXPECT_EQ(Run(actor, 8), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"1", "2"})) << "a quarter of the budget";
  EXPECT_EQ(Run(actor, 1), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"1", "2", "3"})) << "at least one";
  EXPECT_EQ(Run(actor, 64), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"1", "2", "3", "4", "5"}));
  EXPECT_FALSE(AnythingReady());
}

// An actor that waits for nothing cannot note that its list has only signals.
TEST_F(InvokerTest, HandlesUserMessagesWhenAVeryLongListOfSignalsHasBecomeShorter) {
  ActorRef actor = SpawnLogger();
  Tell(actor, Number{1});
  TellSignals(actor, 1100);
  EXPECT_EQ(Run(actor, 8), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log());
  EXPECT_EQ(Run(actor, 200), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"1"}));
  EXPECT_EQ(Run(actor, 2000), InvokeResult::kCompleted);
}

TEST_F(InvokerTest, GoesBackToSystemMessagesThatAUserMessageHasSent) {
  ActorRef actor = Spawn([this](ActorContext& context, Envelope& message) {
    const int value = message.As<Number>().value;
    log_.push_back(std::to_string(value));
    if (value == 1) TellSystem(context.self(), MakeEnvelope<Mark>(ActorRef(), 7));
    return absl::OkStatus();
  });
  for (int i = 1; i <= 3; ++i) Tell(actor, Number{i});
  TellSignals(actor, 9);
  EXPECT_EQ(Run(actor, 8), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log({"1"}));
  EXPECT_EQ(Run(actor, 8), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"1", "system 7", "2", "3"}));
}

// A56: also if many signals are before it.
TEST_F(InvokerTest, StopsBeforeUserMessagesAlsoBehindSignals) {
  ActorRef actor = SpawnLogger();
  TellSignals(actor, 20);
  StopIt(actor);
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor, 8), InvokeResult::kYielded);
  EXPECT_EQ(Run(actor, 8), InvokeResult::kYielded);
  EXPECT_EQ(Run(actor, 8), InvokeResult::kStopped);
  EXPECT_EQ(log_, Log({"ending", "ended"}));
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kStopped}}));
}

TEST_F(InvokerTest, ASuspendedActorGetsNoUserMessageBetweenSignals) {
  ActorRef actor = SpawnLogger();
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Tell(actor, Number{1});
  TellSignals(actor, 20);
  EXPECT_EQ(Run(actor, 16), InvokeResult::kYielded);
  EXPECT_EQ(Run(actor, 16), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log());
  // The list that the next turn takes is searched again.
  ResumeIt(actor);
  TellSignals(actor, 20);
  StopIt(actor);
  EXPECT_EQ(Run(actor, 16), InvokeResult::kYielded);
  EXPECT_EQ(log_, Log());
}

// Keeps the status reports that reach an actor. A Mark calls a function.
class StatusReportsTest : public InvokerTest {
 protected:
  void OnSystemMessage(Turn turn, Envelope& message) override {
    if (const auto* report = message.TryAs<StatusReport>()) {
      waiting_.push_back(report->waiting);
    } else if (message.Is<Mark>()) {
      on_mark_();
    } else {
      InvokerTest::OnSystemMessage(turn, message);
    }
  }
  void Request() { TellSystem(target_, MakeEnvelope<StatusRequest>(ActorRef(), asker_, uint64_t{1})); }
  std::vector<uint64_t> Reports() {
    RunAll();
    return std::exchange(waiting_, {});
  }

  ActorRef target_ = SpawnLogger();
  ActorRef asker_ = SpawnLogger();
  std::function<void()> on_mark_;
  std::vector<uint64_t> waiting_;
};

TEST_F(StatusReportsTest, CountTheMailboxOncePerTurn) {
  // The second request comes with further messages, in the same turn.
  on_mark_ = [&] {
    for (int i = 0; i < 3; ++i) Tell(target_, Number{i});
    Request();
  };
  for (int i = 0; i < 2; ++i) Tell(target_, Number{i});
  Request();
  TellSystem(target_, MakeEnvelope<Mark>(ActorRef(), 1));
  EXPECT_EQ(Reports(), (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(log_.size(), 5u);
  Tell(target_, Number{0});
  Request();
  EXPECT_EQ(Reports(), std::vector<uint64_t>{1}) << "the next turn counts again";
  Request();
  EXPECT_EQ(Reports(), std::vector<uint64_t>{0});
}

TEST_F(StatusReportsTest, CountNoMoreMessagesThanTheLimit) {
  for (int i = 0; i < 5000; ++i) Tell(target_, Number{i});
  Request();
  EXPECT_EQ(Reports(), std::vector<uint64_t>{1000});
}

// SCH-14: the failure of an actor that yields does not reach another actor.
TEST_F(InvokerTest, LetsAFailedActorYieldToo) {
  on_failure_ = [](ActorSlot& slot) {
    for (int i = 0; i < 3; ++i) TellSystem(slot.ref(), MakeEnvelope<Mark>(ActorRef(), i));
  };
  ActorRef failing = Spawn([](ActorContext&, Envelope&) { return absl::InternalError("broken"); });
  ActorRef suspended = SpawnLogger();
  Tell(failing, Number{1});
  EXPECT_EQ(Run(failing, 2), InvokeResult::kYielded);
  TellSystem(suspended, MakeEnvelope<Suspend>(ActorRef()));
  EXPECT_EQ(Run(failing), InvokeResult::kFailed);
  EXPECT_EQ(Run(suspended), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"system 0", "system 1", "system 2"}));
}

// SCH-8: suspended actors still handle system messages.
TEST_F(InvokerTest, ASuspendedActorGetsSystemMessagesOnly) {
  ActorRef actor = SpawnLogger();
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_TRUE(actor.slot()->mailbox.inbox.IsParked());

  Tell(actor, Number{2});
  EXPECT_FALSE(AnythingReady()) << "a user message does not wake it";
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 7));
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"system 7"}));

  TellSystem(actor, MakeEnvelope<Resume>(ActorRef()));
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"system 7", "1", "2"}));
  EXPECT_TRUE(actor.slot()->mailbox.inbox.IsIdle());

  Tell(actor, Number{3});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted) << "resumed for good";
  EXPECT_EQ(log_.back(), "3");
}

// SCH-7: until the supervisor decides. The message that failed is lost, the others wait.
TEST_F(InvokerTest, AFailedActorWaitsForTheVerdict) {
  ActorRef actor = Spawn([this](ActorContext&, Envelope& message) {
    const int value = message.As<Number>().value;
    if (value == 1) return absl::AbortedError("one is too many");
    log_.push_back(std::to_string(value));
    return absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0], absl::AbortedError("one is too many"));
  EXPECT_EQ(log_, Log({"0"}));
  EXPECT_FALSE(AnythingReady());

  TellSystem(actor, MakeEnvelope<Resume>(ActorRef()));
  Run(actor);
  EXPECT_EQ(log_, Log({"0", "2"}));
}

TEST_F(InvokerTest, WhatAHandlerThrowsIsItsFailure) {
  ActorRef actor = Spawn([](ActorContext&, Envelope& message) -> absl::Status {
    if (message.As<Number>().value == 0) throw std::runtime_error("no luck");
    throw 42;
  });
  Tell(actor, Number{0});
  Tell(actor, Number{1});
  Run(actor);
  TellSystem(actor, MakeEnvelope<Resume>(ActorRef()));
  Run(actor);
  ASSERT_EQ(failures_.size(), 2u);
  EXPECT_NE(failures_[0].ToString().find("Number threw: no luck"), std::string::npos) << failures_[0];
  EXPECT_EQ(failures_[1].code(), absl::StatusCode::kInternal);
}

// A18: finishes the current message and handles no further one. A58: the others are dead letters.
TEST_F(InvokerTest, AnActorThatStopsHandlesNothingFurther) {
  ActorRef actor = Spawn([this](ActorContext& context, Envelope& message) {
    log_.push_back(std::to_string(message.As<Number>().value));
    context.Stop();
    return absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(log_, Log({"0", "ending", "ended"}));
  ASSERT_EQ(dead_.size(), 2u);
  EXPECT_EQ(dead_[0], std::make_pair(1, DeadLetterReason::kStopped));
  EXPECT_EQ(dead_[1], std::make_pair(2, DeadLetterReason::kStopped));
}

TEST_F(InvokerTest, ASuspendedActorCanBeStopped) {
  ActorRef actor = SpawnLogger();
  TellSystem(actor, MakeEnvelope<Suspend>(ActorRef()));
  Tell(actor, Number{1});
  Run(actor);
  TellSystem(actor, MakeEnvelope<StopNow>(ActorRef()));
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(dead_.size(), 1u);
}

TEST_F(InvokerTest, AnActorWithChildrenWaitsForASystemMessageBeforeItEnds) {
  children_have_ended_ = false;
  ActorRef actor = SpawnLogger();
  TellSystem(actor, MakeEnvelope<StopNow>(ActorRef()));
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_TRUE(log_.empty());
  children_have_ended_ = true;
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 7));
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(log_, Log({"system 7", "ending", "ended"}));
}

// SCH-5: a stale reference resolves to nothing, also when its slot is in use again.
TEST_F(InvokerTest, AMessageForAnEarlierActorOfTheSlotIsADeadLetter) {
  ActorRef first = Spawn([](ActorContext& context, Envelope&) {
    context.Stop();
    return absl::OkStatus();
  });
  Tell(first, Number{0});
  Run(first);
  ActorRef second = SpawnLogger();
  ASSERT_EQ(second.slot(), first.slot());
  ASSERT_NE(second, first);

  // A late message to the first actor: the slot was used again between the generation check and
  // the push.
  EnvelopePtr late = MakeEnvelope<Number>(ActorRef(), 9);
  late->set_target_word(first.word());
  Envelope* pushed = late.release();
  ASSERT_TRUE(second.slot()->mailbox.Post(pushed));
  DispatcherTable::RegisterOrEmpty(*second.slot());
  Tell(second, Number{1});
  Run(second);
  EXPECT_EQ(log_.back(), "1");
  ASSERT_EQ(dead_.size(), 1u);
  EXPECT_EQ(dead_[0].first, 9);

  Tell(first, Number{10});
  EXPECT_EQ(mailboxes_.core().foreign_dead_letters(DeadLetterReason::kStopped), 1u);
  EXPECT_FALSE(AnythingReady());
}

TEST_F(InvokerTest, AHandlerKnowsItselfAndTheSender) {
  ActorRef answered;
  ActorRef asker = Spawn([&](ActorContext& context, Envelope& message) {
    if (message.Is<Note>()) {
      answered = context.sender();
    } else {
      context.Tell(ActorRef(message.sender()), Number{0});
    }
    return absl::OkStatus();
  });
  ActorRef answerer = Spawn([](ActorContext& context, Envelope&) {
    context.Tell(context.sender(), Note{"here"});
    return absl::OkStatus();
  });
  ActorRef starter = Spawn([&](ActorContext& context, Envelope&) {
    EnvelopePtr envelope = MakeEnvelope<Number>(asker, 0);
    ActorContext::worker().Send(answerer, envelope.release());
    EXPECT_EQ(context.self().slot(), &context.slot());
    return absl::OkStatus();
  });
  Tell(starter, Number{0});
  Run(starter);
  Run(answerer);
  Run(asker);
  EXPECT_EQ(answered, answerer);
}

TEST_F(InvokerTest, ToTellNoOneIsADeadLetter) {
  ActorRef actor = Spawn([](ActorContext& context, Envelope&) {
    context.Tell(ActorRef::NoOne(), Number{5});
    return absl::OkStatus();
  });
  Tell(actor, Number{0});
  Run(actor);
  ASSERT_EQ(dead_.size(), 1u);
  EXPECT_EQ(dead_[0], std::make_pair(5, DeadLetterReason::kNoRecipient));
}

// An actor with ten handlers that have been woken. Each takes 300 us when it resumes, and a watch
// ends the slice after 1 ms.
class WokenHandlersTest : public InvokerTest {
 protected:
  static constexpr int kHandlers = 10;

  // The coroutine keeps its parameters.
  static Task<void> Handler(WokenHandlersTest& test, Future<int> future, int number) {
    EXPECT_TRUE((co_await future).ok());
    test.log_.push_back(absl::StrCat("handler ", number));
    test.now_ += absl::Microseconds(300);
    test.watch_->Look(test.now_);
    if (number == test.failing_) throw std::runtime_error("a handler has failed");
  }

  void WakeHandlers() {
    std::vector<Promise<int>> promises;
    Order(actor_, [&](ActorContext& context) {
      for (int i = 0; i < kHandlers; ++i) {
        auto [promise, future] = MakePromise<int>();
        EXPECT_TRUE(context.Run(Handler(*this, std::move(future), i)).ok());
        promises.push_back(std::move(promise));
      }
    });
    RunAll();
    for (Promise<int>& promise : promises) promise.Set(0);
  }
  static Log HandlersFromTo(int first, int last) {
    Log log;
    for (int i = first; i <= last; ++i) log.push_back(absl::StrCat("handler ", i));
    return log;
  }

  ActorRef actor_ = SpawnDoer();
  int failing_ = -1;
  Instant now_ = Instant::FromNanoseconds(1'000'000'000);
  std::shared_ptr<WorkerWatch> watch_ =
      std::make_shared<WorkerWatch>(WorkerWatchOptions(), *toolbox_, std::vector<ActorWorker*>{&worker_});
};

// SCH-14
TEST_F(WokenHandlersTest, ResumeInSeveralTurnsIfTheyTakeLong) {
  WakeHandlers();
  EXPECT_EQ(Run(actor_), InvokeResult::kYielded);
  EXPECT_EQ(log_, HandlersFromTo(0, 4));
  EXPECT_EQ(Run(actor_), InvokeResult::kCompleted);
  EXPECT_EQ(log_, HandlersFromTo(0, 9));
  EXPECT_EQ(watch_->ended_slices(), 2u);
  EXPECT_FALSE(AnythingReady());
}

// SCH-14
TEST_F(WokenHandlersTest, ResumeOneByOneIfEachSliceIsOver) {
  WakeHandlers();
  for (int i = 0; i < kHandlers; ++i) {
    ReadyNode* node = nullptr;
    ASSERT_EQ(coordinator_.DrainReady(0, absl::MakeSpan(&node, 1)), 1u);
    RunHeld(*actor_.slot(), 0);
    // The first turns handle the messages that wake the handlers, one each.
    EXPECT_EQ(log_, HandlersFromTo(0, i));
  }
  EXPECT_FALSE(AnythingReady());
}

// Except for one message of each turn that they fill.
TEST_F(WokenHandlersTest, ResumeBeforeUserMessages) {
  WakeHandlers();
  Tell(actor_, Number{1});
  Tell(actor_, Number{2});
  Run(actor_);
  Log expected = HandlersFromTo(0, 4);
  expected.emplace_back("1");
  EXPECT_EQ(log_, expected);
  RunAll();
  const Log others = HandlersFromTo(5, 9);
  expected.insert(expected.end(), others.begin(), others.end());
  expected.emplace_back("2");
  EXPECT_EQ(log_, expected);
}

TEST_F(WokenHandlersTest, WaitForTheSupervisorIfOneFails) {
  failing_ = 4;
  WakeHandlers();
  RunAll();
  EXPECT_EQ(log_, HandlersFromTo(0, 4));
  EXPECT_EQ(failures_.size(), 1u);
  ResumeIt(actor_);
  RunAll();
  EXPECT_EQ(log_, HandlersFromTo(0, 9));
}

TEST_F(WokenHandlersTest, EndIfTheActorStopsMeanwhile) {
  WakeHandlers();
  Run(actor_);
  StopIt(actor_);
  RunAll();
  Log expected = HandlersFromTo(0, 4);
  expected.insert(expected.end(), {"ending", "ended"});
  EXPECT_EQ(log_, expected);
  EXPECT_FALSE(AnythingReady());
}

// Messages to one target are chained. All arrive, in the order in which they were sent.
TEST_F(InvokerTest, ALongBurstArrivesWholeAndInOrder) {
  ActorRef sink = SpawnLogger();
  ActorRef other = Spawn([](ActorContext&, Envelope&) { return absl::OkStatus(); });
  ActorRef source = Spawn([&](ActorContext& context, Envelope&) {
    for (int i = 0; i < 100; ++i) {
      context.Tell(sink, Number{i});
      if (i % 30 == 29) context.Tell(other, Number{i});
    }
    return absl::OkStatus();
  });
  Tell(source, Number{0});
  Run(source);
  RunAll();
  ASSERT_EQ(log_.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(log_[static_cast<size_t>(i)], std::to_string(i));
}

// Chains are short while the target takes its messages, and long while it does not.
TEST_F(InvokerTest, MoreOfABurstIsHeldBackWhileTheTargetIsBehind) {
  constexpr int kBurst = 200;
  ActorRef sink = SpawnLogger();
  // Returns the number of messages of a burst that arrive before the handler ends. The sink does
  // not run meanwhile; the test takes its messages.
  const auto arrived_of_burst = [&](bool takes) {
    size_t arrived = 0;
    ActorRef source = Spawn([&, takes](ActorContext& context, Envelope&) {
      MailLists& lists = sink.slot()->mailbox.lists;
      for (int i = 0; i < kBurst; ++i) {
        context.Tell(sink, Number{i});
        if (takes) lists.Take(sink.slot()->mailbox.inbox);
      }
      lists.Take(sink.slot()->mailbox.inbox);
      for (Envelope* each = lists.user.first; each != nullptr; each = Envelope::Of(each->next)) ++arrived;
      return absl::OkStatus();
    });
    Tell(source, Number{0});
    Run(source);
    RunAll();
    EXPECT_EQ(log_.size(), size_t{kBurst});
    for (int i = 0; i < kBurst; ++i) EXPECT_EQ(log_[static_cast<size_t>(i)], std::to_string(i));
    log_.clear();
    return arrived;
  };
  EXPECT_EQ(arrived_of_burst(/*takes=*/true), 1u + 24 * 8);
  EXPECT_EQ(arrived_of_burst(/*takes=*/false), 1u + 8 + 2 * 64);
}

// A reference outlives its dispatcher: the message is not handled, does not leak, and is counted.
TEST(Mailing, AReferenceMayOutliveItsDispatcher) {
  NoWaker waker;
  MutexCoordinator coordinator(1, waker);
  const uint16_t number = DispatcherTable::Open(coordinator).value();
  MailboxRegistry mailboxes(/*threaded=*/false);
  ActorSlot* const slot = mailboxes.Register({.dispatcher = number}).value();
  MailboxRegistry::LetGo(*slot);
  const ActorRef ref = slot->ref();
  DispatcherTable::Close(number);

  const uint64_t before = DispatcherTable::LateDeadLetters();
  Tell(ref, Number{1});
  TellSystem(ref, MakeEnvelope<Mark>(ActorRef(), 2));
  EXPECT_EQ(DispatcherTable::LateDeadLetters(), before + 1);
  EXPECT_TRUE(slot->mailbox.inbox.IsIdle());
  EXPECT_EQ(coordinator.ReadyCountHint(), 0u);
}

}  // namespace
}  // namespace fraktor::actor_internal
