// TestKit: an actor system for a test, in virtual time.
//
//   TEST(Session, ExpiresAfterAnHour) {
//     TestKit kit;                                          // one thread, a clock that moves when the test says so
//     auto probe = kit.Probe();
//     auto session = kit.Spawn<Session>(probe.ref());
//     kit.Advance(absl::Hours(1));                          // takes microseconds
//     probe.Expect<Expired>();
//   }
//
//   // Exactly two, while the block runs and after it.
//   kit.ExpectDeadLetters<Order>(2, [&] { for (int i = 0; i < 2; ++i) ended.Tell(Order{}); });
//   kit.ExpectLog({.level = LogLevel::kWarning, .contains = "restarts"}, 1, [&] { worker.Tell(Fail{}); });
//
// Nothing runs between the calls of a test: actors run in Settle, Advance, AskAndWait, and while a
// probe or a filter waits. A kit with threads (TestKitOptions::threads) has real workers and the
// real clock.
//
// The destructor ends the system, and actors that do not end fail the test. An expectation that is
// not met fails the test too, and ends it at once.
//
// The log appears only in the texts of failures. simulation.h runs a test with many schedules.
//
// The kit is for tests only: it needs GoogleTest, with any main function.
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_ACTOR_TESTKIT_TEST_KIT_H_
#define FRAKTOR_ACTOR_TESTKIT_TEST_KIT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/internal/test_log.h"
#include "fraktor/actor/testkit/internal/test_monitor.h"
#include "fraktor/actor/testkit/log_filter.h"
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/testkit/test_probe.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/actor/typed/typed_system.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor::inline v0 {

struct TestKitOptions {
  // The default time limit of expectations.
  absl::Duration patience = absl::Seconds(3);
  // 0 means virtual time and one thread. Otherwise the number of workers, with the real clock; then
  // the patience should be long, because a machine may be busy.
  int threads = 0;
  // The limit of steps in virtual time for one call such as Settle or Advance. A step is one run of
  // one actor or one timer. Beyond it the test fails, and names the actors that are still busy:
  // they never come to rest. An actor that always has work handles up to 64 messages in a step, so
  // the default is a matter of a second or two. A Simulation has an option of its own.
  int64_t max_steps = 100'000;
  // Options of the system. The kit sets `toolbox` and `log_sink`.
  ActorSystemOptions system = {};
  // Actors that do not end with the kit fail the test.
  bool must_end = true;
};

namespace testkit_internal {

// Counts events.
class EventTally {
 public:
  explicit EventTally(TestMonitor& monitor) : monitor_(monitor) {}

  void Count(bool fits, std::string what);
  int count() const;
  // The events, one line each. A mark stands at those that match.
  std::string Describe() const;

 private:
  static constexpr size_t kShown = 20;

  TestMonitor& monitor_;
  mutable Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> shown_ ABSL_GUARDED_BY(mutex_);
};

std::string DescribeEvent(const AllDeadLetters& event);
std::string DescribeEvent(const UnhandledMessage& event);
template <class Event>
std::string DescribeEvent(const Event&) {
  return std::string(Event::kEvent.name);
}

template <class Ref>
struct ContextOf {
  using Type = ActorContext;
};
template <class... Ms>
struct ContextOf<TypedRef<Ms...>> {
  using Type = TypedContext<Ms...>;
};

// Runs in a turn of the actor that a `Ref` refers to.
template <class Ref, class Function>
Task<void> CallInTurn(Function function, std::shared_ptr<EventTally> called) {
  ActorContext& context = ActorContext::Of(*ActorContext::worker().turn_state.running());
  // Counts even if the function throws: the test goes on, and sees what the actor does.
  const absl::Cleanup count = [&] { called->Count(true, "called"); };
  function(static_cast<typename ContextOf<Ref>::Type&>(context));
  co_return;
}

template <class M>
bool Fits(const MessageView& message, const std::function<bool(const M&)>& matches) {
  return message.type == MessageTypeOf<M>() && (matches == nullptr || matches(*static_cast<const M*>(message.message)));
}

}  // namespace testkit_internal

class TestKit {
 public:
  TestKit() : TestKit(TestKitOptions()) {}
  explicit TestKit(const TestKitOptions& options);
  virtual ~TestKit();
  TestKit(const TestKit&) = delete;
  TestKit& operator=(const TestKit&) = delete;

  ActorSystem& system() { return *system_; }
  RuntimeToolbox& toolbox() { return *toolbox_; }
  const TestKitOptions& options() const { return options_; }
  testkit_internal::TestLogSink& log() { return log_; }

  // Spawns an A(args...) under /user, without a name.
  template <class A, class... Args>
  typename A::Ref Spawn(Args&&... args) {
    return system_->Spawn<A>({}, std::forward<Args>(args)...);
  }
  template <class A, class... Args>
  typename A::Ref Spawn(const SpawnOptions& options, Args&&... args) {
    return system_->Spawn<A>({}, options, std::forward<Args>(args)...);
  }
  template <class A, class... Args>
  typename A::Ref SpawnNamed(std::string_view name, Args&&... args) {
    return system_->Spawn<A>(name, std::forward<Args>(args)...);
  }
  template <class A, class... Args>
  typename A::Ref SpawnNamed(std::string_view name, const SpawnOptions& options, Args&&... args) {
    return system_->Spawn<A>(name, options, std::forward<Args>(args)...);
  }
  // Spawns an actor that `factory()` makes, again for each restart: see TypedContext::Spawn.
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> Spawn(Factory factory) {
    return system_->Spawn({}, std::move(factory));
  }
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> Spawn(const SpawnOptions& options, Factory factory) {
    return system_->Spawn({}, options, std::move(factory));
  }
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> SpawnNamed(std::string_view name, Factory factory) {
    return system_->Spawn(name, std::move(factory));
  }
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> SpawnNamed(std::string_view name, const SpawnOptions& options, Factory factory) {
    return system_->Spawn(name, options, std::move(factory));
  }
  // Spawns an actor by its recipe. A failure to spawn fails the test.
  ActorRef Spawn(const ActorProps& props, std::string_view name = {}, TestLocation at = TestLocation::Here());

  // Spawns a probe that takes any message, or one whose reference takes these messages. The default
  // names are "probe-1" and so on. The test fails if the name is taken.
  TestProbe Probe(std::string_view name = {}, TestLocation at = TestLocation::Here());
  template <class M, class... Ms>
  TypedProbe<M, Ms...> Probe(std::string_view name = {}, TestLocation at = TestLocation::Here()) {
    return TypedProbe<M, Ms...>(Probe(name, at));
  }

  // Runs everything that can run now. In virtual time no time passes. Actors that never come to
  // rest, such as one that sends itself a message in each turn, fail the test: see
  // TestKitOptions::max_steps.
  void Settle(TestLocation at = TestLocation::Here());
  // Lets virtual time pass, and runs everything that is due.
  void Advance(absl::Duration duration, TestLocation at = TestLocation::Here());
  // The virtual time since the kit was made; the real time in a kit with threads.
  absl::Duration Elapsed() const;

  // Runs actors, and lets time pass, until `done` returns true. The test fails after `within`. A
  // kit with threads calls `done` after each event of a probe, the log or a filter.
  void AwaitThat(std::string_view what, absl::FunctionRef<bool()> done, absl::Duration within = TestProbe::kPatience,
                 TestLocation at = TestLocation::Here());
  // The same, but returns false after `within` instead of failing the test.
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration within, TestLocation at = TestLocation::Here());

  // Runs actors, and lets time pass, until the future is ready, and takes its result. The test
  // fails after `within`. Future::Wait would never return where time is virtual.
  template <class T>
  FutureResult<T> Await(Future<T> future, absl::Duration within = TestProbe::kPatience,
                        TestLocation at = TestLocation::Here()) {
    AwaitReady(future.node(), within, at);
    return future.Take();
  }

  // Asks, and waits for the reply: as ActorSystem::AskAndWait, with the patience of the kit.
  template <class Ref, class Q>
  auto AskAndWait(const Ref& to, Q&& message) {
    return system_->AskAndWait(to, std::forward<Q>(message), options_.patience);
  }
  template <class R, class Ref, class Q>
  absl::StatusOr<R> AskAndWait(const Ref& to, Q&& message) {
    return system_->AskAndWait<R>(to, std::forward<Q>(message), options_.patience);
  }

  // Calls `function(context)` in a turn of the actor, before the messages in its mailbox, and waits
  // until it has returned. The context is a TypedContext<Ms...> for a TypedRef<Ms...>, otherwise an
  // ActorContext. An exception is a failure of the actor. The test fails if the actor has ended, or
  // has no turn in time.
  template <class Ref, class Function>
  void RunIn(const Ref& actor, Function function, TestLocation at = TestLocation::Here()) {
    AwaitTask(testkit_internal::Untyped(actor), at, [&](std::shared_ptr<testkit_internal::EventTally> called) {
      return testkit_internal::CallInTurn<Ref>(std::move(function), std::move(called));
    });
  }
  // The same with the object of the actor: `function(actor, context)`. The test fails if the actor
  // is of another class.
  //
  //   kit.RunIn<Account>(account, [](Account& object, Account::Context&) { EXPECT_EQ(object.balance(), 100); });
  template <class A, class Function>
  void RunIn(const typename A::Ref& actor, Function function, TestLocation at = TestLocation::Here()) {
    // It must not belong to the test: a function that is late may run after the test.
    const auto is_of_class = std::make_shared<bool>(false);
    RunIn(
        actor,
        [is_of_class, function = std::move(function)](typename A::Context& context) mutable {
          void* const object = context.slot().instance->ObjectOf(&typed_internal::kClassTag<A>);
          *is_of_class = object != nullptr;
          if (object != nullptr) function(*static_cast<A*>(object), context);
        },
        at);
    if (!*is_of_class) EndOnOtherClass(actor.untyped(), TypeName<A>(), at);
  }

  template <class Ref>
  bool IsAlive(const Ref& actor) const {
    return IsAliveRef(testkit_internal::Untyped(actor));
  }

  // Runs the block, and waits until exactly `times` matching events of this type have been
  // published. The test fails if there are fewer in time, or more.
  template <class Event>
  void ExpectEvents(int times, absl::FunctionRef<void()> block, std::function<bool(const Event&)> matches = nullptr,
                    TestLocation at = TestLocation::Here()) {
    testkit_internal::EventTally tally(monitor_);
    const EventSubscription listening = system_->events().Listen<Event>([&](const Event& event) {
      tally.Count(matches == nullptr || matches(event), testkit_internal::DescribeEvent(event));
    });
    block();
    AwaitTally(tally, Event::kEvent.name, times, at);
  }

  // The same for messages that became dead letters, for any reason.
  template <class M>
  void ExpectDeadLetters(int times, absl::FunctionRef<void()> block, std::function<bool(const M&)> matches = nullptr,
                         TestLocation at = TestLocation::Here()) {
    ExpectEvents<AllDeadLetters>(
        times, block,
        [matches = std::move(matches)](const AllDeadLetters& letter) {
          return testkit_internal::Fits<M>(letter.message, matches);
        },
        at);
  }
  // The same for messages that their recipient does not handle.
  template <class M>
  void ExpectUnhandled(int times, absl::FunctionRef<void()> block, std::function<bool(const M&)> matches = nullptr,
                       TestLocation at = TestLocation::Here()) {
    ExpectEvents<UnhandledMessage>(
        times, block,
        [matches = std::move(matches)](const UnhandledMessage& unhandled) {
          return testkit_internal::Fits<M>(unhandled.message, matches);
        },
        at);
  }

  // The same for lines of the log.
  void ExpectLog(const LogFilter& filter, int times, absl::FunctionRef<void()> block,
                 TestLocation at = TestLocation::Here());

  // The end of a failure's text: the time, and the last lines of the log.
  virtual std::string Surroundings() const;
  // The paths of the busy actors, parents before their children; those of all systems in a
  // simulation. In a kit with threads the snapshot is not exact.
  virtual std::vector<std::string> BusyActors() const;

 protected:
  // For a kit on a pumped toolbox, with or without ownership of it.
  TestKit(const TestKitOptions& options, std::unique_ptr<PumpedToolbox> own, PumpedToolbox* pumped);

  // Ends the system, once. The test fails unless all actors end.
  void EndSystem();

 private:
  friend class TestProbe;

  bool IsAliveRef(ActorRef actor) const;
  void AwaitReady(FutureNode& future, absl::Duration within, TestLocation at);
  // Runs a task in turns of the actor, and waits until it has counted something.
  void AwaitTask(ActorRef actor, TestLocation at,
                 absl::FunctionRef<Task<void>(std::shared_ptr<testkit_internal::EventTally> called)> make);
  [[noreturn]] void EndOnOtherClass(ActorRef actor, std::string_view wanted, TestLocation at) const;
  void AwaitTally(const testkit_internal::EventTally& tally, std::string_view what, int times, TestLocation at);
  void Boot();
  // For the text of a failure: the actors that do not come to rest.
  std::string DescribeBusy() const;
  // Fails the test with the error of the toolbox.
  [[noreturn]] void EndPumping(TestLocation at, const absl::Status& ran);

  const TestKitOptions options_;
  testkit_internal::TestMonitor monitor_;
  testkit_internal::TestLogSink log_{monitor_};
  std::unique_ptr<RuntimeToolbox> own_toolbox_;
  RuntimeToolbox* toolbox_ = nullptr;
  PumpedToolbox* pumped_ = nullptr;  // Null in a kit with threads.
  std::unique_ptr<ActorSystem> system_;
  uint64_t probes_ = 0;
  Instant started_;
  bool has_ended_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_TEST_KIT_H_
