#include "fraktor/actor/timer/receive_timeout.h"

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/timer/timers.h"

namespace fraktor {

using pattern_internal::HoldUp;
using pattern_internal::PatternTest;
using pattern_internal::Script;

namespace {

struct Work {};
struct Quiet {};

}  // namespace

template <>
inline constexpr bool kLeavesReceiveTimeout<Quiet> = true;

namespace {

class ReceiveTimeoutTest : public PatternTest {
 protected:
  // Records its timeouts. The test decides what it does with a Quiet.
  Script Idling(absl::Duration timeout) {
    return {.receive =
                [this](ActorContext& context, Envelope& message) {
                  if (const auto* idle = message.TryAs<ReceiveTimeout>()) {
                    Note(absl::StrCat("idle ", absl::FormatDuration(idle->after)));
                  } else if (message.Is<Quiet>() && on_quiet_ != nullptr) {
                    return on_quiet_(context);
                  }
                  return absl::OkStatus();
                },
            .start = [timeout](ActorContext& context) { return SetReceiveTimeout(context, timeout); }};
  }

  std::function<absl::Status(ActorContext&)> on_quiet_;
};

// A86, A88, SCH-10: the timeout repeats, and carries its time.
TEST_F(ReceiveTimeoutTest, ComesAfterEachIdleTime) {
  Spawn(Idling(absl::Seconds(2)));
  RunFor(absl::Seconds(2) - absl::Nanoseconds(1));
  EXPECT_EQ(Take(), Log());
  RunFor(absl::Seconds(3));
  EXPECT_EQ(Take(), Log({"2: idle 2s", "4: idle 2s"}));
}

// A86
TEST_F(ReceiveTimeoutTest, BeginsAnewWithEachMessage) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(2)));
  for (int i = 0; i < 5; ++i) {
    RunFor(absl::Milliseconds(1500));
    Tell(actor, Work{});
  }
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"9.5: idle 2s"}));
}

// One timer for any number of messages: they touch none.
TEST_F(ReceiveTimeoutTest, ArmsNoTimerPerMessage) {
  const ActorRef actor = Spawn(Idling(absl::Hours(1)));
  Settle();
  for (int i = 0; i < 3000; ++i) Tell(actor, Work{});  // The toolbox holds a thousand timers.
  RunFor(absl::Minutes(59));
  EXPECT_EQ(Take(), Log());
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log({"3600: idle 1h"}));
}

// A86
TEST_F(ReceiveTimeoutTest, IsSwitchedOffByInfinityOrCancel) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  In(actor, [](ActorContext& context) {
    EXPECT_EQ(ReceiveTimeoutOf(context), absl::Seconds(1));
    EXPECT_TRUE(SetReceiveTimeout(context, absl::InfiniteDuration()).ok());
    EXPECT_EQ(ReceiveTimeoutOf(context), absl::InfiniteDuration());
  });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log());
  In(actor, [](ActorContext& context) { return SetReceiveTimeout(context, absl::Seconds(1)); });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"11: idle 1s"}));
  In(actor, [](ActorContext& context) { CancelReceiveTimeout(context); });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log());
}

// A88
TEST_F(ReceiveTimeoutTest, IsCancelledBeforeTheHookOfTheEndAndLeftByARestart) {
  Script script = Idling(absl::Seconds(2));
  script.pre_restart = [this](ActorContext& context, Envelope*) {
    Note(absl::StrCat("PreRestart ", absl::FormatDuration(ReceiveTimeoutOf(context))));
  };
  script.stop = [this](ActorContext& context) {
    Note(absl::StrCat("PostStop ", absl::FormatDuration(ReceiveTimeoutOf(context))));
  };
  const ActorRef actor = Spawn(std::move(script));
  In(actor, [](ActorContext&) { return absl::InternalError("broken"); });
  // The default PreRestart calls PostStop.
  EXPECT_EQ(Take(), Log({"0: PreRestart 2s", "0: PostStop 2s"}));
  In(actor, [](ActorContext& context) { context.Stop(); });
  EXPECT_EQ(Take(), Log({"0: PostStop inf"}));
}

// A86: within its own handler.
TEST_F(ReceiveTimeoutTest, MayBeCancelledWhenItComes) {
  int came = 0;
  Spawn({.receive =
             [&came](ActorContext& context, Envelope&) {
               ++came;
               CancelReceiveTimeout(context);
               return absl::OkStatus();
             },
         .start = [](ActorContext& context) { return SetReceiveTimeout(context, absl::Seconds(1)); }});
  RunFor(absl::Minutes(1));
  EXPECT_EQ(came, 1);
}

// A87: from other actors, from timers, and messages that the runtime answers.
TEST_F(ReceiveTimeoutTest, IsLeftAloneByMessagesThatSaySo) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  Settle();
  for (int i = 0; i < 6; ++i) {
    Tell(actor, Quiet{});
    Tell(actor, Identify{});
    RunFor(absl::Milliseconds(400));
  }
  EXPECT_EQ(Take(), Log({"1: idle 1s", "2: idle 1s"}));
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartFixedRate("q", Quiet{}, {.period = absl::Milliseconds(300)}).ok());
    return Timers(context).StartFixedDelay("i", Identify{}, {.period = absl::Milliseconds(300)});
  });
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"3.4: idle 1s", "4.4: idle 1s"}));
  // A timer's message of another type is activity.
  In(actor, [](ActorContext& context) {
    return Timers(context).StartFixedRate("w", Work{}, {.period = absl::Milliseconds(900)});
  });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log());
}

// A87: they may change it.
TEST_F(ReceiveTimeoutTest, MayBeSetAndClearedByMessagesThatLeaveItAlone) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  RunFor(absl::Milliseconds(500));
  on_quiet_ = [](ActorContext& context) {
    EXPECT_TRUE(SetReceiveTimeout(context, absl::Seconds(7)).ok());
    return SetReceiveTimeout(context, absl::Seconds(2));
  };
  Tell(actor, Quiet{});
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"2.5: idle 2s"}));
  on_quiet_ = [](ActorContext& context) { return SetReceiveTimeout(context, absl::InfiniteDuration()); };
  Tell(actor, Quiet{});
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log());
  on_quiet_ = [](ActorContext& context) { return SetReceiveTimeout(context, absl::Seconds(1)); };
  Tell(actor, Quiet{});
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take().size(), 1u);
}

// A message arrives after the timeout is due and before its turn: the actor was not idle.
TEST_F(ReceiveTimeoutTest, DoesNotComeAfterAMessageThatWasBeforeIt) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  In(actor, [](ActorContext& context) {
    // Due at the same time, and armed before. While the actor handles the first, the others arrive.
    EXPECT_TRUE(Timers(context).StartSingle("q", Quiet{}, absl::Seconds(1)).ok());
    EXPECT_TRUE(Timers(context).StartSingle("w", Work{}, absl::Seconds(1)).ok());
    return SetReceiveTimeout(context, absl::Seconds(1));
  });
  RunFor(absl::Milliseconds(1999));
  EXPECT_EQ(Take(), Log());
  RunFor(absl::Milliseconds(1));
  EXPECT_EQ(Take(), Log({"2: idle 1s"}));
}

// A waiting handler is activity, and the timeout counts from its end.
TEST_F(ReceiveTimeoutTest, CountsFromTheEndOfAHandlerThatWaits) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(2)));
  RunFor(absl::Seconds(1));
  In(actor, [](ActorContext& context) { return HoldUp(context, absl::Seconds(5)); });
  RunFor(absl::Seconds(8));
  EXPECT_EQ(Take(), Log({"8: idle 2s"}));
}

// A88
TEST_F(ReceiveTimeoutTest, StaysAcrossARestart) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  RunFor(absl::Milliseconds(500));
  In(actor, [](ActorContext&) { return absl::InternalError("as told"); });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1.5: idle 1s"}));
}

// A88: also if it was set by the hook of the old instance.
TEST_F(ReceiveTimeoutTest, WorksIfItIsSetDuringARestart) {
  const ActorRef actor =
      Spawn({.receive =
                 [this](ActorContext&, Envelope&) {
                   Note("idle");
                   return absl::OkStatus();
                 },
             .pre_restart = [](ActorContext& context,
                               Envelope*) { EXPECT_TRUE(SetReceiveTimeout(context, absl::Seconds(1)).ok()); }});
  In(actor, [](ActorContext&) { return absl::InternalError("as told"); });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: idle"}));
}

// A88
TEST_F(ReceiveTimeoutTest, EndsWithTheActor) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  In(actor, [](ActorContext& context) { context.Stop(); });
  const uint64_t steps = toolbox_->steps();
  RunFor(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps(), steps);
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

TEST_F(ReceiveTimeoutTest, RefusesWhatIsNoTimeAndKeepsTheEarlierOne) {
  const ActorRef actor = Spawn(Idling(absl::Seconds(1)));
  In(actor, [](ActorContext& context) {
    EXPECT_EQ(SetReceiveTimeout(context, absl::ZeroDuration()).message(),
              "receive timeout: the delay is 0; it must be positive, or infinite for none");
    EXPECT_EQ(SetReceiveTimeout(context, absl::Hours(10'000'000)).code(), absl::StatusCode::kInvalidArgument);
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: idle 1s"}));
}

}  // namespace
}  // namespace fraktor
