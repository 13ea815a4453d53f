// Starts, restarts and ends of actors, through the public API.
#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/internal/misuse.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

using actor_internal::ChildFailed;
using actor_internal::RefusedMisuse;
using actor_internal::TaskForActor;
using system_internal::Act;
using system_internal::Diary;
using system_internal::Fail;
using system_internal::Lines;
using system_internal::SystemTest;

namespace {

using LifeCycle = SystemTest;

// A1
TEST_F(LifeCycle, CallsTheRestartHooksOfTheOldAndTheNewInstance) {
  std::string reason;
  bool had_message = false;
  const ActorRef a = Spawn("a", {.pre_restart =
                                     [&](ActorContext&, const absl::Status& why, Envelope* message) {
                                       reason = std::string(why.message());
                                       had_message = message != nullptr && message->Is<Act>();
                                       return absl::OkStatus();
                                     },
                                 .post_restart = [](ActorContext&, const absl::Status&) { return absl::OkStatus(); }});
  Fail(a);
  EXPECT_EQ(Told(), (Lines{"a made", "a PreStart", "a PreRestart", "a made", "a PostRestart"}));
  EXPECT_EQ(reason, "broken");
  EXPECT_TRUE(had_message);
}

// A2
TEST_F(LifeCycle, StopsChildrenAndStartsAnewIfTheRestartHooksAreTheUsual) {
  const ActorRef a = Spawn("a");
  const ActorRef kid = SpawnUnder(a, "kid");
  // The actor handles no Terminated: without the unwatch, the end of the child would fail it.
  Let(a, [&](ActorContext& context) { return context.Watch(kid); });
  Told();
  Fail(a);
  EXPECT_EQ(Told(), (Lines{"a PreRestart", "a PostStop", "kid PostStop", "a made", "a PostRestart", "a PreStart"}));
  EXPECT_FALSE(IsAlive(kid));
  EXPECT_TRUE(IsAlive(a));
}

// A3
TEST_F(LifeCycle, CallsOnlyTheFirstAndTheLastHookOfAnActorThatDoesNotFail) {
  const ActorRef a = Spawn("a");
  Say(a, "x");
  Settle();
  Stop(a);
  EXPECT_EQ(Told(), (Lines{"a made", "a PreStart", "a: x", "a PostStop"}));
}

// A4
TEST_F(LifeCycle, EndsAnActorWhoseLastHookThrowsAndLogsThat) {
  const ActorRef a = Spawn("a", {.post_stop = [](ActorContext&) { throw std::runtime_error("no way"); }});
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext&, const Terminated& ended) {
                                   diary_.Add(ended.actor == a ? "a is gone" : "?");
                                   return absl::OkStatus();
                                 }});
  Let(watcher, [&](ActorContext& context) { return context.Watch(a); });
  Told();
  Stop(a);
  EXPECT_EQ(Told(), (Lines{"a PostStop", "a is gone"}));
  const Lines logged = Logged();
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0], "E pekko://test/user/a: PostStop threw: no way");
}

// A7
TEST_F(LifeCycle, CallsAFailedConstructorOrStartAnInitializationErrorThatNamesThePath) {
  std::vector<absl::Status> errors;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext& context, const Failure& failure) {
                                EXPECT_TRUE(failure.cause == FailureCause::kInitialization) << failure.error;
                                EXPECT_EQ(context.sender(), failure.child);
                                errors.push_back(failure.error);
                                return SupervisorStrategy::DecideByDefault(failure);
                              }});
  const ActorRef thrower =
      SpawnUnder(boss, "thrower", {.construct = [] { throw std::runtime_error("cannot be made"); }});
  const ActorRef failing =
      SpawnUnder(boss, "failing", {.pre_start = [](ActorContext&) { return absl::NotFoundError("no file"); }});
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].message().find("pekko://test/user/boss/thrower"), absl::string_view::npos) << errors[0];
  EXPECT_NE(errors[0].message().find("cannot be made"), absl::string_view::npos) << errors[0];
  EXPECT_NE(errors[1].message().find("pekko://test/user/boss/failing"), absl::string_view::npos) << errors[1];
  EXPECT_EQ(errors[1].code(), absl::StatusCode::kNotFound);
  // The default verdict.
  EXPECT_FALSE(IsAlive(thrower));
  EXPECT_FALSE(IsAlive(failing));
  EXPECT_TRUE(IsAlive(boss));
}

// A9
TEST_F(LifeCycle, TriesAgainToCreateAnActorThatNeverBeganWhetherItIsResumedOrRestarted) {
  for (const SupervisionDirective verdict : {SupervisionDirective::kResume, SupervisionDirective::kRestart}) {
    const std::string boss_name = "boss-" + std::string(NameOf(verdict));
    const ActorRef boss = Spawn(boss_name, {.decide = Always(verdict)});
    auto made = std::make_shared<int>(0);
    auto started = std::make_shared<int>(0);
    Told();
    const PropsPtr grandchild = PropsFor("grandchild");
    const ActorRef a =
        SpawnUnder(boss, "a",
                   {.construct =
                        [made] {
                          if (++*made == 1) throw 1;
                        },
                    // The children of a failed start have ended before the next start.
                    .pre_start =
                        [&, started](ActorContext& context) {
                          if (absl::Status kid = context.TrySpawn(*grandchild, "kid").status(); !kid.ok()) {
                            diary_.Add(kid.ToString());
                          }
                          return ++*started < 3 ? absl::UnavailableError("not yet") : absl::OkStatus();
                        }});
    Say(a, "x");
    Settle();
    EXPECT_TRUE(IsAlive(a));
    EXPECT_EQ(*made, 4);
    EXPECT_EQ(*started, 3);
    Lines lines = Told();
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines.back(), "a: x");
    for (const std::string& line : lines) EXPECT_EQ(line.find("Restart"), std::string::npos) << line;
    for (const std::string& line : lines) EXPECT_EQ(line.find("NameTaken"), std::string::npos) << line;
    size_t children = 0;
    Let(a, [&](ActorContext& context) {
      children = context.Children().size();
      return absl::OkStatus();
    });
    EXPECT_EQ(children, 1u);
    EXPECT_EQ(a.slot()->failures, 0);
  }
}

// A10
TEST_F(LifeCycle, GoesOnWithARestartWhoseFirstHookThrows) {
  const ActorRef a = Spawn("a", {.pre_restart = [](ActorContext&, const absl::Status&, Envelope*) -> absl::Status {
                             throw std::runtime_error("not now");
                           }});
  Told();
  Fail(a);
  EXPECT_EQ(Told(), (Lines{"a PreRestart", "a made", "a PostRestart", "a PreStart"}));
  const Lines logged = Logged();
  ASSERT_EQ(logged.size(), 2u);
  EXPECT_EQ(logged[0], "W pekko://test/user/a: restarts after: broken");
  EXPECT_EQ(logged[1], "E pekko://test/user/a: PreRestart threw: not now");
}

// A10
TEST_F(LifeCycle, TakesAFailureOfTheNewInstanceForANewFailure) {
  std::vector<bool> initializations;
  const ActorRef boss = Spawn("boss", {.decide = [&](ActorContext&, const Failure& failure) {
                                initializations.push_back(failure.cause == FailureCause::kInitialization);
                                return initializations.size() < 4 ? Restart() : fraktor::Stop();
                              }});
  int made = 0;
  const ActorRef a = SpawnUnder(
      boss, "a",
      {.construct =
           [&made] {
             if (++made == 2) throw std::runtime_error("second");
           },
       .post_restart = [](ActorContext&, const absl::Status&) { return absl::InternalError("after the restart"); }});
  Fail(a);  // The second constructor throws. The third instance starts by PreStart.
  Fail(a);  // The fourth instance fails in PostRestart, and the supervisor stops the actor.
  EXPECT_EQ(initializations, (std::vector<bool>{false, true, false, true}));
  EXPECT_FALSE(IsAlive(a));
}

class Holder final : public ActorInstance {
 public:
  explicit Holder(std::atomic<int>* alive) : alive_(*alive) { EXPECT_EQ(alive_.fetch_add(1), 0); }
  ~Holder() override { alive_.fetch_sub(1); }
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::InternalError("broken"); }

 private:
  std::atomic<int>& alive_;
};

TEST_F(LifeCycle, FreesWhatTheOldInstanceHoldsBeforeTheNewOneIsMade) {
  std::atomic<int> alive{0};
  const ActorRef a = system().TrySpawn(*MakeProps<Holder>({}, &alive)).value();
  Tell(a, 1);
  Settle();
  EXPECT_EQ(alive.load(), 1);
  EXPECT_TRUE(IsAlive(a));
  system_.reset();
  EXPECT_EQ(alive.load(), 0);
}

// A1: system messages that arrive during the restart wait for the start of the new instance.
TEST_F(LifeCycle, StartsTheNewInstanceOfARestartBeforeAReplyReachesIt) {
  ActorRef promise;
  const ActorRef asked = Spawn("asked", {.other = [&](ActorContext& context, Envelope&) {
                                 promise = context.sender();
                                 return absl::OkStatus();
                               }});
  const ActorRef a = Spawn("a", {.pre_restart =
                                     [&](ActorContext& context, const absl::Status&, Envelope*) {
                                       context.Tell(promise, std::string("reply"));
                                       return absl::OkStatus();
                                     },
                                 .reply =
                                     [&](ActorContext&, const absl::StatusOr<Envelope*>& reply) {
                                       diary_.Add("a gets the " + (*reply)->As<std::string>());
                                       return absl::OkStatus();
                                     }});
  Let(a, [&](ActorContext& context) { return context.AskOnReply(asked, 1, absl::Minutes(1)).status(); });
  Told();
  Fail(a);
  EXPECT_EQ(Told(), (Lines{"a PreRestart", "a made", "a PostRestart", "a PreStart", "a gets the reply"}));
}

// Cannot say whether it takes a PoisonPill.
class Undecided final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
  bool TakesPoisonPill() const override { throw std::runtime_error("undecided"); }
};

// An exception of TakesPoisonPill is a failure of the actor, which handles no further message
// before the verdict.
TEST_F(LifeCycle, FailsAnActorThatThrowsWhenAPoisonPillComes) {
  const ActorRef boss = Spawn("boss", {.decide = [this](ActorContext&, const Failure& failure) {
                                diary_.Add(std::string(failure.error.message()));
                                EXPECT_EQ(failure.cause, FailureCause::kThrown);
                                return fraktor::Stop();
                              }});
  absl::StatusOr<ActorRef> kid = absl::UnknownError("no turn");
  const PropsPtr props = MakeProps<Undecided>({});
  Let(boss, [&](ActorContext& context) {
    kid = context.TrySpawn(*props, "kid");
    return absl::OkStatus();
  });
  ASSERT_TRUE(kid.ok()) << kid.status();
  Told();
  Tell(*kid, PoisonPill{});
  Settle();
  EXPECT_EQ(Told(), Lines{"TakesPoisonPill threw: undecided"});
  EXPECT_FALSE(IsAlive(*kid));
}

// A1: the failure of a child arrives while the parent restarts.
TEST_F(LifeCycle, StartsTheNewInstanceOfARestartBeforeItDecidesOnAChild) {
  ActorRef kid;
  const ActorRef a =
      Spawn("a", {.pre_restart =
                      [&](ActorContext& context, const absl::Status&, Envelope*) {
                        TellSystem(context.self(), MakeEnvelope<ChildFailed>(kid, absl::InternalError("broken kid"),
                                                                             FailureCause::kReturned));
                        return absl::OkStatus();
                      },
                  .decide =
                      [&](ActorContext&, const Failure& failure) {
                        EXPECT_EQ(failure.child, kid);
                        diary_.Add("a decides");
                        return Resume();
                      }});
  kid = SpawnUnder(a, "kid");
  Told();
  Fail(a);
  Lines lines = Told();
  ASSERT_GE(lines.size(), 5u);
  lines.resize(5);
  EXPECT_EQ(lines, (Lines{"a PreRestart", "a made", "a PostRestart", "a PreStart", "a decides"}));
}

Task<void> WriteInto(Diary* diary, std::string line) {
  diary->Add(std::move(line));
  co_return;
}

// A3: system messages may arrive before the first turn.
TEST_F(LifeCycle, StartsAnActorBeforeATaskRunsInIt) {
  const ActorRef a = system().TrySpawn(*PropsFor("a"), "a").value();
  ASSERT_EQ(TellSystem(a, MakeEnvelope<TaskForActor>(ActorRef(), WriteInto(&diary_, "a task"))), nullptr);
  Settle();
  EXPECT_EQ(Told(), (Lines{"a made", "a PreStart", "a task"}));
}

// A11: a constructor has no context, so PreStart spawns the children.
TEST_F(LifeCycle, SpawnsTheChildrenOfAStartAgainAfterARestart) {
  const PropsPtr kid_props = PropsFor("kid");
  ActorRef kid;
  const ActorRef a = Spawn("a", {.pre_start = [&](ActorContext& context) {
                             const absl::StatusOr<ActorRef> spawned = context.TrySpawn(*kid_props, "kid");
                             if (spawned.ok()) kid = *spawned;
                             return spawned.status();
                           }});
  const ActorRef first = kid;
  Fail(a);
  EXPECT_TRUE(IsAlive(a));
  EXPECT_FALSE(IsAlive(first));
  EXPECT_TRUE(IsAlive(kid));
  EXPECT_EQ(system().PathOf(kid), "pekko://test/user/a/kid");
}

// A14
TEST_F(LifeCycle, FreesANameBeforeTheEndIsKnown) {
  const ActorRef a = Spawn("a");
  ActorRef second;
  const PropsPtr props = PropsFor("a");
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext& context, const Terminated&) {
                                   const absl::StatusOr<ActorRef> spawned = context.system().TrySpawn(*props, "a");
                                   if (spawned.ok()) second = *spawned;
                                   return spawned.status();
                                 }});
  Let(watcher, [&](ActorContext& context) { return context.Watch(a); });
  const std::string path = system().PathOf(a);
  const std::string canonical = system().CanonicalPathOf(a);
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(system().TrySpawn(*props, "a").status()), ActorErrorKind::kNameTaken);
  Stop(a);
  ASSERT_FALSE(second.IsNoOne());
  EXPECT_NE(second, a);
  EXPECT_EQ(system().PathOf(second), path);
  EXPECT_NE(system().CanonicalPathOf(second), canonical);
  EXPECT_EQ(system().Resolve("/user/a").value(), second);
}

class Quiet final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

// A15
TEST(LifeCycleWithThreads, LetsOneOfFourThreadsWinAName) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  ActorSystem system("race");
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = "name-" + std::to_string(round);
    std::atomic<int> ready{0};
    std::atomic<int> won{0};
    std::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        ready.fetch_add(1);
        while (ready.load() < kThreads) std::this_thread::yield();
        const absl::StatusOr<ActorRef> spawned = system.TrySpawn(PropsOf<Quiet>(), name);
        won.fetch_add(spawned.ok() ? 1 : 0);
        taken.fetch_add(ErrorKindOf<ActorErrorKind>(spawned.status()) == ActorErrorKind::kNameTaken ? 1 : 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(won.load(), 1);
    ASSERT_EQ(taken.load(), kThreads - 1);
  }
  EXPECT_TRUE(system.Shutdown(absl::InfiniteDuration()).ok());
}

// A16
TEST_F(LifeCycle, RefusesChildrenOfWhoEndsItsChildrenForGood) {
  const PropsPtr late = PropsFor("late");
  std::vector<absl::Status> refused;
  const ActorRef a = Spawn("a", {.post_stop = [&](ActorContext& context) {
                             refused.push_back(context.TrySpawn(*late).status());
                             refused.push_back(context.system().TrySpawn(*late).status());
                           }});
  ASSERT_TRUE(IsAlive(a));
  system().Terminate();
  Settle();
  refused.push_back(system().TrySpawn(*late).status());
  refused.push_back(system().TrySpawn(*late, "late").status());
  ASSERT_EQ(refused.size(), 4u);
  for (const absl::Status& status : refused) {
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(status), ActorErrorKind::kTerminating) << status;
  }
}

// A17: a context is valid in the actor's own turns, up to the last one. References are valid for
// ever.
TEST_F(LifeCycle, KeepsTheContextWholeInTheLastHookAndReferencesForEver) {
  const ActorRef friendly = Spawn("friend");
  ActorRef self;
  std::string path;
  bool has_parent = false;
  const ActorRef a =
      Spawn("a", {.post_stop = [&](ActorContext& context) {
              self = context.self();
              path = context.Path();
              has_parent = context.parent() == context.system().user_guardian();
              context.Tell(friendly, std::string("goodbye"));
              EXPECT_TRUE(context.Watch(friendly).ok());
              EXPECT_TRUE(context.AskOnReply(friendly, 1, absl::Seconds(1)).ok());
              auto answer = context.Ask<int>(friendly, 1, absl::Seconds(1));
              context.system()
                  .toolbox()
                  .ScheduleAfter(absl::Seconds(5), [self = context.self()] { Tell(self, std::string("late")); })
                  .IgnoreError();
            }});
  Told();
  Stop(a);
  EXPECT_EQ(self, a);
  EXPECT_EQ(path, "pekko://test/user/a");
  EXPECT_TRUE(has_parent);
  EXPECT_EQ(Told(), (Lines{"a PostStop", "friend: goodbye"}));
  const uint64_t before = system().dead_letters().count(DeadLetterReason::kStopped);
  RunFor(absl::Seconds(10));
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kStopped), before + 1);
}

// A18
TEST_F(LifeCycle, FinishesTheMessageInWhichAnActorStopsItself) {
  const ActorRef a = Spawn("a");
  Told();
  Tell(a, Act{[&](ActorContext& context) {
         context.Stop(context.self());
         diary_.Add("still there");
         return absl::OkStatus();
       }});
  Say(a, "never");
  Settle();
  EXPECT_EQ(Told(), (Lines{"still there", "a PostStop"}));
}

// A17: any other use ends the program with a text.
TEST_F(LifeCycle, DoesNotLetAContextBeUsedOutsideOfItsTurns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ActorRef a = Spawn("a");
  const ActorRef b = Spawn("b");
  ActorContext* kept = nullptr;
  Let(a, [&](ActorContext& context) {
    kept = &context;
    return absl::OkStatus();
  });
  ASSERT_NE(kept, nullptr);
#ifndef NDEBUG
  EXPECT_DEATH(kept->Tell(b, 1),
               "Tell of the context of pekko://test/user/a was called outside of its turns, on a thread that is");
  EXPECT_DEATH(static_cast<void>(kept->Watch(b)), "keep context.self\\(\\), which any thread may send to");
  Let(b, [&](ActorContext&) {
    EXPECT_DEATH(static_cast<void>(kept->self()), "in a turn of pekko://test/user/b");
    return absl::OkStatus();
  });
  toolbox_
      ->ScheduleAfter(absl::Seconds(1),
                      [&] { EXPECT_DEATH(kept->Stop(), "Stop of the context .*was called outside of its turns"); })
      .value();
  RunFor(absl::Seconds(1));
#endif
}

TEST_F(LifeCycle, DoesNotLetAnActorDestroyItsSystem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Let(Spawn("a"), [&](ActorContext&) {
    EXPECT_DEATH(system_.reset(),
                 "the actor system \"test\" was destroyed in a turn of pekko://test/user/a, .*let main own the system, "
                 "and call Terminate\\(\\) in handlers");
    return absl::OkStatus();
  });
  // A turn of another system's actor may destroy a system.
  std::unique_ptr<ActorSystem> other = ActorSystem::Create({.config = {.system_name = "other"}}).value();
  Let(Spawn("b"), [&](ActorContext&) {
    other.reset();
    return absl::OkStatus();
  });
  EXPECT_EQ(other, nullptr);
}

class Narcissus {
 public:
  explicit Narcissus(ActorSystem& system) { system.Extension<Narcissus>(); }
};

TEST_F(LifeCycle, DoesNotLetAnExtensionAskForItselfInItsConstructor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(system().Extension<Narcissus>(), "an extension of the actor system \"test\" asks for itself");
}

// The first constructor lasts until there is a second one, or for a while.
class MadeOnce {
 public:
  explicit MadeOnce(ActorSystem&) {
    if (made.fetch_add(1) > 0) {
      second.Notify();
    } else {
      first.Notify();
      second.WaitForNotificationWithTimeout(absl::Milliseconds(100));
    }
  }
  static inline std::atomic<int> made{0};
  static inline absl::Notification first;
  static inline absl::Notification second;
};

TEST_F(LifeCycle, MakesAnExtensionOnceForThreadsThatAskAtOnce) {
  ActorSystem& system = this->system();
  const MadeOnce* other = nullptr;
  std::thread maker([&] { other = &system.Extension<MadeOnce>(); });
  MadeOnce::first.WaitForNotification();
  const MadeOnce* const mine = &system.Extension<MadeOnce>();
  maker.join();
  EXPECT_EQ(MadeOnce::made.load(), 1);
  EXPECT_EQ(mine, other);
}

// An extension whose first constructor throws.
class MadeAgain {
 public:
  explicit MadeAgain(ActorSystem&) {
    if (tries++ == 0) throw std::runtime_error("not yet");
  }
  static inline int tries = 0;
};

TEST_F(LifeCycle, MakesAnExtensionAgainIfItsConstructorThrew) {
  EXPECT_THROW(system().Extension<MadeAgain>(), std::runtime_error);
  EXPECT_EQ(&system().Extension<MadeAgain>(), &system().Extension<MadeAgain>());
  EXPECT_EQ(MadeAgain::tries, 2);
}

// Two threads make an extension each at once. Both extensions need the same third one.
struct Needed {
  explicit Needed(ActorSystem&) { made.fetch_add(1); }
  static inline std::atomic<int> made{0};
};
std::latch& BothNeed() {
  static auto& latch = *new std::latch(2);
  return latch;
}
template <int kNumber>
struct Needs {
  explicit Needs(ActorSystem& system) {
    BothNeed().arrive_and_wait();
    system.Extension<Needed>();
  }
};

TEST_F(LifeCycle, MakesExtensionsThatNeedTheSameOne) {
  ActorSystem& system = this->system();
  std::thread maker([&] { system.Extension<Needs<1>>(); });
  system.Extension<Needs<2>>();
  maker.join();
  EXPECT_EQ(Needed::made.load(), 1);
}

// Each of two threads makes an extension that needs the other one.
std::latch& BothBegun() {
  static auto& latch = *new std::latch(2);
  return latch;
}
class NeedsRight;
class NeedsLeft {
 public:
  explicit NeedsLeft(ActorSystem& system);
};
class NeedsRight {
 public:
  explicit NeedsRight(ActorSystem& system) {
    BothBegun().arrive_and_wait();
    system.Extension<NeedsLeft>();
  }
};
NeedsLeft::NeedsLeft(ActorSystem& system) {
  BothBegun().arrive_and_wait();
  system.Extension<NeedsRight>();
}

TEST_F(LifeCycle, DoesNotLetExtensionsOfTwoThreadsWaitForEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ActorSystem& system = this->system();
  EXPECT_DEATH(
      {
        std::thread maker([&] { system.Extension<NeedsLeft>(); });
        system.Extension<NeedsRight>();
        maker.join();
      },
      "an extension of the actor system \"test\" asks for itself in its constructor, or for another that needs it");
}

Task<void> DoNothing() { co_return; }

// A17: with NDEBUG, the call fails instead.
TEST_F(LifeCycle, RefusesAContextOutsideOfItsTurnsIfTheProgramGoesOn) {
  const RefusedMisuse as_with_ndebug;
  const ActorRef a = Spawn("a");
  const ActorRef b = Spawn("b");
  ActorContext* kept = nullptr;
  Let(a, [&](ActorContext& context) {
    kept = &context;
    return absl::OkStatus();
  });
  const PropsPtr props = PropsFor("c");
  const auto expect_refused = [&](std::string_view where) {
    const std::vector<std::pair<std::string, absl::Status>> all = {
        {"Watch", kept->Watch(b)},
        {"WatchWith", kept->WatchWith(b, 1)},
        {"Spawn", kept->TrySpawn(*props).status()},
        {"Run", kept->Run(DoNothing())},
        {"Delay", kept->Delay(absl::Seconds(1)).Take()},
        {"Ask", kept->Ask<int>(b, 1, absl::Seconds(1)).Take().status()},
        {"AskOnReply", kept->AskOnReply(b, 1, absl::Seconds(1)).status()}};
    for (const auto& [call, refused] : all) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
      const std::string text(refused.message());
      EXPECT_EQ(text.find(call + " of the context of pekko://test/user/a was called outside of its turns, "), 0u)
          << text;
      EXPECT_NE(text.find(where), std::string::npos) << text;
    }
  };
  expect_refused("on a thread that is no worker");
  Let(b, [&](ActorContext&) {
    expect_refused("in a turn of pekko://test/user/b");
    return absl::OkStatus();
  });
  toolbox_->ScheduleAfter(absl::Seconds(1), [&] { expect_refused("outside of its turns, "); }).value();
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(IsAlive(a) && IsAlive(b));
}

// A11: a PreRestart can call the default one.
TEST_F(LifeCycle, StopsChildrenInAPreRestartThatAsksForIt) {
  for (const bool stops : {true, false}) {
    const ActorRef a = Spawn("a", {.pre_restart = [&](ActorContext& context, const absl::Status&, Envelope*) {
                               if (stops) context.StopChildren();
                               return absl::OkStatus();
                             }});
    const ActorRef kid = SpawnUnder(a, "kid");
    Fail(a);
    EXPECT_EQ(IsAlive(kid), !stops);
    Stop(a);
  }
}

class Idle final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext&, Envelope&) override { return absl::OkStatus(); }
};

// Fails on each message, and does in PreRestart what is usual.
class CallsTheUsualPreRestart final : public ActorInstance {
 public:
  CallsTheUsualPreRestart(Diary* diary, ActorRef* child) : diary_(*diary), child_(*child) {}

  absl::Status Receive(ActorContext& context, Envelope&) override {
    child_ = context.Spawn(PropsOf<Idle>());
    return absl::InternalError("broken");
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status&, Envelope*) override {
    diary_.Add("PreRestart");
    UsualPreRestart(context);
    return absl::OkStatus();
  }
  void PostStop(ActorContext&) override { diary_.Add("PostStop"); }

 private:
  Diary& diary_;
  ActorRef& child_;
};

// A11
TEST_F(LifeCycle, APreRestartCanCallTheUsualOneByItsName) {
  ActorRef child;
  const PropsPtr props = MakeProps<CallsTheUsualPreRestart>({}, &diary_, &child);
  const ActorRef actor = system().Spawn(*props, "usual");
  Say(actor, "fail");
  Settle();
  EXPECT_EQ(Told(), (Lines{"PreRestart", "PostStop"}));
  EXPECT_TRUE(IsAlive(actor));
  EXPECT_FALSE(child.IsNoOne());
  EXPECT_FALSE(IsAlive(child));
  Stop(actor);
}

// A19
TEST_F(LifeCycle, EndsAtAPoisonPillAfterWhatWasSentBefore) {
  const ActorRef a = Spawn("a");
  Told();
  Say(a, "before");
  Tell(a, PoisonPill{});
  Say(a, "after");
  Settle();
  EXPECT_EQ(Told(), (Lines{"a: before", "a PostStop"}));
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kStopped), 1u);
}

// A19, SCH-4
TEST_F(LifeCycle, TakesAPoisonPillIntoAFullMailboxBehindWhatIsThere) {
  for (const OverflowStrategy overflow :
       {OverflowStrategy::kDropOldest, OverflowStrategy::kDropNewest, OverflowStrategy::kBlockProducer,
        OverflowStrategy::kReject, OverflowStrategy::kDeadLetter}) {
    for (const bool from_actor : {false, true}) {
      SCOPED_TRACE(std::string(ToString(overflow)) + (from_actor ? " by an actor" : " by a thread"));
      const ActorRef teller = Spawn("teller");
      PropsOptions options;
      options.mailbox = {.capacity = 2, .overflow = overflow};
      const ActorRef a = Spawn("a", {}, options);
      Told();
      const auto send = [&] {
        for (const char* const text : {"1", "2", "3"}) Say(a, text);
        Tell(a, PoisonPill{});
        Tell(a, PoisonPill{});
        Say(a, "4");
      };
      if (from_actor) {
        Let(teller, [&](ActorContext&) {
          send();
          return absl::OkStatus();
        });
      } else {
        send();
        Settle();
      }
      EXPECT_FALSE(IsAlive(a));
      const Lines told = Told();
      // A held message comes before the pill.
      const bool waits = overflow == OverflowStrategy::kBlockProducer && from_actor;
      // Two messages are dropped, and neither is the pill.
      const bool drops = overflow == OverflowStrategy::kDropOldest;
      EXPECT_EQ(told, waits   ? (Lines{"a: 1", "a: 2", "a: 3", "a PostStop"})
                      : drops ? (Lines{"a: 3", "a PostStop"})
                              : (Lines{"a: 1", "a: 2", "a PostStop"}));
      Stop(teller);
      Told();
    }
  }
}

// A19, SCH-4
TEST_F(LifeCycle, TakesAKillIntoAFullMailbox) {
  PropsOptions options;
  options.mailbox = {.capacity = 1};
  const ActorRef a = Spawn("a", {}, options);
  Say(a, "1");
  Say(a, "2");
  Tell(a, Kill{});
  Settle();
  EXPECT_FALSE(IsAlive(a));
}

// A19
TEST_F(LifeCycle, FailsAtAKillForWhichTheUsualVerdictIsStop) {
  std::vector<bool> killed;
  const ActorRef boss =
      Spawn("boss", {.decide = [&](ActorContext& context, const Failure& failure) {
              killed.push_back(failure.cause == FailureCause::kKilled);
              return failure.child == context.Child("b") ? Restart() : SupervisorStrategy::DecideByDefault(failure);
            }});
  const ActorRef a = SpawnUnder(boss, "a");
  const ActorRef b = SpawnUnder(boss, "b");
  Told();
  Say(a, "before");
  Tell(a, Kill{});
  Say(a, "after");
  Settle();
  EXPECT_EQ(Told(), (Lines{"a: before", "a PostStop"}));
  Tell(b, Kill{});
  Say(b, "after");
  Settle();
  EXPECT_EQ(Told(), (Lines{"b PreRestart", "b PostStop", "b made", "b PostRestart", "b PreStart", "b: after"}));
  EXPECT_EQ(killed, (std::vector<bool>{true, true}));
}

// A21
TEST_F(LifeCycle, FindsLivingChildrenByName) {
  const ActorRef a = Spawn("a");
  const ActorRef kid = SpawnUnder(a, "kid");
  ActorRef unnamed;
  const PropsPtr props = PropsFor("unnamed");
  std::vector<ActorRef> found;
  const auto look = [&](ActorContext& context) {
    found = {context.Child("kid"), context.Child("$a"), context.Child("nobody"), context.Child("no/name")};
    return absl::OkStatus();
  };
  Let(a, [&](ActorContext& context) {
    unnamed = context.TrySpawn(*props).value();
    return look(context);
  });
  EXPECT_EQ(system().PathOf(unnamed), "pekko://test/user/a/$b");
  Let(a, [&](ActorContext& context) {
    found = {context.Child("kid"), context.Child("$b"), context.Child("nobody"), context.Child("no/name")};
    return absl::OkStatus();
  });
  EXPECT_EQ(found, (std::vector<ActorRef>{kid, unnamed, ActorRef(), ActorRef()}));
  Stop(kid);
  Stop(unnamed);
  Let(a, look);
  EXPECT_EQ(found, (std::vector<ActorRef>(4)));
}

// A22
TEST_F(LifeCycle, EndsParentsAfterAllOfTheirDescendants) {
  const ActorRef a = Spawn("a");
  const ActorRef b = SpawnUnder(a, "b");
  SpawnUnder(b, "c");
  Told();
  Stop(a);
  EXPECT_EQ(Told(), (Lines{"c PostStop", "b PostStop", "a PostStop"}));
}

// A38
TEST_F(LifeCycle, LetsTheHooksAnswerTheMessageThatTheActorFailedOn) {
  const ActorRef restarted =
      Spawn("restarted", {.pre_restart = [](ActorContext& context, const absl::Status&, Envelope*) {
              context.Reply(std::string("restarted, sorry"));
              return absl::OkStatus();
            }});
  EXPECT_EQ(system().AskAndWait<std::string>(restarted, fraktor::Fail(), absl::Seconds(1)).value(), "restarted, sorry");
  const ActorRef boss = Spawn("boss", {.decide = Always(SupervisionDirective::kStop)});
  const ActorRef stopped =
      SpawnUnder(boss, "stopped", {.post_stop = [](ActorContext& context) { context.Reply(std::string("stopped")); }});
  EXPECT_EQ(system().AskAndWait<std::string>(stopped, fraktor::Fail(), absl::Seconds(1)).value(), "stopped");
}

// A39: a spawn fails while the parent ends.
TEST_F(LifeCycle, LetsAnActorSpawnAChildAgainWhenItHearsOfItsEnd) {
  const PropsPtr kid_props = PropsFor("kid");
  int ends = 0;
  absl::Status while_ending;
  const auto spawn = [&](ActorContext& context) -> absl::Status {
    const absl::StatusOr<ActorRef> kid = context.TrySpawn(*kid_props, "kid");
    return kid.ok() ? context.Watch(*kid) : kid.status();
  };
  const ActorRef a = Spawn("a", {.pre_start = spawn,
                                 .post_stop = [&](ActorContext& context) { while_ending = spawn(context); },
                                 .terminated =
                                     [&](ActorContext& context, const Terminated&) {
                                       ++ends;
                                       return spawn(context);
                                     }});
  for (int i = 0; i < 3; ++i) Stop(system().Resolve("/user/a/kid").value());
  EXPECT_EQ(ends, 3);
  EXPECT_TRUE(system().Resolve("/user/a/kid").ok());
  Stop(a);
  EXPECT_EQ(ends, 3);
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(while_ending), ActorErrorKind::kTerminating) << while_ending;
}

// A41: the spawner of a top-level actor gets the error too.
TEST_F(LifeCycle, TellsTheSpawnerOfAMailboxThatCannotBe) {
  const PropsOptions bad{.mailbox = {.capacity = 2, .reserve_for_system = 2}};
  const PropsPtr props = PropsFor("bad", {}, bad);
  const absl::Status top = system().TrySpawn(*props, "bad").status();
  EXPECT_EQ(top.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(top.message().find("reserve_for_system"), absl::string_view::npos) << top;
  const ActorRef a = Spawn("a");
  absl::Status child;
  Let(a, [&](ActorContext& context) {
    child = context.TrySpawn(*props, "bad").status();
    return absl::OkStatus();
  });
  EXPECT_EQ(child, top);
  EXPECT_TRUE(IsAlive(a));
  // The failed spawns leave nothing behind.
  Told();
  EXPECT_TRUE(system().TrySpawn(*PropsFor("bad"), "bad").ok());
}

// A43, A61
TEST_F(LifeCycle, PublishesWhatNobodyHandlesAlsoOfGuardians) {
  std::vector<std::string> unhandled;
  const EventSubscription listening = system().events().Listen<UnhandledMessage>([&](const UnhandledMessage& event) {
    unhandled.push_back(std::string(event.recipient) + " " + std::string(event.message.type_name));
  });
  for (const ActorRef guardian : {system().root_guardian(), system().user_guardian(), system().system_guardian()}) {
    Tell(guardian, 7);
  }
  Tell(Spawn("a"), 7);
  Settle();
  EXPECT_EQ(unhandled, (Lines{"pekko://test/ int", "pekko://test/user int", "pekko://test/system int",
                              "pekko://test/user/a int"}));
  EXPECT_EQ(system().dead_letters().total(), system().dead_letters().count(DeadLetterReason::kUnhandled));
  EXPECT_FALSE(system().IsTerminated());
}

// A60
TEST_F(LifeCycle, MakesADeadLetterOfAnAnswerToNoOneAndForwardsWithTheFirstSender) {
  const ActorRef a = Spawn("a");
  Let(a, [](ActorContext& context) {
    EXPECT_TRUE(context.sender().IsNoOne());
    context.Reply(1);
    return absl::OkStatus();
  });
  EXPECT_EQ(system().dead_letters().count(DeadLetterReason::kNoRecipient), 1u);
  ActorRef sender;
  const ActorRef last = Spawn("last", {.other = [&](ActorContext& context, Envelope&) {
                                sender = context.sender();
                                return absl::OkStatus();
                              }});
  const ActorRef middle = Spawn("middle", {.other = [&](ActorContext& context, Envelope&) {
                                  context.Forward(last);
                                  return absl::OkStatus();
                                }});
  Let(a, [&](ActorContext& context) {
    context.Tell(middle, 1);
    return absl::OkStatus();
  });
  EXPECT_EQ(sender, a);
}

// A94
TEST_F(LifeCycle, PublishesSuppressedDeadLettersApart) {
  std::vector<std::string> letters;
  std::vector<std::string> suppressed;
  int all = 0;
  const auto text = [](const AllDeadLetters& letter) {
    return std::string(letter.message.type_name) + " to " + std::string(letter.recipient);
  };
  EventStream& events = system().events();
  const EventSubscription one =
      events.Listen<DeadLetter>([&](const DeadLetter& letter) { letters.push_back(text(letter)); });
  const EventSubscription two = events.Listen<SuppressedDeadLetter>(
      [&](const SuppressedDeadLetter& letter) { suppressed.push_back(text(letter)); });
  const EventSubscription three = events.Listen<AllDeadLetters>([&](const AllDeadLetters&) { ++all; });
  const ActorRef a = Spawn("a");
  // Dead letters from the mailbox of an ending actor have its path.
  Tell(a, PoisonPill{});
  Tell(a, PoisonPill{});
  Tell(a, 7);
  Settle();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0], "int to pekko://test/user/a");
  ASSERT_EQ(suppressed.size(), 1u);
  EXPECT_NE(suppressed[0].find("PoisonPill to pekko://test/user/a"), std::string::npos) << suppressed[0];
  EXPECT_EQ(all, 2);
}

// Begins a task in each of its last hooks, and says when it is destroyed itself.
class BusyToTheEnd final : public ActorInstance {
 public:
  explicit BusyToTheEnd(Diary* diary) : diary_(*diary) {}
  ~BusyToTheEnd() override { diary_.Add("the actor is destroyed"); }

  absl::Status Receive(ActorContext&, Envelope&) override { return absl::InternalError("broken"); }
  absl::Status PreRestart(ActorContext& context, const absl::Status&, Envelope*) override {
    return context.Run(WaitInTask(context));
  }
  void PostStop(ActorContext& context) override { EXPECT_TRUE(context.Run(WaitInTask(context)).ok()); }

 private:
  Task<void> WaitInTask(ActorContext& context) {
    const absl::Cleanup ended = [this] { diary_.Add("the task ends"); };
    Future<void> delay = context.Delay(absl::Seconds(1));
    static_cast<void>(co_await delay);
    diary_.Add("the task goes on");
  }

  Diary& diary_;
};

TEST_F(LifeCycle, EndsTasksOfTheLastHooksBeforeTheActorThatTheyBelongTo) {
  const ActorRef a = system().TrySpawn(*MakeProps<BusyToTheEnd>({}, &diary_), "a").value();
  Say(a, "fail");
  Settle();
  EXPECT_EQ(Told(), (Lines{"the task ends", "the actor is destroyed"}));
  EXPECT_TRUE(IsAlive(a));
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Told(), Lines());
  Stop(a);
  EXPECT_EQ(Told(), (Lines{"the task ends", "the actor is destroyed"}));
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Told(), Lines());
}

}  // namespace
}  // namespace fraktor
