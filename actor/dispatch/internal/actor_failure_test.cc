// Failures of actors, from the handler up to the decision of the supervisor.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/invoker_fixture.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure_cause.h"

namespace fraktor::actor_internal {
namespace {

class FailureTest : public InvokerTest {
 protected:
  // Fails on 13, logs the others.
  ActorRef SpawnFragile() {
    return Spawn([this](ActorContext&, Envelope& message) {
      const int value = message.As<Number>().value;
      if (value == 13) return absl::AbortedError("thirteen");
      log_.push_back(std::to_string(value));
      return absl::OkStatus();
    });
  }
};

// SCH-7: the lifecycle gets the failure once, with its message. The actor handles no user message
// until the supervisor has decided.
TEST_F(FailureTest, IsToldOnceWithItsMessage) {
  ActorRef actor = SpawnFragile();
  Tell(actor, Number{1});
  Tell(actor, Number{13});
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(failures_, std::vector<absl::Status>({absl::AbortedError("thirteen")}));
  EXPECT_EQ(failed_on_, std::vector<int>({13}));
  EXPECT_EQ(log_, Log({"1"}));
  EXPECT_TRUE(actor.slot()->mailbox.inbox.IsParked());

  // Another system message changes nothing: the actor stays suspended, and the failure is not
  // reported again.
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 5));
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(log_, Log({"1", "system 5"}));
  EXPECT_EQ(failures_.size(), 1u);

  ResumeIt(actor);
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"1", "system 5", "2"}));
  EXPECT_EQ(actor.slot()->failures, 0);
}

// SCH-7: the same for the last message of the budget.
TEST_F(FailureTest, OnTheLastMessageOfABudgetSuspendsToo) {
  ActorRef actor = SpawnFragile();
  Tell(actor, Number{13});
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor, 1), InvokeResult::kFailed);
  EXPECT_FALSE(AnythingReady());
  EXPECT_TRUE(log_.empty());
}

// Suspensions nest: each failure while the actor is suspended counts.
TEST_F(FailureTest, InAnAnswersHandlerNestsInAnEarlierOne) {
  ActorRef ask;
  ActorRef asker = SpawnDoer(
      {}, nullptr, [](ActorContext&, ActorRef, absl::StatusOr<Envelope*>) { return absl::InternalError("second"); });
  ActorRef nobody = SpawnDoer();
  Order(asker, [&](ActorContext& context) {
    ask = *context.AskOnReply(nobody, Number{0}, absl::Seconds(1));
    return absl::AbortedError("first");
  });
  EXPECT_EQ(Run(asker), InvokeResult::kFailed);
  EXPECT_EQ(failures_.back(), absl::AbortedError("first"));
  EXPECT_EQ(asker.slot()->failures, 1);
  Tell(ask, Number{3});
  Run(nobody);
  EXPECT_EQ(Run(asker), InvokeResult::kFailed);
  EXPECT_EQ(failures_.back(), absl::InternalError("second"));
  EXPECT_EQ(asker.slot()->failures, 2);
  EXPECT_EQ(failed_on_, std::vector<int>({-1, 3}));
}

TEST_F(FailureTest, IsTheEndIfTheActorWasToStop) {
  ActorRef actor = SpawnDoer();
  Order(actor, [](ActorContext& context) {
    context.Stop();
    return absl::AbortedError("and out");
  });
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
  EXPECT_EQ(failures_.size(), 1u);
  EXPECT_EQ(log_, Log({"ending", "ended"}));
  EXPECT_EQ(dead_, Dead({{1, DeadLetterReason::kStopped}}));
}

// The cause of one actor's failure is not reported for another actor on the same worker later.
TEST_F(FailureTest, OfAnActorThatEndedIsNotToldOfAnother) {
  ActorRef actor = SpawnDoer();
  Order(actor, [](ActorContext& context) {
    context.Stop();
    return absl::AbortedError("and out");
  });
  Run(actor);
  ActorRef other = SpawnLogger();
  TellSystem(other, MakeEnvelope<Suspend>(ActorRef()));
  EXPECT_EQ(Run(other), InvokeResult::kSuspended);
}

TEST_F(FailureTest, WithAVerdictAtOnceIsNotToldOfAnotherActor) {
  on_failure_ = [](ActorSlot& slot) { ResumeIt(slot.ref()); };
  ActorRef actor = SpawnFragile();
  Tell(actor, Number{13});
  Tell(actor, Number{2});
  EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  EXPECT_EQ(log_, Log({"2"}));
  ActorRef other = SpawnLogger();
  TellSystem(other, MakeEnvelope<Suspend>(ActorRef()));
  EXPECT_EQ(Run(other), InvokeResult::kSuspended);
}

// SCH-7: a start that fails is a failure without a message.
TEST_F(FailureTest, OfTheStartHasNoMessage) {
  start_status_ = absl::UnavailableError("no database");
  ActorRef actor = Spawn(std::make_unique<Doer>(log_), nullptr, static_cast<uint8_t>(Gate::kStarting));
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(failures_, std::vector<absl::Status>({absl::UnavailableError("no database")}));
  EXPECT_EQ(failed_on_, std::vector<int>({-2}));
  EXPECT_EQ(log_, Log({"start"}));
  ResumeIt(actor);
  Run(actor);
  EXPECT_EQ(log_, Log({"start", "1"})) << "it is not started again";
}

TEST_F(FailureTest, NothingStartsAnActorTwice) {
  ActorRef actor = Spawn(std::make_unique<Doer>(log_), nullptr, static_cast<uint8_t>(Gate::kStarting));
  for (int i = 1; i <= 3; ++i) {
    Tell(actor, Number{i});
    EXPECT_EQ(Run(actor), InvokeResult::kCompleted);
  }
  EXPECT_EQ(log_, Log({"start", "1", "2", "3"}));
}

TEST_F(FailureTest, DoesNotKeepBackWhatTheHandlerHasSent) {
  ActorRef sink = SpawnDoer();
  ActorRef actor = SpawnDoer();
  Order(actor, [&](ActorContext& context) {
    for (int i = 0; i < 3; ++i) context.Tell(sink, Number{i});
    return absl::AbortedError("after sending");
  });
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  Run(sink);
  EXPECT_EQ(log_, Log({"0", "1", "2"}));
}

TEST_F(FailureTest, MayBeSomethingThatIsNoException) {
  ActorRef actor = Spawn([](ActorContext&, Envelope& message) -> absl::Status {
    if (message.As<Number>().value == 0) throw 42;
    throw "text";
  });
  Tell(actor, Number{0});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  const absl::Status error = failures_.back();
  EXPECT_EQ(error.code(), absl::StatusCode::kInternal);
  EXPECT_NE(error.message().find("no std::exception"), std::string::npos) << error;
  ResumeIt(actor);
  Tell(actor, Number{1});
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
}

// The error may come from another actor, so the cause of this failure is reported beside it.
TEST_F(FailureTest, TellsHowTheActorFailedBesideTheError) {
  ActorRef actor = Spawn([](ActorContext&, Envelope& message) -> absl::Status {
    switch (message.As<Number>().value) {
      case 0:
        throw 42;
      case 1:
        throw std::runtime_error("thrown");
      default:
        return absl::InternalError("somebody else's");
    }
  });
  for (const int value : {2, 0, 2, 1, 2}) {
    Tell(actor, Number{value});
    EXPECT_EQ(Run(actor), InvokeResult::kFailed);
    ResumeIt(actor);
    Run(actor);
  }
  using enum FailureCause;
  EXPECT_EQ(causes_, std::vector<FailureCause>({kReturned, kThrownUnknown, kReturned, kThrown, kReturned}));
}

// An actor that stops ends although it is suspended, but not before its children have ended.
TEST_F(FailureTest, OfAnActorThatWaitsForItsChildrenDoesNotEndIt) {
  children_have_ended_ = false;
  ActorRef actor = SpawnFragile();
  Tell(actor, Number{13});
  Run(actor);
  StopIt(actor);
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_NE(actor.slot()->gate & static_cast<uint8_t>(Gate::kStopping), 0);
  children_have_ended_ = true;
  TellSystem(actor, MakeEnvelope<Mark>(ActorRef(), 1));
  EXPECT_EQ(Run(actor), InvokeResult::kStopped);
}

TEST_F(FailureTest, OfAHandlerThatPutItsMessageAsideLosesNothing) {
  EnvelopePtr stashed;
  ActorRef actor = SpawnDoer();
  Order(actor, [&](ActorContext& context) {
    stashed = context.Stash();
    return absl::AbortedError("put aside");
  });
  EXPECT_EQ(Run(actor), InvokeResult::kFailed);
  EXPECT_EQ(failures_, std::vector<absl::Status>({absl::AbortedError("put aside")}));
  EXPECT_EQ(failed_on_, std::vector<int>({-2})) << "the handler has the message";
  ASSERT_NE(stashed, nullptr);
  EXPECT_TRUE(stashed->Is<Do>());
}

}  // namespace
}  // namespace fraktor::actor_internal
