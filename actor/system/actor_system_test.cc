// The boot, the life and the end of a system, and the events that its actors receive.
#include "fraktor/actor/system/actor_system.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_subscriber.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/internal/guardians.h"
#include "fraktor/actor/system/internal/system_fixture.h"
#include "fraktor/actor/system/internal/system_state.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/actor/tree/tree_observer.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor {

using actor_internal::ActorSlot;
using actor_internal::BootingSystemState;
using actor_internal::BootstrapErrorKind;
using actor_internal::GuardianKind;
using actor_internal::RunningSystemState;
using system_internal::Hooks;
using system_internal::Lines;
using system_internal::SystemTest;

namespace {

ActorSlot slots_for_test[4];
ActorRef RefTo(int i) { return ActorRef(&slots_for_test[i], 1); }

// GRD-1, GRD-4
TEST(SystemState, HoldsGuardiansAsReferencesWithAFlag) {
  std::vector<ActorRef> unknown;
  BootingSystemState booting([&](ActorRef actor) { unknown.push_back(actor); });
  booting.SetGuardian(GuardianKind::kRoot, RefTo(0));
  booting.SetGuardian(GuardianKind::kUser, RefTo(1));
  booting.SetGuardian(GuardianKind::kSystem, RefTo(2));
  const std::unique_ptr<RunningSystemState> running = std::move(booting).IntoRunning().value();
  running->MarkStopped(RefTo(1));
  running->MarkStopped(RefTo(1));
  EXPECT_FALSE(running->IsAlive(GuardianKind::kUser));
  EXPECT_EQ(running->guardian(GuardianKind::kUser), RefTo(1));
  EXPECT_TRUE(running->IsAlive(GuardianKind::kSystem));
  EXPECT_TRUE(running->IsAlive(GuardianKind::kRoot));
  // GRD-5
  running->MarkStopped(RefTo(3));
  EXPECT_EQ(unknown, (std::vector<ActorRef>{RefTo(3)}));
  running->MarkStopped(RefTo(0));
  EXPECT_FALSE(running->IsAlive(GuardianKind::kRoot));
  EXPECT_TRUE(running->IsAlive(GuardianKind::kSystem));
}

// GRD-3
TEST(SystemState, DoesNotRunWithoutAllGuardians) {
  for (int missing = 0; missing < 3; ++missing) {
    BootingSystemState booting;
    for (int i = 0; i < 3; ++i) {
      if (i != missing) booting.SetGuardian(static_cast<GuardianKind>(i), RefTo(i));
    }
    const absl::Status refused = std::move(booting).IntoRunning().status();
    EXPECT_EQ(ErrorKindOf<BootstrapErrorKind>(refused), BootstrapErrorKind::kMissingGuardian) << refused;
    EXPECT_NE(refused.message().find(NameOf(static_cast<GuardianKind>(missing)).data()), absl::string_view::npos);
  }
}

using System = SystemTest;

class SpawnOrder final : public TreeObserver {
 public:
  void OnSpawned(ActorRef, ActorRef, std::string_view type) override { types.emplace_back(type); }
  void OnEnded(ActorRef) override {}
  void OnDeadLetter(ActorRef, const Envelope&, DeadLetterReason) override {}
  Lines types;
};

// GRD-2
TEST_F(System, BootsRootThenUserThenSystem) {
  SpawnOrder order;
  options_.tree_observer = &order;
  system();
  ASSERT_GE(order.types.size(), 3u);
  EXPECT_NE(order.types[0].find("RootGuardian"), std::string::npos);
  EXPECT_NE(order.types[1].find("UserGuardian"), std::string::npos);
  EXPECT_NE(order.types[2].find("SystemGuardian"), std::string::npos);
  EXPECT_EQ(system().PathOf(system().root_guardian()), "pekko://test/");
  EXPECT_EQ(system().PathOf(system().user_guardian()), "pekko://test/user");
  EXPECT_EQ(system().PathOf(system().system_guardian()), "pekko://test/system");
  system_.reset();
}

// GRD-2
TEST_F(System, SpawnsAndResolvesNothingWhileItBoots) {
  std::vector<absl::Status> answers;
  options_.on_boot = [&](ActorSystem& booting) {
    const PropsPtr props = PropsFor("early");
    answers = {booting.TrySpawn(*props).status(), booting.TrySpawnWatched(*props, booting.user_guardian()).status(),
               booting.TrySpawnSystemActor(*props).status(), booting.Resolve("/user").status()};
    EXPECT_THROW(booting.Spawn(*props), SpawnError);
    EXPECT_THROW(booting.SpawnWatched(*props, booting.user_guardian()), SpawnError);
    EXPECT_THROW(booting.SpawnSystemActor(*props), SpawnError);
    return absl::OkStatus();
  };
  system();
  ASSERT_EQ(answers.size(), 4u);
  for (const absl::Status& answer : answers) {
    EXPECT_EQ(ErrorKindOf<ActorErrorKind>(answer), ActorErrorKind::kSystemNotBootstrapped) << answer;
  }
  EXPECT_TRUE(system().TrySpawn(*PropsFor("later")).ok());
  EXPECT_EQ(system().Resolve("/user").value(), system().user_guardian());
}

// GRD-2
TEST_F(System, SaysThatItIsNotUpIfItsBootFails) {
  options_.on_boot = [](ActorSystem&) { return absl::NotFoundError("no disk"); };
  const absl::Status failed = ActorSystem::Create(options_).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(failed), ActorErrorKind::kSystemNotBootstrapped) << failed;
  EXPECT_NE(failed.message().find("no disk"), absl::string_view::npos) << failed;
}

// GRD-2
TEST_F(System, SaysThatItIsNotUpIfItsBootThrows) {
  options_.on_boot = [](ActorSystem&) -> absl::Status { throw std::runtime_error("no disk"); };
  const absl::Status failed = ActorSystem::Create(options_).status();
  EXPECT_EQ(ErrorKindOf<ActorErrorKind>(failed), ActorErrorKind::kSystemNotBootstrapped) << failed;
  EXPECT_NE(failed.message().find("no disk"), absl::string_view::npos) << failed;
}

// GRD-4
TEST_F(System, EndsThatWasToldToEndWhileItBoots) {
  options_.on_boot = [](ActorSystem& booting) {
    EXPECT_FALSE(booting.root_guardian().IsNoOne());
    booting.Terminate();
    return absl::OkStatus();
  };
  EXPECT_TRUE(system().IsTerminated());
}

// GRD-4
TEST_F(System, EndsUsersThenItsOwnThenTheRootAndTellsWhoWaits) {
  Spawn("a");
  ASSERT_TRUE(system().TrySpawnSystemActor(*PropsFor("part"), "part").ok());
  Settle();
  Told();
  for (const char* name : {"first", "second"}) {
    ASSERT_TRUE(system().OnTermination([this, name] { diary_.Add(name); }).ok());
  }
  Future<void> terminated = system().WhenTerminated();
  const RunningSystemState& state = system().state();
  const ActorRef root = system().root_guardian();
  system().Terminate();
  system().Terminate();
  EXPECT_FALSE(terminated.IsReady());
  Settle();
  EXPECT_TRUE(terminated.IsReady());
  EXPECT_TRUE(terminated.Take().ok());
  EXPECT_EQ(Told(), (Lines{"a PostStop", "part PostStop", "second", "first"}));
  for (const GuardianKind kind : {GuardianKind::kRoot, GuardianKind::kUser, GuardianKind::kSystem}) {
    EXPECT_FALSE(state.IsAlive(kind));
  }
  EXPECT_EQ(system().root_guardian(), root);
  EXPECT_TRUE(system().WhenTerminated().IsReady());
  EXPECT_EQ(system().OnTermination([] {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Logged(), Lines());
}

Task<void> FailingTask() {
  throw std::runtime_error("broken");
  co_return;
}

TEST_F(System, GoesOnAfterATaskThatFailsDuringTheBoot) {
  options_.on_boot = [](ActorSystem& booting) {
    booting.Run(FailingTask());
    return absl::OkStatus();
  };
  const ActorRef a = Spawn("a");
  EXPECT_EQ(Logged(), Lines{"W pekko://test/temp: resumes after: a task threw: broken"});
  EXPECT_EQ(system().AskAndWait<ActorIdentity>(a, Identify{}, absl::Seconds(1)).status(), absl::OkStatus());
  Future<void> terminated = system().WhenTerminated();
  system().Terminate();
  Settle();
  ASSERT_TRUE(terminated.IsReady());
  EXPECT_EQ(terminated.Take(), absl::OkStatus());
}

TEST_F(System, CallsEachCallbackOfTheEndAlthoughOneThrows) {
  ASSERT_TRUE(system().OnTermination([this] { diary_.Add("first"); }).ok());
  ASSERT_TRUE(system().OnTermination([] { throw std::runtime_error("no way"); }).ok());
  Future<void> terminated = system().WhenTerminated();
  system().Terminate();
  Settle();
  EXPECT_TRUE(terminated.IsReady());
  EXPECT_EQ(Told(), Lines{"first"});
  EXPECT_EQ(Logged(), Lines{"E : a callback of ActorSystem::OnTermination threw: exception: no way"});
}

// An actor that keeps the system from ending until it gets a message.
Hooks Reluctant() {
  return {.pre_start =
              [](ActorContext& context) {
                context.Tell(context.system().system_guardian(), RegisterTerminationHook{});
                return absl::OkStatus();
              },
          .other = [](ActorContext&, Envelope&) { return absl::OkStatus(); }};
}

// GRD-5
TEST_F(System, TellsAtOnceWhoWatchesAGuardianThatHasStopped) {
  Hooks hooks = Reluctant();
  std::vector<ActorRef> ended;
  hooks.terminated = [&](ActorContext& context, const Terminated& terminated) {
    ended.push_back(terminated.actor);
    context.Tell(context.system().system_guardian(), TerminationHookDone{});
    return absl::OkStatus();
  };
  const ActorRef part = system().SpawnSystemActor(*PropsFor("part", hooks), "part");
  Settle();
  system().Terminate();
  Settle();
  EXPECT_FALSE(system().state().IsAlive(GuardianKind::kUser));
  EXPECT_TRUE(system().state().IsAlive(GuardianKind::kSystem));
  EXPECT_FALSE(system().IsTerminated());
  Let(part, [](ActorContext& context) { return context.Watch(context.system().user_guardian()); });
  EXPECT_EQ(ended, (std::vector<ActorRef>{system().user_guardian()}));
  EXPECT_TRUE(system().IsTerminated());
}

// GRD-5
TEST_F(System, WarnsOfAGuardianThatIsNone) {
  const ActorRef a = Spawn("a");
  auto& state = const_cast<RunningSystemState&>(system().state());
  state.MarkStopped(a);
  EXPECT_EQ(Logged(), (Lines{"W : pekko://test/user/a was reported as a stopped guardian, and is no guardian"}));
  EXPECT_TRUE(state.IsAlive(GuardianKind::kUser));
}

TEST_F(System, SpawnsAnActorForAnotherToWatch) {
  int ends = 0;
  const ActorRef watcher = Spawn("watcher", {.terminated = [&](ActorContext&, const Terminated&) {
                                   ++ends;
                                   return absl::OkStatus();
                                 }});
  const ActorRef a = system().SpawnWatched(*PropsFor("a"), watcher, "a");
  Settle();
  EXPECT_EQ(system().PathOf(a), "pekko://test/user/a");
  Stop(a);
  EXPECT_EQ(ends, 1);
  // Also if the guardian ends before the watch.
  ASSERT_TRUE(system().TrySpawnWatched(*PropsFor("b", {.construct = [] { throw 1; }}), watcher, "b").ok());
  Settle();
  EXPECT_EQ(ends, 2);
}

// SCH-9
TEST_F(System, SaysAtTheDeadlineWhoHasNotStopped) {
  const ActorRef part = system().SpawnSystemActor(*PropsFor("part", Reluctant()), "part");
  SpawnUnder(part, "kid");
  Spawn("a");
  Told();
  int ended = 0;
  ASSERT_TRUE(system().OnTermination([&] { ++ended; }).ok());
  Future<void> terminated = system().WhenTerminated();
  const Instant before = toolbox_->Now();
  const ShutdownReport report = system().Shutdown(absl::Seconds(7));
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(7));
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.not_stopped, (Lines{"pekko://test/system/part", "pekko://test/system/part/kid"}));
  // The actors of /user had time to end. Those of /system end without their hooks.
  EXPECT_EQ(Told(), (Lines{"a PostStop"}));
  EXPECT_TRUE(system().IsTerminated());
  EXPECT_TRUE(terminated.IsReady());
  EXPECT_EQ(ended, 1);
  EXPECT_FALSE(system().state().IsAlive(GuardianKind::kRoot));
  EXPECT_EQ(TryTell(part, 1).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(system().Shutdown(absl::Seconds(7)).ok());
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(7));
  system_.reset();
  EXPECT_EQ(toolbox_->Now() - before, absl::Seconds(7));
}

TEST_F(System, NamesTheFirstThatHasNotStoppedInTheLogOfItsEnd) {
  options_.shutdown_timeout = absl::Seconds(3);
  ASSERT_TRUE(system().TrySpawnSystemActor(*PropsFor("part", Reluctant()), "part").ok());
  Settle();
  system_.reset();
  EXPECT_EQ(Logged(),
            (Lines{"W : 1 actors had not ended within 3s (ActorSystemOptions.shutdown_timeout) and were ended "
                   "without their hooks, the first: pekko://test/system/part; look for handlers that wait, or "
                   "allow more time"}));
}

Task<void> Throws() {
  throw std::runtime_error("lost");
  co_return;
}

TEST_F(System, GoesOnAfterATaskThatFailed) {
  system().Run(Throws());
  Settle();
  const Lines logged = Logged();
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].find("W pekko://test/temp: resumes after: "), 0u) << logged[0];
  EXPECT_NE(logged[0].find("lost"), std::string::npos) << logged[0];
  const ActorRef a = Spawn("a", {.other = [](ActorContext& context, Envelope&) {
                             context.Reply(8);
                             return absl::OkStatus();
                           }});
  EXPECT_EQ(system().AskAndWait<int>(a, 7, absl::Seconds(1)).value(), 8);
}

struct Cellar {
  explicit Cellar(ActorSystem&) {}
  ~Cellar() { --alive; }
  static inline int alive = 0;
};
struct House {
  explicit House(ActorSystem& in) : system(in) { in.Extension<Cellar>(); }
  ~House() { seen_at_the_end = &system.Extension<Cellar>() != nullptr ? Cellar::alive : -1; }
  ActorSystem& system;
  static inline int seen_at_the_end = -1;
};

TEST_F(System, EndsExtensionsTheLatestFirst) {
  Cellar::alive = 1;
  House& house = system().Extension<House>();
  EXPECT_EQ(&system().Extension<House>(), &house);
  system_.reset();
  EXPECT_EQ(House::seen_at_the_end, 1);
  EXPECT_EQ(Cellar::alive, 0);
}

TEST_F(System, KnowsTheTimeOfADeadLetterFromOutside) {
  const ActorRef a = Spawn("a");
  Stop(a);
  RunFor(absl::Hours(1));
  Instant at;
  const EventSubscription listening =
      system().events().Listen<DeadLetter>([&](const DeadLetter& letter) { at = letter.at; });
  Tell(a, 7);
  EXPECT_EQ(at, toolbox_->Now());
}

// Events

struct WeatherEvent {
  static constexpr EventInfo<WeatherEvent> kEvent{"WeatherEvent"};
  static constexpr bool kOwnsItsData = true;
  std::string where;
};
struct Rain : WeatherEvent {
  static constexpr EventInfo<Rain, WeatherEvent> kEvent{"Rain"};
};
struct Snow : WeatherEvent {
  static constexpr EventInfo<Snow, WeatherEvent> kEvent{"Snow"};
};

class EventTest : public SystemTest {
 protected:
  ActorRef SpawnListener(const std::string& name) {
    return Spawn(name, {.other = [this, name](ActorContext&, Envelope& message) {
                   if (const auto* rain = message.TryAs<Rain>()) diary_.Add(name + " rain " + rain->where);
                   if (const auto* snow = message.TryAs<Snow>()) diary_.Add(name + " snow " + snow->where);
                   if (const auto* letter = message.TryAs<DeadLetterNotice>()) {
                     diary_.Add(name + " " + letter->message_type + " to " + letter->recipient);
                   }
                   return absl::OkStatus();
                 }});
  }
  // Published in a turn of the runtime, as most events are.
  void Publish(const auto& event) { system().events().Publish(event); }
};

// A89
TEST_F(EventTest, ComeOnceToAnActorThatHasSubscribedByWhateverBases) {
  EventStream& events = system().events();
  const ActorRef a = SpawnListener("a");
  EXPECT_TRUE(SubscribeActor<WeatherEvent>(events, a).value());
  EXPECT_FALSE(SubscribeActor<WeatherEvent>(events, a).value());
  EXPECT_FALSE(SubscribeActor<Rain>(events, a).value());
  EXPECT_FALSE(SubscribeActor<WeatherEvent>(events, ActorRef()).ok());
  Told();
  Publish(Rain{{"here"}});
  Let(a, [&](ActorContext& context) {
    context.system().events().Publish(Snow{{"there"}});
    return absl::OkStatus();
  });
  EXPECT_EQ(Told(), (Lines{"a rain here", "a snow there"}));
}

// A90
TEST_F(EventTest, CanBeLeftOutByOneActorAndStayForOthers) {
  EventStream& events = system().events();
  const ActorRef a = SpawnListener("a");
  const ActorRef b = SpawnListener("b");
  for (const ActorRef actor : {a, b}) ASSERT_TRUE(SubscribeActor<WeatherEvent>(events, actor).value());
  EXPECT_TRUE(UnsubscribeActor<Rain>(events, a));
  EXPECT_FALSE(UnsubscribeActor<Rain>(events, a));
  Told();
  Publish(Rain{{"1"}});
  Publish(Snow{{"2"}});
  Settle();
  EXPECT_EQ(Told(), (Lines{"a snow 2", "b rain 1", "b snow 2"}));
}

// A92
TEST_F(EventTest, ForgetAnActorThatEnds) {
  EventStream& events = system().events();
  const ActorRef a = SpawnListener("a");
  const ActorRef b = SpawnListener("b");
  ASSERT_TRUE(SubscribeActor<Rain>(events, a).value());
  ASSERT_TRUE(SubscribeActor<Snow>(events, a).value());
  ASSERT_TRUE(SubscribeActor<Rain>(events, b).value());
  EXPECT_EQ(events.subscriber_count(), 2u);
  Stop(a);
  // Without an event in between.
  EXPECT_EQ(events.subscriber_count(), 1u);
  EXPECT_FALSE(SubscribeActor<Rain>(events, a).value());
  EXPECT_EQ(events.subscriber_count(), 1u);
  // An actor that ends before the message of its subscription arrives.
  ASSERT_TRUE(SubscribeActor<Snow>(events, b).value());
  system().Stop(b);
  ASSERT_FALSE(SubscribeActor<Snow>(events, b).value());
  Settle();
  EXPECT_EQ(events.subscriber_count(), 0u);
  ActorRef late;
  const ActorRef c = Spawn("c", {.post_stop = [&](ActorContext& context) {
                             late = context.self();
                             EXPECT_TRUE(SubscribeActor<Rain>(events, context.self()).value());
                           }});
  Stop(c);
  EXPECT_EQ(late, c);
  EXPECT_EQ(events.subscriber_count(), 0u);
}

TEST_F(EventTest, BringDeadLettersToActorsAsNotices) {
  const ActorRef a = SpawnListener("a");
  const ActorRef gone = Spawn("gone");
  ASSERT_TRUE(SubscribeActor<AllDeadLetters>(system().events(), a).value());
  Told();
  Tell(gone, PoisonPill{});
  Tell(gone, 7);
  Settle();
  EXPECT_EQ(Told(), (Lines{"gone PostStop", "a int to pekko://test/user/gone"}));
}

}  // namespace
}  // namespace fraktor
