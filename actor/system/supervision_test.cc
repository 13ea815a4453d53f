// Supervision of actors that fail, through the public API.
#include <algorithm>
#include <functional>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/coordinated_shutdown.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

using system_internal::Act;
using system_internal::DiarySink;
using system_internal::Fail;
using system_internal::Lines;
using system_internal::SystemTest;

namespace {

class Supervision : public SystemTest {
 protected:
  // Spawns a boss with that strategy, and three children of it.
  void SpawnFamily(SupervisorStrategyOptions options) {
    boss_ = Spawn("boss", {.strategy = Strategy(std::move(options))});
    for (const char* name : {"x", "y", "z"}) kids_.push_back(SpawnUnder(boss_, name));
    Told();
  }

  // How often `line` is among the lines.
  static int Count(const Lines& lines, const std::string& line) {
    int count = 0;
    for (const std::string& each : lines) count += each == line ? 1 : 0;
    return count;
  }

  ActorRef boss_;
  std::vector<ActorRef> kids_;
};

// A23
TEST_F(Supervision, ConcernsOneChildOrAllOfThem) {
  SpawnFamily({});
  Fail(kids_[0]);
  EXPECT_EQ(Told(), (Lines{"x PreRestart", "x PostStop", "x made", "x PostRestart", "x PreStart"}));
  EXPECT_EQ(Logged(), (Lines{"W pekko://test/user/boss/x: restarts after: broken"}));
}

// A23
TEST_F(Supervision, RestartsAllForOne) {
  SpawnFamily({.scope = SupervisionScope::kAllForOne});
  // The siblings keep their mailboxes.
  Tell(kids_[0], fraktor::Fail());
  Say(kids_[1], "kept");
  Settle();
  const Lines lines = Told();
  for (const char* name : {"x", "y", "z"}) {
    EXPECT_EQ(Count(lines, std::string(name) + " PreRestart"), 1) << name;
    EXPECT_EQ(Count(lines, std::string(name) + " PreStart"), 1) << name;
  }
  EXPECT_EQ(Count(lines, "y: kept"), 1);
  for (const ActorRef kid : kids_) {
    EXPECT_TRUE(IsAlive(kid));
    EXPECT_EQ(kid.slot()->failures, 0);
  }
}

// Counts the restarts of all instances. Fails on a Fail, as a Puppet does.
class Part final : public ActorInstance {
 public:
  explicit Part(int* restarts) : restarts_(*restarts) {}
  absl::Status PostRestart(ActorContext&, const absl::Status&) override {
    ++restarts_;
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    return message.Is<Act>() ? message.As<Act>().what(context) : absl::OkStatus();
  }
  absl::Status OnReply(ActorContext&, ActorRef, absl::StatusOr<Envelope*>) override {
    return absl::InternalError("a bad reply");
  }

 private:
  int& restarts_;
};

class SupervisionOfAll : public Supervision {
 protected:
  // Spawns a boss whose strategy concerns all of its children, and that many children.
  void SpawnParts(int count, SupervisorStrategyOptions options) {
    options.scope = SupervisionScope::kAllForOne;
    boss_ = Spawn("boss", {.strategy = Strategy(std::move(options))});
    AddParts(count);
  }
  void AddParts(int count) {
    const PropsPtr props = MakeProps<Part>({}, &restarts_);
    Let(boss_, [&](ActorContext& context) {
      for (int i = 0; i < count; ++i) kids_.push_back(context.Spawn(*props));
      return absl::OkStatus();
    });
  }
  // Lets all children fail before the boss decides on the first of them.
  void FailAll() {
    for (const ActorRef kid : kids_) Tell(kid, fraktor::Fail());
    Settle();
  }
  int Restarts() { return std::exchange(restarts_, 0); }
  void ExpectAllLive() {
    for (const ActorRef kid : kids_) {
      ASSERT_TRUE(IsAlive(kid));
      ASSERT_EQ(kid.slot()->failures, 0) << kid;
    }
    int alive = 0;
    for (const ActorRef kid : kids_) {
      Tell(kid, Act{[&alive](ActorContext&) {
             ++alive;
             return absl::OkStatus();
           }});
    }
    Settle();
    EXPECT_EQ(alive, static_cast<int>(kids_.size()));
  }

  int restarts_ = 0;
};

// SCH-7: each child has a message that it fails on. The boss decides on the first failure before
// the other children have run, so they restart before they fail, and then again.
TEST_F(SupervisionOfAll, RestartsEachChildAFewTimesIfAllReceiveWhatTheyFailOn) {
  constexpr int kParts = 400;
  SpawnParts(kParts, {});
  for (int round = 0; round < 3; ++round) {
    FailAll();
    const int restarts = Restarts();
    EXPECT_GE(restarts, kParts) << "round " << round;
    EXPECT_LE(restarts, 3 * kParts) << "round " << round;
    ExpectAllLive();
  }
}

// Has a strategy. On an int it says that it waits, and waits.
class HeldBoss final : public ActorInstance {
 public:
  HeldBoss(const SupervisorStrategy* strategy, std::counting_semaphore<>* waits, std::counting_semaphore<>* goes_on)
      : strategy_(*strategy), waits_(*waits), goes_on_(*goes_on) {}
  const SupervisorStrategy& supervision() const override { return strategy_; }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<int>()) {
      waits_.release();
      goes_on_.acquire();
    }
    return message.Is<Act>() ? message.As<Act>().what(context) : absl::OkStatus();
  }

 private:
  const SupervisorStrategy& strategy_;
  std::counting_semaphore<>& waits_;
  std::counting_semaphore<>& goes_on_;
};

// Tells itself an int until the condition holds.
class Waiter final : public ActorInstance {
 public:
  Waiter(std::function<bool()> holds, std::counting_semaphore<>* told) : holds_(std::move(holds)), told_(*told) {}
  absl::Status Receive(ActorContext& context, Envelope&) override {
    if (holds_()) {
      told_.release();
    } else {
      context.Tell(context.self(), 0);
    }
    return absl::OkStatus();
  }

 private:
  const std::function<bool()> holds_;
  std::counting_semaphore<>& told_;
};

// SCH-7: the boss has a thread of its own, which it blocks until all children have failed; they
// share one worker. So all failures come before its first decision: one restart of each child is
// the verdict on all of them, and counts once.
TEST(SupervisionOfAllAtOnce, RestartsEachChildOnceAndCountsOneRestart) {
  constexpr int kParts = 2'000;
  constexpr int kRounds = 3;
  std::counting_semaphore<> waits{0};
  std::counting_semaphore<> goes_on{0};
  int restarts = 0;  // The children share a worker, so it need not be atomic.
  const SupervisorStrategy strategy({.scope = SupervisionScope::kAllForOne, .max_restarts = kRounds});
  const std::unique_ptr<StdToolbox> toolbox = StdToolbox::Make({}).value();
  DiarySink sink;
  ActorSystemOptions options;
  options.config.system_name = "test";
  options.toolbox = toolbox.get();
  options.log_sink = &sink;
  options.workers = 1;
  const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
  const ActorRef boss = system->Spawn(
      *MakeProps<HeldBoss>({.dispatcher = DispatcherChoice::kPinned}, &strategy, &waits, &goes_on), "boss");
  const PropsPtr props = MakeProps<Part>({}, &restarts);
  std::vector<ActorRef> kids;
  std::counting_semaphore<> spawned{0};
  Tell(boss, Act{[&](ActorContext& context) {
         for (int i = 0; i < kParts; ++i) kids.push_back(context.Spawn(*props));
         spawned.release();
         return absl::OkStatus();
       }});
  spawned.acquire();
  // The waiters share the worker of the children.
  const auto wait_until = [&](std::function<bool()> holds, std::counting_semaphore<>* told) {
    Tell(system->Spawn(*MakeProps<Waiter>({}, std::move(holds), told)), 0);
  };
  std::counting_semaphore<> settled{0};
  const auto fail_all = [&] {
    int failed = 0;
    Tell(boss, 0);
    waits.acquire();
    const Act fails{[&failed](ActorContext&) {
      ++failed;
      return absl::InternalError("broken");
    }};
    for (const ActorRef kid : kids) Tell(kid, fails);
    wait_until([&] { return failed == kParts; }, &goes_on);
    // The boss handles it after all failures.
    Tell(boss, Act{[&](ActorContext&) {
           settled.release();
           return absl::OkStatus();
         }});
    settled.acquire();
  };
  for (int round = 1; round <= kRounds; ++round) {
    fail_all();
    int alive = 0;
    const Act lives{[&alive](ActorContext&) {
      ++alive;
      return absl::OkStatus();
    }};
    for (const ActorRef kid : kids) Tell(kid, lives);
    wait_until([&] { return alive == kParts; }, &settled);
    settled.acquire();
    EXPECT_EQ(restarts, round * kParts);
  }
  fail_all();
  const auto has_ended = [](ActorRef kid) { return !kid.IsCurrent(); };
  wait_until([&] { return std::all_of(kids.begin(), kids.end(), has_ended); }, &settled);
  settled.acquire();
  EXPECT_EQ(restarts, kRounds * kParts) << "one more failure than max_restarts stops all";
}

// SCH-7: all children of a boss that escalates fail before its first decision. The verdict on the
// boss covers all of these failures, and counts once.
TEST(SupervisionOfAllAtOnce, EscalatesOnceForFailuresThatHappenAtOnce) {
  for (const bool resumes : {false, true}) {
    for (const int parts : {5, 2'000}) {
      std::counting_semaphore<> waits{0};
      std::counting_semaphore<> goes_on{0};
      int restarts = 0;
      int decisions = 0;
      const SupervisorStrategy of_top({.max_restarts = 3, .decider = [&](const Failure&) {
                                         ++decisions;
                                         return resumes ? Resume() : fraktor::Restart();
                                       }});
      const SupervisorStrategy of_boss({.decider = [](const Failure&) { return fraktor::Escalate(); }});
      const std::unique_ptr<StdToolbox> toolbox = StdToolbox::Make({}).value();
      DiarySink sink;
      ActorSystemOptions options;
      options.config.system_name = "test";
      options.toolbox = toolbox.get();
      options.log_sink = &sink;
      options.workers = 1;
      const std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
      const ActorRef top = system->Spawn(*MakeProps<HeldBoss>({}, &of_top, &waits, &goes_on), "top");
      ActorRef boss;
      std::vector<ActorRef> kids;
      std::counting_semaphore<> told{0};
      // Waits until the actor has handled the message, or it is lost because the actor has ended.
      const auto let = [&](ActorRef actor, std::function<void(ActorContext&)> what) {
        std::shared_ptr<void> message_ended(nullptr, [&told](void*) { told.release(); });
        Tell(actor, Act{[what = std::move(what), message_ended = std::move(message_ended)](ActorContext& context) {
               what(context);
               return absl::OkStatus();
             }});
        told.acquire();
      };
      let(top, [&](ActorContext& context) {
        boss = context.Spawn(
            *MakeProps<HeldBoss>({.dispatcher = DispatcherChoice::kPinned}, &of_boss, &waits, &goes_on), "boss");
      });
      const PropsPtr props = MakeProps<Part>({}, &restarts);
      let(boss, [&](ActorContext& context) {
        for (int i = 0; i < parts; ++i) kids.push_back(context.Spawn(*props));
      });
      int failed = 0;
      Tell(boss, 0);
      waits.acquire();
      for (const ActorRef kid : kids) {
        Tell(kid, Act{[&failed](ActorContext&) {
               ++failed;
               return absl::InternalError("broken");
             }});
      }
      const auto all_failed = [&] { return failed == parts; };
      Tell(system->Spawn(*MakeProps<Waiter>({}, all_failed, &goes_on)), 0);
      // The boss handles it after the verdict, and the children have their verdicts then.
      let(boss, [](ActorContext&) {});
      let(top, [](ActorContext&) {});
      EXPECT_EQ(decisions, 1) << parts;
      ASSERT_TRUE(top.IsCurrent());
      ASSERT_TRUE(boss.IsCurrent());
      EXPECT_EQ(boss.slot()->failures, 0);
      for (const ActorRef kid : kids) {
        if (!resumes) continue;
        ASSERT_TRUE(kid.IsCurrent());
        let(kid, [](ActorContext& context) { EXPECT_EQ(context.slot().failures, 0); });
      }
    }
  }
}

// SCH-7: a child that fails after its restart has failed anew, also if its siblings still wait.
TEST_F(SupervisionOfAll, RestartsAllAgainForAFailureAfterTheRestart) {
  SpawnParts(3, {});
  for (int round = 0; round < 2; ++round) {
    Fail(kids_[0]);
    EXPECT_EQ(Restarts(), 3) << "round " << round;
  }
  // The new instance handles the second message.
  Tell(kids_[0], fraktor::Fail());
  Tell(kids_[0], fraktor::Fail());
  Settle();
  EXPECT_GE(Restarts(), 4);
  ExpectAllLive();
}

// SCH-7: a child that was spawned after a restart of all has failed for the first time.
TEST_F(SupervisionOfAll, RestartsAllForAChildThatWasSpawnedAfterARestart) {
  SpawnParts(3, {});
  Fail(kids_[0]);
  EXPECT_EQ(Restarts(), 3);
  AddParts(1);
  Fail(kids_[3]);
  EXPECT_EQ(Restarts(), 4);
  ExpectAllLive();
}

// SCH-7: children that wait for their restart fail on replies. The restart that is due is the
// verdict on that, too.
TEST_F(SupervisionOfAll, RestartsEachChildOnceAfterABackoff) {
  SpawnParts(200, {.backoff = {.min = absl::Seconds(10), .max = absl::Seconds(10)}});
  std::vector<ActorRef> asks;
  const ActorRef silent = Spawn("silent", {.other = [](ActorContext&, Envelope&) { return absl::OkStatus(); }});
  for (const ActorRef kid : kids_) {
    Let(kid, [&](ActorContext& context) {
      FRAKTOR_ASSIGN_OR_RETURN(asks.emplace_back(), context.AskOnReply(silent, 1, absl::Minutes(1)));
      return absl::OkStatus();
    });
  }
  Fail(kids_[0]);
  for (const ActorRef ask : asks) Tell(ask, fraktor::Fail());
  Settle();
  for (const ActorRef kid : kids_) ASSERT_EQ(kid.slot()->failures, 1);
  EXPECT_EQ(Restarts(), 0);
  RunFor(absl::Seconds(9));
  EXPECT_EQ(Restarts(), 0);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Restarts(), 200);
  ExpectAllLive();
}

// SCH-7: the first verdict stops all children, and nobody decides on the failures of the others.
TEST_F(SupervisionOfAll, StopsAllOnceIfAllFailAtOnce) {
  int decisions = 0;
  SpawnParts(2'000, {.decider = [&decisions](const Failure&) {
               ++decisions;
               return fraktor::Stop();
             }});
  FailAll();
  for (const ActorRef kid : kids_) EXPECT_FALSE(IsAlive(kid));
  EXPECT_EQ(decisions, 1);
  EXPECT_TRUE(IsAlive(boss_));
}

// A23
TEST_F(Supervision, StopsAllForOne) {
  SpawnFamily({.scope = SupervisionScope::kAllForOne, .decider = [](const Failure&) { return fraktor::Stop(); }});
  Fail(kids_[1]);
  for (const ActorRef kid : kids_) EXPECT_FALSE(IsAlive(kid));
  EXPECT_TRUE(IsAlive(boss_));
}

// The first child that cannot start stops all. The askers of the others learn the cause too.
TEST_F(Supervision, TellsAskersWhyEachOfAllCouldNotStart) {
  boss_ = Spawn("boss", {.strategy = Strategy({.scope = SupervisionScope::kAllForOne})});
  Let(boss_, [&](ActorContext& context) {
    for (const char* name : {"x", "y", "z"}) {
      const auto fails = [name](ActorContext&) { return absl::NotFoundError(std::string(name) + " has no lamp"); };
      kids_.push_back(context.Spawn(*PropsFor(name, {.pre_start = fails}), name));
    }
    return absl::OkStatus();
  });
  for (size_t i = 0; i < kids_.size(); ++i) {
    ASSERT_FALSE(IsAlive(kids_[i]));
    const absl::Status why =
        system().AskAndWait<std::string>(kids_[i], std::string("lives?"), absl::Seconds(1)).status();
    EXPECT_NE(why.message().find(std::string(1, "xyz"[i]) + " has no lamp"), absl::string_view::npos) << why;
  }
}

// A23: a resume concerns only the failed child, also with an all-for-one strategy.
TEST_F(Supervision, ResumesOneOfAll) {
  SpawnFamily({.scope = SupervisionScope::kAllForOne, .decider = [](const Failure&) { return Resume(); }});
  Fail(kids_[1]);
  for (const ActorRef kid : kids_) Say(kid, "on");
  Settle();
  EXPECT_EQ(Told(), (Lines{"x: on", "y: on", "z: on"}));
  EXPECT_EQ(Logged(), (Lines{"W pekko://test/user/boss/y: resumes after: broken"}));
}

// A24
TEST_F(Supervision, DecidesByTheKindOfTheErrorIfNobodyElseDoes) {
  const ActorRef top = Spawn("top", {.decide = Always(SupervisionDirective::kRestart)});
  const ActorRef boss = SpawnUnder(top, "boss");
  const auto act = [](void (*what)()) {
    return Act{[what](ActorContext&) {
      what();
      return absl::OkStatus();
    }};
  };
  const ActorRef returns = SpawnUnder(boss, "returns");
  Fail(returns);
  EXPECT_TRUE(IsAlive(returns));
  const ActorRef throws = SpawnUnder(boss, "throws");
  Tell(throws, act([] { throw std::runtime_error("thrown"); }));
  Settle();
  EXPECT_TRUE(IsAlive(throws));
  const ActorRef killed = SpawnUnder(boss, "killed");
  Tell(killed, Kill{});
  Settle();
  EXPECT_FALSE(IsAlive(killed));
  const ActorRef cannot_start =
      SpawnUnder(boss, "cannot-start", {.pre_start = [](ActorContext&) { return absl::InternalError("no"); }});
  EXPECT_FALSE(IsAlive(cannot_start));
  const ActorRef bereft = SpawnUnder(boss, "bereft");
  Let(bereft, [&](ActorContext& context) { return context.Watch(killed); });
  EXPECT_FALSE(IsAlive(bereft));
  Told();
  // Other errors are escalated: the boss fails too, and its parent restarts it.
  const ActorRef odd = SpawnUnder(boss, "odd");
  Tell(odd, act([] { throw 7; }));
  Settle();
  EXPECT_FALSE(IsAlive(odd));
  EXPECT_EQ(Count(Told(), "boss PreRestart"), 1);
  EXPECT_TRUE(IsAlive(boss));
}

// A24
TEST_F(Supervision, JudgesNoErrorByTheKindThatItCarries) {
  std::vector<FailureCause> causes;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext&, const Failure& failure) {
                                causes.push_back(failure.cause);
                                return SupervisorStrategy::DecideByDefault(failure);
                              }});
  const ActorRef kid = SpawnUnder(boss, "kid");
  const auto last = static_cast<uint8_t>(ErrorKindTraits<ActorErrorKind>::kLast);
  for (uint8_t kind = 0; kind <= last; ++kind) {
    Fail(kid, MakeError(absl::StatusCode::kInternal, static_cast<ActorErrorKind>(kind), "from elsewhere"));
    ASSERT_TRUE(IsAlive(kid)) << int{kind};
  }
  EXPECT_EQ(causes, std::vector<FailureCause>(last + 1u, FailureCause::kReturned));
}

// A25
TEST_F(Supervision, NamesTheActorThatFailedAlsoIfItsErrorHasBeenEscalatedElsewhere) {
  absl::Status elsewhere = absl::DataLossError("the cause");
  elsewhere.SetPayload("fraktor.dev/failed-actor", absl::Cord("pekko://other/user/a"));
  std::string named;
  const ActorRef top = Spawn("top", {.decide = [&](ActorContext&, const Failure& failure) {
                               named = std::string(failure.error.message());
                               return fraktor::Stop();
                             }});
  const ActorRef boss = SpawnUnder(top, "boss", {.decide = Always(SupervisionDirective::kEscalate)});
  Fail(SpawnUnder(boss, "kid"), elsewhere);
  EXPECT_EQ(named, "pekko://test/user/top/boss/kid failed: the cause");
}

// A25
TEST_F(Supervision, LetsAParentFailWithTheCauseOfItsChildWhenItEscalates) {
  std::vector<std::pair<ActorRef, std::string>> asked;
  const ActorRef top = Spawn("top", {.decide = [&](ActorContext&, const Failure& failure) {
                               EXPECT_EQ(failure.error.code(), absl::StatusCode::kDataLoss);
                               asked.emplace_back(failure.child, std::string(failure.error.message()));
                               return fraktor::Stop();
                             }});
  const ActorRef lead = SpawnUnder(top, "lead", {.decide = Always(SupervisionDirective::kEscalate)});
  const ActorRef boss = SpawnUnder(lead, "boss", {.decide = Always(SupervisionDirective::kEscalate)});
  const ActorRef kid = SpawnUnder(boss, "kid");
  Fail(kid, absl::DataLossError("the cause"));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].first, lead);
  EXPECT_EQ(asked[0].second, "pekko://test/user/top/lead/boss/kid failed: the cause") << "and nobody else is named";
  EXPECT_EQ(Logged().back(),
            "E pekko://test/user/top/lead: stopped after: pekko://test/user/top/lead/boss/kid failed: the cause");
  EXPECT_FALSE(IsAlive(boss));
  EXPECT_FALSE(IsAlive(kid));
}

// A26
TEST_F(Supervision, StopsAChildThatMayNotBeRestarted) {
  SpawnFamily({.max_restarts = 0});
  Fail(kids_[0]);
  EXPECT_EQ(Told(), (Lines{"x PostStop"}));
}

// A26, A28
TEST_F(Supervision, StopsAChildAfterSoManyRestartsForEver) {
  bool heard = false;
  boss_ = Spawn("boss", {.terminated =
                             [&](ActorContext&, const Terminated&) {
                               heard = true;
                               return absl::OkStatus();
                             },
                         .strategy = Strategy({.max_restarts = 2})});
  const ActorRef kid = SpawnUnder(boss_, "kid");
  Let(boss_, [&](ActorContext& context) { return context.Watch(kid); });
  for (int i = 0; i < 2; ++i) {
    Fail(kid);
    EXPECT_TRUE(IsAlive(kid));
    RunFor(absl::Hours(10'000));
  }
  EXPECT_FALSE(heard);
  Fail(kid);
  EXPECT_FALSE(IsAlive(kid));
  EXPECT_TRUE(heard);
  EXPECT_EQ(Logged().back(), "E pekko://test/user/boss/kid: stopped after too many restarts: broken");
}

// A26, A30
TEST_F(Supervision, CountsRestartsWithinAWindow) {
  // 2^31 milliseconds are 24.8 days.
  for (const absl::Duration window : {absl::Minutes(1), absl::Hours(24 * 60)}) {
    const std::string name = "boss-" + std::to_string(absl::ToInt64Seconds(window));
    const ActorRef boss = Spawn(name, {.strategy = Strategy({.max_restarts = 2, .window = window})});
    const ActorRef kid = SpawnUnder(boss, "kid");
    for (int i = 0; i < 6; ++i) {
      Fail(kid);
      ASSERT_TRUE(IsAlive(kid)) << i;
      RunFor(window * 0.51);
    }
    // The window began with the fifth failure.
    Fail(kid);
    ASSERT_TRUE(IsAlive(kid));
    Fail(kid);
    ASSERT_TRUE(IsAlive(kid));
    Fail(kid);
    EXPECT_FALSE(IsAlive(kid));
  }
}

// A27
TEST_F(Supervision, NeverGivesUpWithoutALimitButRestartsOnceInAWindowWithoutANumber) {
  SpawnFamily({});
  for (int i = 0; i < 100; ++i) Fail(kids_[0]);
  EXPECT_TRUE(IsAlive(kids_[0]));
  const ActorRef boss = Spawn("windowed", {.strategy = Strategy({.window = absl::Seconds(1)})});
  const ActorRef kid = SpawnUnder(boss, "kid");
  Fail(kid);
  RunFor(absl::Seconds(2));
  Fail(kid);
  EXPECT_TRUE(IsAlive(kid));
  Fail(kid);
  EXPECT_FALSE(IsAlive(kid));
}

// A31, A32
TEST_F(Supervision, RunsNothingOfAFailedActorAndItsDescendantsBeforeTheVerdict) {
  ActorRef leaf;
  int state = 0;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext&, const Failure&) {
                                diary_.Add("verdict");
                                return Resume();
                              }});
  const ActorRef kid = SpawnUnder(boss, "kid", {.other = [&](ActorContext&, Envelope& message) {
                                    state += message.As<int>();
                                    return absl::OkStatus();
                                  }});
  const ActorRef middle = SpawnUnder(kid, "middle");
  leaf = SpawnUnder(middle, "leaf");
  Tell(kid, 7);
  Settle();
  Told();
  Tell(kid, Act{[&](ActorContext& context) {
         for (const ActorRef actor : {context.self(), middle, leaf}) context.Tell(actor, std::string("later"));
         context.Flush();
         return absl::InternalError("broken");
       }});
  Tell(kid, 1);
  Settle();
  const Lines lines = Told();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "verdict");
  // The actor keeps its state, and goes on with the next message.
  EXPECT_EQ(state, 8);
}

// A33
TEST_F(Supervision, RestartsAManagerAndItsWorkersForAWorkerThatIsEscalated) {
  const ActorRef boss = Spawn("boss");
  const PropsPtr worker = PropsFor("worker");
  const ActorRef manager = SpawnUnder(boss, "manager",
                                      {.pre_start =
                                           [&](ActorContext& context) {
                                             for (const char* name : {"one", "two"}) {
                                               if (!context.TrySpawn(*worker, name).ok())
                                                 return absl::InternalError(name);
                                             }
                                             return absl::OkStatus();
                                           },
                                       .decide = Always(SupervisionDirective::kEscalate)});
  const ActorRef one = system().Resolve("/user/boss/manager/one").value();
  const ActorRef two = system().Resolve("/user/boss/manager/two").value();
  Told();
  Fail(one);
  EXPECT_TRUE(IsAlive(manager));
  EXPECT_FALSE(IsAlive(one));
  EXPECT_FALSE(IsAlive(two));
  const Lines lines = Told();
  EXPECT_EQ(Count(lines, "manager PreRestart"), 1);
  EXPECT_EQ(Count(lines, "worker PostStop"), 2);
  EXPECT_EQ(Count(lines, "worker PreStart"), 2);
  Say(system().Resolve("/user/boss/manager/one").value(), "works");
  Settle();
  EXPECT_EQ(Told(), (Lines{"worker: works"}));
}

// A34
TEST_F(Supervision, RestartsTheChildrenThatSurviveTheirParentsRestart) {
  const ActorRef boss = Spawn("boss", {.decide = Always(SupervisionDirective::kRestart)});
  const auto keep = [](ActorContext&, const absl::Status&, Envelope*) { return absl::OkStatus(); };
  const ActorRef middle = SpawnUnder(boss, "middle", {.pre_restart = keep});
  const ActorRef kid = SpawnUnder(middle, "kid", {.pre_restart = keep});
  const ActorRef leaf = SpawnUnder(kid, "leaf");
  Told();
  Say(leaf, "before");
  Tell(middle, Kill{});
  Settle();
  const Lines lines = Told();
  for (const char* name : {"middle", "kid", "leaf"}) {
    EXPECT_EQ(Count(lines, std::string(name) + " PreRestart"), 1) << name;
    EXPECT_EQ(Count(lines, std::string(name) + " PreStart"), 1) << name;
  }
  for (const ActorRef actor : {middle, kid, leaf}) {
    EXPECT_TRUE(IsAlive(actor));
    EXPECT_EQ(actor.slot()->failures, 0);
    Say(actor, "after");
  }
  Settle();
  EXPECT_EQ(Told(), (Lines{"middle: after", "kid: after", "leaf: after"}));
}

// A34: while the parent waits for another child to end, its restart has begun, and its old instance
// has run its last hook.
TEST_F(Supervision, RestartsASurvivorThatFailsDuringTheRestartOfItsParent) {
  ActorRef slow;
  ActorRef promise;
  const ActorRef asked = Spawn("asked", {.other = [&](ActorContext& context, Envelope&) {
                                 promise = context.sender();
                                 return absl::OkStatus();
                               }});
  const ActorRef parent = Spawn("parent", {.pre_restart =
                                               [&](ActorContext& context, const absl::Status&, Envelope*) {
                                                 context.Stop(slow);
                                                 context.Tell(promise, std::string("reply"));
                                                 return absl::OkStatus();
                                               },
                                           .decide =
                                               [&](ActorContext&, const Failure&) {
                                                 diary_.Add("parent decides");
                                                 return Resume();
                                               }});
  // A reply reaches a suspended actor, so the survivor can fail during the restart.
  const ActorRef survivor = SpawnUnder(parent, "survivor", {.reply = [&](ActorContext&, absl::StatusOr<Envelope*>) {
                                         diary_.Add("survivor fails");
                                         return absl::InternalError("broken survivor");
                                       }});
  Let(survivor, [&](ActorContext& context) { return context.AskOnReply(asked, 1, absl::Minutes(1)).status(); });
  slow = SpawnUnder(parent, "slow");
  // The end of each descendant takes a turn.
  ActorRef last = slow;
  for (int i = 0; i < 10; ++i) last = SpawnUnder(last, "descendant");
  Told();
  Fail(parent);
  const Lines lines = Told();
  const auto at = [&](const char* line) { return std::find(lines.begin(), lines.end(), line) - lines.begin(); };
  ASSERT_LT(at("survivor fails"), at("slow PostStop"));
  ASSERT_LT(at("slow PostStop"), at("parent PreStart"));
  EXPECT_EQ(Count(lines, "parent decides"), 0);
  EXPECT_EQ(Count(lines, "survivor PreRestart"), 1);
  EXPECT_EQ(Count(lines, "survivor PreStart"), 1);
  for (const ActorRef actor : {parent, survivor}) {
    EXPECT_EQ(actor.slot()->failures, 0);
    Say(actor, "on");
  }
  Settle();
  EXPECT_EQ(Told(), (Lines{"parent: on", "survivor: on"}));
}

// A35
TEST_F(Supervision, ShowsTheDeciderTheFailedChildAsTheSender) {
  ActorRef sender;
  ActorRef child;
  int64_t restarts = -1;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext& context, const Failure& failure) {
                                sender = context.sender();
                                child = failure.child;
                                restarts = failure.restarts;
                                return Restart();
                              }});
  const ActorRef kid = SpawnUnder(boss, "kid");
  Fail(kid);
  EXPECT_EQ(sender, kid);
  EXPECT_EQ(child, kid);
  EXPECT_EQ(restarts, 0);
  Fail(kid);
  EXPECT_EQ(restarts, 1);
}

// A36
TEST_F(Supervision, LosesNoSystemMessageWhenADeciderThrows) {
  int decisions = 0;
  const ActorRef top = Spawn("top", {.decide = Always(SupervisionDirective::kResume)});
  const ActorRef boss = SpawnUnder(top, "boss", {.decide = [&](ActorContext&, const Failure&) -> SupervisionDirective {
                                     if (++decisions == 1) throw std::runtime_error("cannot decide");
                                     return Restart();
                                   }});
  const ActorRef one = SpawnUnder(boss, "one");
  const ActorRef two = SpawnUnder(boss, "two");
  bool heard = false;
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext&, const Terminated&) {
                                   heard = true;
                                   return absl::OkStatus();
                                 }});
  Told();
  // All of these messages are in the mailbox before the supervisor handles the first.
  Tell(boss, Act{[&](ActorContext& context) {
         context.Tell(one, fraktor::Fail());
         context.Tell(two, fraktor::Fail());
         context.Tell(watcher, Act{[&](ActorContext& inner) { return inner.Watch(boss); }});
         return absl::OkStatus();
       }});
  Settle();
  EXPECT_EQ(decisions, 2);
  for (const ActorRef actor : {boss, one, two}) {
    EXPECT_EQ(actor.slot()->failures, 0);
    Say(actor, "on");
  }
  Settle();
  const Lines lines = Told();
  EXPECT_EQ(Count(lines, "boss: on") + Count(lines, "one: on") + Count(lines, "two: on"), 3);
  EXPECT_EQ(Count(lines, "two PreRestart"), 1);
  EXPECT_EQ(Count(lines, "one PreRestart"), 0);
  Stop(boss);
  EXPECT_TRUE(heard);
}

// A42
TEST_F(Supervision, EndsTheSystemWhenAFailureReachesTheGuardianOfUsers) {
  Future<void> late;
  options_.guardian_strategy.decider = [](const Failure&) { return Escalate(); };
  const ActorRef a = Spawn("a");
  const ActorRef b = Spawn("b");
  Told();
  Future<void> terminated = system().WhenTerminated();
  Fail(a, absl::DataLossError("broken"));
  EXPECT_TRUE(system().IsTerminated());
  // WhenTerminated returns the error, also after the end.
  for (Future<void>* const future : {&terminated, &late}) {
    if (future == &late) late = system().WhenTerminated();
    ASSERT_TRUE(future->IsReady());
    const absl::Status why = future->Take();
    EXPECT_EQ(why.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(why.message(), "pekko://test/user/a failed: broken");
  }
  const Lines logged = Logged();
  EXPECT_EQ(std::count_if(logged.begin(), logged.end(),
                          [](const std::string& line) {
                            return line.starts_with(
                                "E : the actor system \"test\" ends, since pekko://test/user has failed: "
                                "pekko://test/user/a failed: broken; WhenTerminated() ");
                          }),
            1);
  EXPECT_EQ(Count(logged, "E pekko://test/user: stopped after: pekko://test/user/a failed: broken"), 1)
      << (logged.empty() ? std::string() : logged.back());
  EXPECT_FALSE(IsAlive(b));
  Lines lines = Told();
  EXPECT_EQ(Count(lines, "a PostStop") + Count(lines, "b PostStop"), 2);
}

TEST_F(Supervision, ShutsDownWithoutAComplaintAfterTheGuardianOfUsersHasFailed) {
  options_.guardian_strategy.decider = [](const Failure&) { return Escalate(); };
  Fail(Spawn("a"));
  ASSERT_TRUE(system().IsTerminated());
  Logged();
  Future<void> down = system().coordinated_shutdown().Run(ShutdownReason::ActorSystemTerminate());
  Settle();
  ASSERT_TRUE(down.IsReady());
  EXPECT_TRUE(down.Take().ok());
  EXPECT_EQ(Logged(), Lines());
}

// A42
TEST_F(Supervision, GivesTheGuardianOfUsersTheStrategyOfTheOptions) {
  options_.guardian_strategy = {.max_restarts = 1};
  const ActorRef a = Spawn("a");
  Fail(a);
  EXPECT_TRUE(IsAlive(a));
  Fail(a);
  EXPECT_FALSE(IsAlive(a));
  EXPECT_FALSE(system().IsTerminated());
}

// SCH-7
TEST_F(Supervision, WaitsLongerBeforeEachRestartAndKeepsTheMailMeanwhile) {
  SpawnFamily({.backoff = {.min = absl::Seconds(1), .max = absl::Seconds(3), .factor = 2}});
  const absl::Duration waits[] = {absl::Seconds(1), absl::Seconds(2), absl::Seconds(3), absl::Seconds(3)};
  for (const absl::Duration wait : waits) {
    Fail(kids_[0]);
    Say(kids_[0], "waits");
    RunFor(wait - absl::Nanoseconds(1));
    EXPECT_EQ(Told(), Lines()) << wait;
    RunFor(absl::Nanoseconds(1));
    EXPECT_EQ(Told(), (Lines{"x PreRestart", "x PostStop", "x made", "x PostRestart", "x PreStart", "x: waits"}));
  }
}

// SCH-7
TEST_F(Supervision, LetsAllWaitForARestartOfAllAndStopsWhoWaits) {
  SpawnFamily({.scope = SupervisionScope::kAllForOne, .backoff = {.min = absl::Seconds(10), .max = absl::Seconds(10)}});
  Fail(kids_[0]);
  for (const ActorRef kid : kids_) Say(kid, "later");
  RunFor(absl::Seconds(9));
  EXPECT_EQ(Told(), Lines());
  // A child that waits for its restart can be stopped.
  Stop(kids_[1]);
  EXPECT_EQ(Told(), (Lines{"y PostStop"}));
  RunFor(absl::Seconds(1));
  const Lines lines = Told();
  for (const char* name : {"x", "z"}) {
    EXPECT_EQ(Count(lines, std::string(name) + " PostRestart"), 1) << name;
    EXPECT_EQ(Count(lines, std::string(name) + ": later"), 1) << name;
  }
  // The parent can be stopped, too.
  Fail(kids_[0]);
  Stop(boss_);
  EXPECT_FALSE(IsAlive(boss_));
  RunFor(absl::Minutes(1));
}

// SCH-7
TEST_F(Supervision, CountsNoFailureForAnAskThatEndsWhileItsAskerWaitsForAnotherStart) {
  int starts = 0;
  int failures = 0;
  const ActorRef boss = Spawn("boss", {.decide =
                                           [&](ActorContext&, const Failure&) {
                                             ++failures;
                                             return Restart();
                                           },
                                       .strategy = Strategy({.backoff = {absl::Seconds(1), absl::Seconds(1)}})});
  const ActorRef kid = SpawnUnder(boss, "kid", {.pre_start = [&](ActorContext&) {
                                    return ++starts == 2 ? absl::InternalError("no start") : absl::OkStatus();
                                  }});
  const ActorRef silent = Spawn("silent");
  int unhandled = 0;
  const EventSubscription listener =
      system().events().Listen<UnhandledMessage>([&](const UnhandledMessage&) { ++unhandled; });
  ActorRef ask;
  Let(kid, [&](ActorContext& context) {
    ask = context.AskOnReply(silent, std::string("a question"), absl::Minutes(1)).value();
    return context.AskOnReply(silent, std::string("a question"), absl::Milliseconds(1500)).status();
  });
  Fail(kid);
  RunFor(absl::Seconds(1));
  ASSERT_EQ(starts, 2);
  ASSERT_EQ(failures, 2);
  // The kid has no instance until its next start, in a second.
  Tell(ask, std::string("a reply"));
  Settle();
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(unhandled, 1);
  // The other ask times out.
  RunFor(absl::Milliseconds(600));
  EXPECT_EQ(failures, 2);
  RunFor(absl::Milliseconds(400));
  EXPECT_EQ(starts, 3);
  Told();
  Say(kid, "on");
  Settle();
  EXPECT_EQ(Told(), (Lines{"kid: on"}));
}

// SCH-7: an actor that fails while it waits for its children to end is restarted once more.
TEST_F(Supervision, KeepsCountOfFailuresThatCross) {
  const ActorRef top = Spawn("top");
  const ActorRef boss =
      SpawnUnder(top, "boss",
                 {.pre_restart = [](ActorContext&, const absl::Status&, Envelope*) { return absl::OkStatus(); },
                  .decide = Always(SupervisionDirective::kEscalate)});
  std::vector<ActorRef> kids;
  for (const char* name : {"x", "y", "z"}) kids.push_back(SpawnUnder(boss, name));
  Told();
  Tell(boss, Act{[&](ActorContext& context) {
         for (const ActorRef kid : kids) context.Tell(kid, fraktor::Fail());
         context.Flush();
         return absl::InternalError("broken");
       }});
  Settle();
  for (const ActorRef actor : {boss, kids[0], kids[1], kids[2]}) {
    EXPECT_TRUE(IsAlive(actor));
    EXPECT_EQ(actor.slot()->failures, 0);
    Say(actor, "on");
  }
  Settle();
  const Lines lines = Told();
  for (const char* name : {"boss", "x", "y", "z"}) EXPECT_EQ(Count(lines, std::string(name) + ": on"), 1) << name;
}

// Decides itself, and has no strategy to look at.
class WithoutStrategy final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    return message.Is<Act>() ? message.As<Act>().what(context) : absl::OkStatus();
  }
  const SupervisorStrategy& supervision() const override { throw std::runtime_error("no strategy"); }
  SupervisionDirective OnChildFailure(ActorContext&, const Failure&) override { return Restart(); }
};

TEST_F(Supervision, FailsASupervisorWhoseStrategyThrows) {
  const ActorRef boss = system().TrySpawn(PropsOf<WithoutStrategy>(), "boss").value();
  const ActorRef kid = SpawnUnder(boss, "kid");
  Logged();
  Fail(kid);
  EXPECT_TRUE(IsAlive(boss));
  EXPECT_FALSE(IsAlive(kid));
  EXPECT_EQ(Logged(), Lines{"W pekko://test/user/boss: restarts after: a decider threw: no strategy"});
}

}  // namespace
}  // namespace fraktor
