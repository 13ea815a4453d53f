#include "fraktor/actor/timer/timers.h"

#include <cstdint>
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

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/timer/receive_timeout.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {

using pattern_internal::CoarseToolbox;
using pattern_internal::HoldUp;
using pattern_internal::PatternTest;
using pattern_internal::Script;

namespace {

struct Tick {
  std::string text = "tick";
};
struct Important : ControlMessage {};

class TimersTest : public PatternTest {
 protected:
  using PatternTest::PatternTest;

  Script Noting() {
    return {.receive = [this](ActorContext& context, Envelope& message) {
      if (!message.Is<Tick>()) return context.Unhandled(message);
      Note(message.As<Tick>().text);
      if (message.As<Tick>().text == "fail") return absl::InternalError("as told");
      return absl::OkStatus();
    }};
  }
};

TEST_F(TimersTest, SendASingleMessageOnceAndNotEarly) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    Timers timers(context);
    EXPECT_FALSE(timers.IsActive("a"));
    EXPECT_TRUE(timers.StartSingle("a", Tick{"a"}, absl::Seconds(2)).ok());
    EXPECT_TRUE(timers.StartSingle("now", Tick{"now"}, absl::Seconds(-1)).ok());
    EXPECT_TRUE(timers.IsActive("a"));
    EXPECT_EQ(timers.size(), 2u);
  });
  EXPECT_EQ(Take(), Log({"0: now"}));
  RunFor(absl::Seconds(2) - absl::Nanoseconds(1));
  EXPECT_EQ(Take(), Log());
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log({"2: a"}));
  In(actor, [](ActorContext& context) { EXPECT_EQ(Timers(context).size(), 0u); });
}

TEST_F(TimersTest, MayCarryWhatCannotBeCopied) {
  int sum = 0;
  const ActorRef actor = Spawn({.receive = [&sum](ActorContext&, Envelope& message) {
    sum += *message.As<std::unique_ptr<int>>();
    return absl::OkStatus();
  }});
  In(actor, [](ActorContext& context) {
    return Timers(context).StartSingle("one", std::make_unique<int>(7), absl::Seconds(1));
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(sum, 7);
}

// A126
TEST_F(TimersTest, RepeatAtAFixedRateUntilCancelled) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    return Timers(context).StartFixedRate("t", Tick{}, {.period = absl::Seconds(2), .initial_delay = absl::Seconds(1)});
  });
  RunFor(absl::Seconds(6));
  EXPECT_EQ(Take(), Log({"1: tick", "3: tick", "5: tick"}));
  EXPECT_EQ(toolbox_->last_cadence(), Cadence::kFixedRate);
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).IsActive("t"));
    EXPECT_TRUE(Timers(context).Cancel("t"));
    EXPECT_FALSE(Timers(context).Cancel("t"));
  });
  RunFor(absl::Seconds(60));
  EXPECT_EQ(Take(), Log());
}

// A126: the toolbox counts the delay; its own tests show that it waits after the task.
TEST_F(TimersTest, RepeatWithAFixedDelay) {
  const ActorRef actor = Spawn(Noting());
  In(actor,
     [](ActorContext& context) { return Timers(context).StartFixedDelay("t", Tick{}, {.period = absl::Seconds(2)}); });
  EXPECT_EQ(toolbox_->last_cadence(), Cadence::kFixedDelay);
  RunFor(absl::Seconds(4));
  EXPECT_EQ(Take(), Log({"2: tick", "4: tick"}));
}

class HeldUpTimersTest : public TimersTest {
 protected:
  HeldUpTimersTest() : TimersTest(std::make_unique<CoarseToolbox>(/*held_up=*/4)) {}
};

// A126: the limit protects an actor that cannot keep up.
TEST_F(TimersTest, GatherOnlySoMuchInTheMailbox) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartFixedRate("t", Tick{}, {.period = absl::Seconds(1)}).ok());
    return HoldUp(context, absl::Seconds(2 * kMaxCatchUp) + absl::Milliseconds(500));
  });
  RunFor(absl::Seconds(2 * kMaxCatchUp + 2));
  const Log lines = Take();
  ASSERT_EQ(lines.size(), kMaxCatchUp + 2);
  EXPECT_EQ(lines.front(), "2000.5: tick");
  EXPECT_EQ(lines.back(), "2002: tick") << "and goes on afterwards";
}

// A126
TEST_F(HeldUpTimersTest, CatchUpAtAFixedRate) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    return Timers(context).StartFixedRate("t", Tick{}, {.period = absl::Milliseconds(25)});
  });
  RunFor(absl::Milliseconds(1025));
  // 40 a second, four at a time.
  EXPECT_EQ(Take().size(), 44u);
}

TEST_F(TimersTest, ReplaceATimerOfTheSameKey) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartFixedRate("t", Tick{"old"}, {.period = absl::Seconds(1)}).ok());
    EXPECT_TRUE(Timers(context).StartSingle("t", Tick{"new"}, absl::Seconds(3)).ok());
    EXPECT_EQ(Timers(context).size(), 1u);
  });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log({"3: new"}));
}

TEST_F(TimersTest, LetAHandlerStartItsOwnTimerAgain) {
  const ActorRef actor = Spawn({.receive = [this](ActorContext& context, Envelope&) {
    Note(Timers(context).IsActive("t") ? "active" : "over");
    return Timers(context).StartSingle("t", Tick{}, absl::Seconds(1));
  }});
  Tell(actor, Tick{});
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"0: over", "1: over", "2: over"}));
}

// A81: messages that are in the mailbox when their timer is cancelled.
TEST_F(TimersTest, DropWhatIsQueuedByThen) {
  const ActorRef actor = Spawn({.receive = [this](ActorContext& context, Envelope& message) {
    Note(message.As<Tick>().text);
    // The others are in the mailbox, behind this one.
    if (message.As<Tick>().text == "first") {
      Timers timers(context);
      EXPECT_TRUE(timers.IsActive("cancelled"));
      EXPECT_TRUE(timers.Cancel("cancelled"));
      EXPECT_TRUE(timers.Cancel("rate"));
      EXPECT_TRUE(timers.StartSingle("replaced", Tick{"replacement"}, absl::Seconds(1)).ok());
    }
    return absl::OkStatus();
  }});
  In(actor, [](ActorContext& context) {
    Timers timers(context);
    for (const char* key : {"first", "cancelled", "replaced", "kept"}) {
      EXPECT_TRUE(timers.StartSingle(key, Tick{key}, absl::Seconds(1)).ok());
    }
    EXPECT_TRUE(timers.StartFixedRate("rate", Tick{"rate"}, {.period = absl::Seconds(1)}).ok());
    return HoldUp(context, absl::Milliseconds(1500));
  });
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Take(), Log({"1.5: first", "1.5: kept", "2.5: replacement"}));
}

TEST_F(TimersTest, AreCancelledByARestart) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    Timers timers(context);
    EXPECT_TRUE(timers.StartSingle("fail", Tick{"fail"}, absl::Seconds(1)).ok());
    EXPECT_TRUE(timers.StartSingle("queued", Tick{"queued"}, absl::Seconds(1)).ok());
    EXPECT_TRUE(timers.StartFixedRate("rate", Tick{"rate"}, {.period = absl::Seconds(2)}).ok());
  });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take(), Log({"1: fail"}));
  In(actor, [](ActorContext& context) {
    EXPECT_EQ(Timers(context).size(), 0u);
    return Timers(context).StartSingle("fresh", Tick{"fresh"}, absl::Seconds(1));
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"11: fresh"}));
}

TEST_F(TimersTest, AreCancelledBeforeTheHooksOfARestartAndOfAnEnd) {
  Script script = Noting();
  const auto note = [this](const char* hook, ActorContext& context) {
    Timers timers(context);
    Note(absl::StrCat(hook, timers.IsActive("rate") ? " sees it" : " sees none", " of ", timers.size()));
    EXPECT_FALSE(timers.Cancel("rate")) << "There is nothing left to cancel.";
    // A timer that the hook starts ends with the instance, too.
    EXPECT_TRUE(timers.StartSingle("late", Tick{"late"}, absl::Seconds(1)).ok());
  };
  script.pre_restart = [note](ActorContext& context, Envelope*) { note("PreRestart", context); };
  script.stop = [note](ActorContext& context) { note("PostStop", context); };
  const ActorRef actor = Spawn(std::move(script));
  const auto begin = [](ActorContext& context) {
    return Timers(context).StartFixedRate("rate", Tick{"rate"}, {.period = absl::Hours(1)});
  };
  In(actor, begin);
  In(actor, [](ActorContext&) { return absl::InternalError("broken"); });
  // The default PreRestart calls PostStop.
  EXPECT_EQ(Take(), Log({"0: PreRestart sees none of 0", "0: PostStop sees none of 1"}));
  In(actor, begin);
  In(actor, [](ActorContext& context) { context.Stop(); });
  EXPECT_EQ(Take(), Log({"0: PostStop sees none of 0"}));
  EXPECT_FALSE(IsAlive(actor));
  RunFor(absl::Hours(2));
  EXPECT_EQ(Take(), Log());
}

TEST_F(TimersTest, EndWithTheActorWithoutDeadLetters) {
  const ActorRef actor = Spawn({.stop = [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartSingle("late", Tick{}, absl::Seconds(1)).ok());
  }});
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartFixedRate("rate", Tick{}, {.period = absl::Seconds(1)}).ok());
    context.Stop();
  });
  EXPECT_FALSE(IsAlive(actor));
  const uint64_t steps = toolbox_->steps();
  RunFor(absl::Hours(1));
  // No timer fires.
  EXPECT_EQ(toolbox_->steps(), steps);
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

// A85
TEST_F(TimersTest, StopTheActorByPoisonPill) {
  const ActorRef actor = Spawn(Noting());
  const ActorRef spared = Spawn(Noting());
  for (const ActorRef each : {actor, spared}) {
    In(each, [](ActorContext& context) { return Timers(context).StartSingle("end", PoisonPill{}, absl::Seconds(1)); });
  }
  In(spared, [](ActorContext& context) { EXPECT_TRUE(Timers(context).Cancel("end")); });
  RunFor(absl::Seconds(1));
  EXPECT_FALSE(IsAlive(actor));
  EXPECT_TRUE(IsAlive(spared));
}

// A81, A85: a pill whose timer is cancelled while the pill is in the mailbox kills nobody.
TEST_F(TimersTest, DropAQueuedPoisonPillThatIsCancelled) {
  const ActorRef actor = Spawn({.receive = [](ActorContext& context, Envelope&) {
    EXPECT_TRUE(Timers(context).Cancel("end"));
    return absl::OkStatus();
  }});
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartSingle("first", Tick{}, absl::Seconds(1)).ok());
    EXPECT_TRUE(Timers(context).StartSingle("end", PoisonPill{}, absl::Seconds(1)).ok());
    return HoldUp(context, absl::Milliseconds(1500));
  });
  RunFor(absl::Seconds(2));
  EXPECT_TRUE(IsAlive(actor));
}

// A85
TEST_F(TimersTest, ShowPreRestartTheMessageItself) {
  Script script = Noting();
  script.pre_restart = [this](ActorContext&, Envelope* message) {
    Note(message == nullptr || !message->Is<Tick>() ? "nothing"
                                                    : absl::StrCat("restart by ", message->As<Tick>().text));
  };
  const ActorRef actor = Spawn(std::move(script));
  In(actor, [](ActorContext& context) { return Timers(context).StartSingle("t", Tick{"fail"}, absl::Seconds(1)); });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: fail", "1: restart by fail"}));
}

TEST_F(TimersTest, GoPastTheLimitOfAMailbox) {
  const ActorRef actor =
      Spawn(Noting(), {.mailbox = {.capacity = 2, .overflow = OverflowStrategy::kReject, .reserve_for_system = 0}});
  In(actor, [](ActorContext& context) {
    for (const char* key : {"a", "b", "c", "d"}) {
      EXPECT_TRUE(Timers(context).StartSingle(key, Tick{key}, absl::Seconds(1)).ok());
    }
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: a", "1: b", "1: c", "1: d"}));
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

// A65: the priority is that of the message, not that of its timer.
TEST_F(TimersTest, AreRankedByTheirMessages) {
  Script script{.receive = [this](ActorContext&, Envelope& message) {
    Note(message.Is<Important>() ? "important" : message.As<Tick>().text);
    return absl::OkStatus();
  }};
  const ActorRef actor = Spawn(std::move(script), {.mailbox = {.order = MessageOrder::kControlFirst}});
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(Timers(context).StartSingle("a", Tick{"a"}, absl::Seconds(1)).ok());
    EXPECT_TRUE(Timers(context).StartSingle("b", Tick{"b"}, absl::Seconds(1)).ok());
    return Timers(context).StartSingle("c", Important{}, absl::Seconds(1));
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: important", "1: a", "1: b"}));
}

// A127, and the other refusals; an earlier timer of the key stays.
TEST_F(TimersTest, RefuseWhatCannotBe) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    Timers timers(context);
    EXPECT_TRUE(timers.StartSingle("t", Tick{}, absl::Seconds(1)).ok());
    EXPECT_TRUE(timers.StartSingle("far", Tick{}, kMaxTimerDelay).ok());
    const absl::Status forever = timers.StartSingle("t", Tick{}, absl::InfiniteDuration());
    EXPECT_EQ(forever.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(forever.message(), "timer \"t\": the delay is inf; use at most 876000h");
    EXPECT_EQ(timers.StartFixedRate("t", Tick{}, {}).message(), "timer \"t\": the period is 0; it must be positive");
    EXPECT_FALSE(timers.StartFixedDelay("t", Tick{}, {.period = kMaxTimerDelay + absl::Seconds(1)}).ok());
    EXPECT_FALSE(
        timers.StartFixedRate("t", Tick{}, {.period = absl::Seconds(1), .initial_delay = absl::InfiniteDuration()})
            .ok());
    timers.SetLimit(2);
    const absl::Status many = timers.StartSingle("third", Tick{}, absl::Seconds(1));
    EXPECT_EQ(many.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(many.message().find("timer \"third\" was not started: pekko://"), absl::string_view::npos) << many;
    EXPECT_NE(many.message().find(" has 2 timers already; cancel some"), absl::string_view::npos) << many;
    EXPECT_TRUE(timers.StartSingle("t", Tick{"again"}, absl::Seconds(2)).ok()) << "a replacement is none more";
    EXPECT_TRUE(timers.Cancel("far"));
  });
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Take(), Log({"2: again"}));
}

// The toolbox of the fixture holds a thousand.
TEST_F(TimersTest, SayWhenTheToolboxHasNoneLeft) {
  const ActorRef actor = Spawn(Noting());
  In(actor, [](ActorContext& context) {
    absl::Status last;
    int started = 0;
    for (; last.ok() && started < 1024; ++started) {
      last = Timers(context).StartSingle(absl::StrCat("t", started), Tick{}, absl::Seconds(1));
    }
    EXPECT_EQ(last.code(), absl::StatusCode::kResourceExhausted) << last;
    Timers(context).CancelAll();
    EXPECT_TRUE(Timers(context).StartSingle("t", Tick{}, absl::Seconds(1)).ok());
  });
}

struct CopiesBadly {
  CopiesBadly() = default;
  CopiesBadly(CopiesBadly&&) noexcept = default;
  CopiesBadly(const CopiesBadly&) { throw std::runtime_error("no copy"); }
};

TEST_F(TimersTest, FailTheActorWhoseMessageCannotBeCopied) {
  Script script;
  script.pre_restart = [this](ActorContext&, Envelope*) { Note("restart"); };
  const ActorRef actor = Spawn(std::move(script));
  In(actor, [](ActorContext& context) {
    return Timers(context).StartFixedRate("t", CopiesBadly{}, {.period = absl::Seconds(1)});
  });
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Take(), Log({"1: restart"}));
  ASSERT_FALSE(kept_log_.lines.empty());
  EXPECT_NE(kept_log_.lines.back().find("the copy of a timer's message threw: no copy"), std::string::npos);
}

// SCH-11: every message that is counted out of the mailbox was counted in.
TEST_F(TimersTest, KeepTheDepthOfTheMailboxRight) {
  const ActorRef actor = Spawn(Noting());
  In(actor,
     [](ActorContext& context) { return Timers(context).StartFixedRate("t", Tick{}, {.period = absl::Seconds(1)}); });
  RunFor(absl::Seconds(10));
  EXPECT_EQ(Take().size(), 10u);
  In(actor, [](ActorContext& context) {
    Timers(context).CancelAll();
    return HoldUp(context, absl::Seconds(1));
  });
  Tell(actor, Tick{});
  Tell(actor, Tick{});
  Settle();
  EXPECT_EQ(MailboxDepth(), 2);
}

// A system that ends while timers are armed leaves none behind in a toolbox that lives on.
TEST_F(TimersTest, GoWithTheSystem) {
  const ActorRef actor = Spawn({.stop = [](ActorContext&) {}});
  In(actor,
     [](ActorContext& context) { return Timers(context).StartFixedRate("t", Tick{}, {.period = absl::Seconds(1)}); });
  system_.reset();
  const uint64_t steps = toolbox_->steps();
  RunFor(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps(), steps);
}

struct Go {};
struct Round {};
struct Numbered {
  int number;
};
struct Stale {
  int count;
};

// Replaces its timer in a loop, while other actors fire theirs on other threads.
class Racer final : public ActorInstance {
 public:
  static constexpr int kRounds = 500;

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Go>()) {
      asker_ = context.sender();
      context.Tell(context.self(), Round{});
      return SetReceiveTimeout(context, absl::Hours(1));
    }
    if (message.Is<Round>()) {
      ++round_;
      if (round_ < kRounds) context.Tell(context.self(), Round{});
      return Timers(context).StartSingle("t", Numbered{round_}, absl::Microseconds(round_ % 3));
    }
    if (message.As<Numbered>().number != round_) ++stale_;
    if (message.As<Numbered>().number == kRounds) context.Tell(asker_, Stale{stale_});
    return absl::OkStatus();
  }

 private:
  ActorRef asker_;
  int round_ = 0;
  int stale_ = 0;
};

// A81: on threads.
TEST(TimersThreads, NeverBringWhatWasReplaced) {
  ActorSystemOptions options;
  options.workers = 2;
  auto system = ActorSystem::Create(options).value();
  std::vector<Future<Stale>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(system->Ask<Stale>(system->TrySpawn(PropsOf<Racer>()).value(), Go{}, absl::Minutes(5)));
  }
  for (Future<Stale>& answer : answers) {
    const absl::StatusOr<Stale> stale = answer.Wait();
    ASSERT_TRUE(stale.ok()) << stale.status();
    EXPECT_EQ(stale->count, 0);
  }
}

}  // namespace
}  // namespace fraktor
