#include "fraktor/actor/dispatch/invoker_middleware.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/mailbox/internal/mailbox_limits.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure_cause.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"

namespace fraktor {

using actor_internal::AwaitingHandler;
using actor_internal::AwaitMode;
using actor_internal::EnvelopeList;
using actor_internal::ErrorOfAsk;
using actor_internal::InvokerTest;
using actor_internal::Mark;
using actor_internal::Number;
using actor_internal::SendAsk;
using actor_internal::WorkerMetrics;

namespace {

// Logs its calls, and returns what the test says.
class Recorder final : public InvokerMiddleware {
 public:
  explicit Recorder(std::string name) : name_(std::move(name)) {}

  MiddlewareFlow BeforeReceive(const Interception& at) override {
    log->push_back(name_ + " before " + TextOf(at.message));
    last_actor = at.actor;
    return before ? before(at) : MiddlewareFlow::Continue();
  }
  void AfterReceive(const Interception& at, const absl::Status& status) override {
    log->push_back(name_ + " after " + TextOf(at.message) +
                   (status.ok() ? "" : " " + absl::StatusCodeToString(status.code())));
    if (after) after(at);
  }

  void OnSystemMessage(const Interception& at) override {
    if (const auto* mark = at.message.TryAs<Mark>()) log->push_back(name_ + " hears " + std::to_string(mark->value));
    if (hears) hears(at);
  }

  std::vector<std::string>* log = nullptr;
  ActorRef last_actor;
  std::function<MiddlewareFlow(const Interception&)> before;
  std::function<void(const Interception&)> after;
  std::function<void(const Interception&)> hears;

 private:
  static std::string TextOf(const Envelope& message) {
    return message.Is<Number>() ? std::to_string(message.As<Number>().value) : "another";
  }

  const std::string name_;
};

MiddlewareFlow BreakUntil(uint64_t key) {
  return MiddlewareFlow::Break(SuspendReason::kUserDefined, ResumeCondition::ExternalSignal({key}));
}

class MiddlewareTest : public InvokerTest {
 protected:
  explicit MiddlewareTest(WorkerMetrics* metrics = nullptr)
      : MiddlewareTest(std::make_shared<Recorder>("a"), std::make_shared<Recorder>("b"), metrics) {}

  std::shared_ptr<Recorder> a_;
  std::shared_ptr<Recorder> b_;

 private:
  MiddlewareTest(std::shared_ptr<Recorder> a, std::shared_ptr<Recorder> b, WorkerMetrics* metrics)
      : InvokerTest({.middleware = {a, b}, .metrics = metrics}), a_(std::move(a)), b_(std::move(b)) {
    a_->log = &log_;
    b_->log = &log_;
  }
};

// SCH-6: before in order, after in reverse.
TEST_F(MiddlewareTest, SurroundsEachMessage) {
  ActorRef actor = SpawnLogger();
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "1", "b after 1", "a after 1",  //
                       "a before 2", "b before 2", "2", "b after 2", "a after 2"}));
  EXPECT_EQ(a_->last_actor, actor);
}

// SCH-6: a middleware sees system messages but cannot stop them, even if the actor is suspended.
TEST_F(MiddlewareTest, HearsOfSystemMessages) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  Run(actor);
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 5));
  Run(actor);
  EXPECT_EQ(log_, Log({"a before 1", "a hears 5", "b hears 5", "system 5"}));
}

// SCH-6: the others hear of the message, the actor handles it and has not failed.
TEST_F(MiddlewareTest, MayThrowWhenItHearsOfASystemMessage) {
  ActorRef actor = SpawnLogger();
  a_->hears = [](const Interception&) { throw std::runtime_error("no ears"); };
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 5));
  Run(actor);
  EXPECT_EQ(log_, Log({"a hears 5", "b hears 5", "system 5"}));
  EXPECT_TRUE(failures_.empty());
}

// SCH-6: the message stays at the front, and the invoker returns kSuspended.
TEST_F(MiddlewareTest, ABreakLeavesTheMessageInFrontAndSuspends) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) { return BreakUntil(7); };
  for (int i = 1; i <= 3; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"a before 1"})) << "neither b nor the handler is asked, and a is not told of an end";
  EXPECT_TRUE(failures_.empty()) << "to hold back is no failure";
  EXPECT_TRUE(actor.slot()->mailbox.inbox.IsParked());

  a_->before = nullptr;
  log_.clear();
  Tell(actor, Number{4});
  EXPECT_FALSE(AnythingReady()) << "a user message does not wake it";
  Signal(actor, {7});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  Log handled;
  for (const std::string& line : log_) {
    if (line.size() == 1) handled.push_back(line);
  }
  EXPECT_EQ(handled, Log({"1", "2", "3", "4"}));
}

// SCH-6
TEST_F(MiddlewareTest, TellsTheEndToThoseOnlyThatLetTheMessageThrough) {
  ActorRef actor = SpawnLogger();
  b_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  Run(actor);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "a after 1 ABORTED"}));
}

// SCH-6
TEST_F(MiddlewareTest, ASignalWithAnotherKeyChangesNothing) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  Run(actor);
  Signal(actor, {8});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"a before 1"})) << "not asked again";
  a_->before = nullptr;
  Signal(actor, {7});
  Run(actor);
  EXPECT_EQ(log_.back(), "a after 1");
}

// A signal that comes between the decision to suspend and the suspension is not lost.
TEST_F(MiddlewareTest, ASignalThatComesBeforeTheActorIsParkedCounts) {
  ActorRef actor = SpawnLogger();
  a_->before = [&](const Interception& at) {
    Signal(at.actor, {7});
    a_->before = nullptr;
    return BreakUntil(7);
  };
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"a before 1", "a before 1", "b before 1", "1", "b after 1", "a after 1"}));
}

TEST_F(MiddlewareTest, ASignalToAnActorThatWaitsForNothingIsNotNoticed) {
  ActorRef actor = SpawnLogger();
  Signal(actor, {0});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_TRUE(log_.empty());
}

// SCH-3: After, by virtual time, not a nanosecond early.
TEST_F(MiddlewareTest, GoesOnAfterATime) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) {
    return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Seconds(5)));
  };
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  Advance(absl::Seconds(5) - absl::Nanoseconds(1));
  EXPECT_EQ(log_, Log({"a before 1"}));
  Advance(absl::Nanoseconds(1));
  EXPECT_EQ(log_, Log({"a before 1", "a before 1"})) << "asked again, and held back again";
  a_->before = nullptr;
  Advance(absl::Seconds(5));
  EXPECT_EQ(log_.back(), "a after 1");
}

// SCH-3: an ask that times out reports why its target is suspended, and until when. A system
// message in between does not change the report.
TEST_F(MiddlewareTest, TheErrorOfAnAskTellsWhyItsTargetIsSuspended) {
  struct Case {
    MiddlewareFlow flow;
    std::string text;
  };
  for (const Case& suspension :
       {Case{BreakUntil(7), "until signal 7 (UserDefined)"},
        Case{MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Minutes(1))),
             "for 1m (RateLimit)"},
        Case{MiddlewareFlow::Break(SuspendReason::kBackpressure, ResumeCondition::WhenCapacityAvailable()),
             "until signal 0 (Backpressure)"}}) {
    ActorRef actor = SpawnLogger();
    ErrorOfAsk error(absl::Seconds(1));
    ActorRef asker = SpawnDoer();
    a_->before = [&](const Interception& at) {
      return at.actor == actor ? suspension.flow : MiddlewareFlow::Continue();
    };
    Order(asker, [&](ActorContext&) { return SendAsk(worker_, actor, MakeEnvelope<Number>(ActorRef(), 1), error); });
    RunAll();
    TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 5));
    Advance(absl::Seconds(1));
    EXPECT_NE(error.text.find("1 message waits in its mailbox, and a middleware suspends it " + suspension.text),
              std::string::npos)
        << error.text;
    a_->before = nullptr;
  }
}

// The timer of a suspension that ended early does not end the next one.
TEST_F(MiddlewareTest, AnOldTimerDoesNotEndALaterWait) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) {
    return MiddlewareFlow::Break(SuspendReason::kRateLimit, ResumeCondition::After(absl::Seconds(5)));
  };
  Tell(actor, Number{1});
  Run(actor);
  a_->before = [](const Interception&) { return BreakUntil(7); };
  ResumeIt(actor);
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  Advance(absl::Seconds(10));
  EXPECT_EQ(log_, Log({"a before 1", "a before 1"}));
  a_->before = nullptr;
}

// SCH-7
TEST_F(MiddlewareTest, WhatAMiddlewareThrowsIsTheActorsFailure) {
  ActorRef actor = SpawnLogger();
  b_->before = [](const Interception&) -> MiddlewareFlow { throw std::runtime_error("no ticket"); };
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].message().find("a middleware before a handler of "), 0u) << failures_[0];
  EXPECT_NE(failures_[0].message().find("threw: no ticket"), std::string::npos) << failures_[0];
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "a after 1 INTERNAL"}));
  EXPECT_EQ(failed_on_, std::vector<int>({1}));

  b_->before = nullptr;
  b_->after = [](const Interception&) { throw 42; };
  ResumeIt(actor);
  log_.clear();
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(log_, Log({"a before 2", "b before 2", "2", "b after 2", "a after 2 INTERNAL"}));
  EXPECT_EQ(failed_on_, std::vector<int>({1, 2}));
}

// SCH-6
TEST_F(MiddlewareTest, WhatAHandlerThrowsIsNotTakenForTheMiddlewares) {
  ActorRef actor = Spawn([](ActorContext&, Envelope&) -> absl::Status { throw std::runtime_error("gone"); });
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(failures_.back().message().find("a handler of "), 0u) << failures_.back();
}

TEST_F(MiddlewareTest, TheEndIsToldOfAHandlersFailure) {
  ActorRef actor = Spawn([](ActorContext&, Envelope&) { return absl::DataLossError("gone"); });
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(failures_, std::vector<absl::Status>({absl::DataLossError("gone")}));
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1 DATA_LOSS", "a after 1 DATA_LOSS"}));
}

// A57
TEST_F(MiddlewareTest, TheBudgetHolds) {
  ActorRef actor = SpawnLogger();
  for (int i = 0; i < 5; ++i) Tell(actor, Number{i});
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(log_.size(), 10u);
  EXPECT_EQ(Run(actor, 2), InvokeResult::kYielded);
  EXPECT_EQ(Run(actor, 2), InvokeResult::kCompleted);
  EXPECT_EQ(log_.size(), 25u);
}

// SCH-8
TEST_F(MiddlewareTest, AnActorThatIsHeldBackHandlesSystemMessages) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  Run(actor);
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 3));
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  EXPECT_EQ(log_, Log({"a before 1", "a hears 3", "b hears 3", "system 3"})) << "system messages are not held back";
  StopIt(actor);
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kStopped}}));
}

TEST_F(MiddlewareTest, AReasonThatIsTheSchedulersOwnIsEndedByASignalToo) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) {
    return MiddlewareFlow::Break(SuspendReason::kBackpressure, ResumeCondition::WhenCapacityAvailable());
  };
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kSuspended);
  a_->before = nullptr;
  Signal(actor, {0});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_.back(), "a after 1");
}

// AfterReceive is called by the stash, and BeforeReceive again when the message is unstashed.
TEST_F(MiddlewareTest, AMessageThatIsPutAsideIsInterceptedAgain) {
  EnvelopePtr stashed;
  ActorRef actor = Spawn([&](ActorContext& context, Envelope& message) {
    const int value = message.As<Number>().value;
    if (value == 1 && log_.size() == 2) {
      stashed = context.Stash();
      log_.emplace_back("stashed");
      return absl::OkStatus();
    }
    log_.push_back(std::to_string(value));
    if (stashed != nullptr) {
      EnvelopeList list;
      list.PushBack(stashed.release());
      context.Unstash(list);
    }
    return absl::OkStatus();
  });
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  Run(actor);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1", "a after 1", "stashed",  //
                       "a before 2", "b before 2", "2", "b after 2", "a after 2",        //
                       "a before 1", "b before 1", "1", "b after 1", "a after 1"}));
}

TEST_F(MiddlewareTest, AMessageThatIsForwardedHasBeenHandledHere) {
  const ActorRef other = SpawnLogger();
  const ActorRef actor = Spawn([&](ActorContext& context, Envelope&) {
    context.Forward(other);
    return absl::OkStatus();
  });
  Tell(actor, Number{1});
  RunAll();
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1", "a after 1",  //
                       "a before 1", "b before 1", "1", "b after 1", "a after 1"}));
}

// A stash is refused if a middleware throws, and the message fails.
TEST_F(MiddlewareTest, WhatAMiddlewareThrowsAtAStashIsTheActorsFailure) {
  b_->after = [](const Interception&) { throw std::runtime_error("no place"); };
  EnvelopePtr stashed;
  const ActorRef actor = Spawn([&](ActorContext& context, Envelope&) {
    stashed = context.Stash();
    return absl::OkStatus();
  });
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(stashed, nullptr);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1", "a after 1 INTERNAL"}));
  EXPECT_EQ(failed_on_, std::vector<int>({1}));
}

class CoroutineHandler final : public AwaitingHandler {
 public:
  explicit CoroutineHandler(Task<void> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}

  bool Step() override { return running_.Resume(); }
  absl::Status Finish(ActorContext&) override {
    if (std::exception_ptr thrown = running_.exception()) std::rethrow_exception(thrown);
    return running_.TakeResult();
  }

 private:
  RunningTask<void> running_;
};

// An actor whose handlers are coroutines, which wait for `promises_`. Message 0 does not wait.
class CoroutineMiddlewareTest : public MiddlewareTest {
 protected:
  enum class What : uint8_t { kReturn, kThrow, kStash, kWaitAgain };

  ActorRef SpawnWaiting(AwaitMode mode, What what = What::kReturn) {
    return Spawn([this, mode, what](ActorContext& context, Envelope& message) {
      return RunHandler(
          context, std::make_unique<CoroutineHandler>(Handle(*this, context, message.As<Number>().value, what)), mode);
    });
  }
  void Resume(size_t wait) {
    promises_[wait].Set(0);
    RunAll();
  }
  Future<int> NewWait() {
    auto [promise, future] = MakePromise<int>();
    promises_.push_back(std::move(promise));
    return std::move(future);
  }
  // The coroutine keeps its parameters.
  static Task<void> Handle(CoroutineMiddlewareTest& test, ActorContext& context, int value, What what) {
    if (value != 0) {
      Future<int> future = test.NewWait();
      EXPECT_TRUE((co_await future).ok());
    }
    if (what == What::kThrow) throw std::runtime_error("late");
    if (what == What::kStash) {
      test.stashed_ = context.Stash();
      EXPECT_NE(test.stashed_, nullptr);
    }
    if (what == What::kStash || what == What::kWaitAgain) {
      Future<int> future = test.NewWait();
      EXPECT_TRUE((co_await future).ok());
    }
    test.log_.push_back(std::to_string(value));
  }

  std::vector<Promise<int>> promises_;
  EnvelopePtr stashed_;
};

TEST_F(CoroutineMiddlewareTest, OneThatDoesNotWaitEndsAtOnce) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kExclusive);
  Tell(actor, Number{0});
  RunAll();
  EXPECT_EQ(log_, Log({"a before 0", "b before 0", "0", "b after 0", "a after 0"}));
}

TEST_F(CoroutineMiddlewareTest, OneThatWaitsEndsInALaterTurn) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kExclusive, What::kWaitAgain);
  Tell(actor, Number{1});
  RunAll();
  EXPECT_EQ(log_, Log({"a before 1", "b before 1"}));
  Resume(0);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1"}));
  Resume(1);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "1", "b after 1", "a after 1"}));
  StopIt(actor);
  RunAll();
  EXPECT_EQ(log_.size(), 7u) << "and never again";
}

TEST_F(CoroutineMiddlewareTest, OneThatWaitsAndThrowsEndsWithTheError) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kExclusive, What::kThrow);
  Tell(actor, Number{1});
  RunAll();
  Resume(0);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1 INTERNAL", "a after 1 INTERNAL"}));
  EXPECT_EQ(failed_on_, std::vector<int>({1}));
}

TEST_F(CoroutineMiddlewareTest, InterleavingOnesEndEachOnce) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kInterleaving);
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  RunAll();
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "a before 2", "b before 2"}));
  log_.clear();
  Resume(1);
  EXPECT_EQ(log_, Log({"2", "b after 2", "a after 2"}));
  log_.clear();
  Resume(0);
  EXPECT_EQ(log_, Log({"1", "b after 1", "a after 1"}));
}

TEST_F(CoroutineMiddlewareTest, OneThatStashesItsMessageLaterEndsWithTheStash) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kExclusive, What::kStash);
  Tell(actor, Number{1});
  RunAll();
  Resume(0);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1", "a after 1"}));
  Resume(1);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "b after 1", "a after 1", "1"}));
}

TEST_F(CoroutineMiddlewareTest, OneThatIsCancelledEndsOnce) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kInterleaving);
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  RunAll();
  log_.clear();
  StopIt(actor);
  RunAll();
  EXPECT_EQ(Log(log_.begin(), log_.begin() + 4),
            Log({"b after 1 CANCELLED", "a after 1 CANCELLED", "b after 2 CANCELLED", "a after 2 CANCELLED"}));
  EXPECT_EQ(log_.back(), "ended");
}

// An exception of AfterReceive is a failure of the actor, on the message of the coroutine.
TEST_F(CoroutineMiddlewareTest, WhatAMiddlewareThrowsAfterTheEndIsTheActorsFailure) {
  const ActorRef actor = SpawnWaiting(AwaitMode::kExclusive);
  b_->after = [](const Interception&) { throw 42; };
  Tell(actor, Number{1});
  RunAll();
  EXPECT_TRUE(failures_.empty());
  Resume(0);
  EXPECT_EQ(log_, Log({"a before 1", "b before 1", "1", "b after 1", "a after 1 INTERNAL"}));
  EXPECT_EQ(failed_on_, std::vector<int>({1}));
  EXPECT_EQ(causes_, std::vector<FailureCause>({FailureCause::kThrownUnknown}));
}

TEST_F(MiddlewareTest, ABreakKeepsTheOrderOfAPriorityMailbox) {
  const MailboxOptions options{.order = MessageOrder::kPriority,
                               .priority = [](const Envelope& message) { return -message.As<Number>().value; }};
  ActorRef actor = SpawnLogger(&options);
  a_->before = [](const Interception&) { return BreakUntil(7); };
  for (int i = 1; i <= 3; ++i) Tell(actor, Number{i});
  Run(actor);
  EXPECT_EQ(log_, Log({"a before 3"}));
  a_->before = nullptr;
  Tell(actor, Number{9});
  Signal(actor, {7});
  Run(actor);
  Log handled;
  for (const std::string& line : log_) {
    if (line.size() == 1) handled.push_back(line);
  }
  EXPECT_EQ(handled, Log({"3", "9", "2", "1"})) << "the one that was held back keeps its place in front";
}

TEST_F(MiddlewareTest, ABreakDoesNotCountAMessageTwice) {
  const MailboxOptions options{.capacity = 2, .overflow = OverflowStrategy::kReject};
  ActorRef actor = SpawnLogger(&options);
  a_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  Tell(actor, Number{2});
  Run(actor);
  a_->before = nullptr;
  Signal(actor, {7});
  Run(actor);
  EXPECT_EQ(actor.slot()->limits.load()->depth(), 0u);
  EXPECT_EQ(log_.back(), "a after 2");
}

// The first error and its cause are reported.
TEST_F(MiddlewareTest, DoesNotChangeHowTheHandlerFailed) {
  using enum FailureCause;
  ActorRef actor = Spawn([](ActorContext&, Envelope& message) -> absl::Status {
    if (message.As<Number>().value == 1) throw std::runtime_error("thrown");
    return message.As<Number>().value == 2 ? absl::InternalError("returned") : absl::OkStatus();
  });
  b_->after = [](const Interception&) { throw 42; };
  for (const int value : {1, 2, 3}) {
    Tell(actor, Number{value});
    EXPECT_EQ(Run(actor), InvokeResult::kFailed);
    ResumeIt(actor);
    Run(actor);
  }
  EXPECT_EQ(causes_, std::vector<FailureCause>({kThrown, kReturned, kThrownUnknown}));
}

std::atomic<uint32_t> every_message{1};

class MeasuredMiddlewareTest : public MiddlewareTest {
 protected:
  MeasuredMiddlewareTest() : MiddlewareTest(&Metrics()) {}
  static WorkerMetrics& Metrics() {
    static WorkerMetrics& metrics = *new WorkerMetrics(every_message, 8);
    return metrics;
  }
  static uint64_t Timed() {
    DurationTotals totals;
    Metrics().latency().AddTo(totals);
    return totals.count();
  }
};

// SCH-11: sampled messages are measured, with middleware too.
TEST_F(MeasuredMiddlewareTest, SampledMessagesAreTimed) {
  ActorRef sink = SpawnLogger();
  ActorRef source = Spawn([&](ActorContext& context, Envelope&) {
    context.Tell(sink, Number{2});
    return absl::OkStatus();
  });
  Tell(source, Number{1});
  Run(source);
  const uint64_t before = Timed();
  Run(sink);
  EXPECT_EQ(Timed(), before + 1);
}

// SCH-11: a message that a middleware stops is still in its mailbox.
TEST_F(MeasuredMiddlewareTest, AMessageThatIsHeldBackIsNotCountedAsHandled) {
  ActorRef actor = SpawnLogger();
  a_->before = [](const Interception&) { return BreakUntil(7); };
  Tell(actor, Number{1});
  const uint64_t before = Metrics().handled(0);
  Run(actor);
  EXPECT_EQ(Metrics().handled(0), before);
  a_->before = nullptr;
  Signal(actor, {7});
  Run(actor);
  EXPECT_EQ(Metrics().handled(0), before + 1);
}

}  // namespace
}  // namespace fraktor
