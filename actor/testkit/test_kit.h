// TestKit: a system of actors for a test, in virtual time.
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
// Nothing runs between the calls of a test: actors run in Settle, Advance, AskAndWait, and while a probe or a filter
// waits. A kit with threads (TestKitOptions::threads) has real workers and the real clock instead.
//
// At its end the kit ends the system, and actors that do not end are a failure of the test. So is what an expectation
// does not find; that ends the test at once.
//
// The log goes nowhere but into the text of failures; simulation.h runs a test with many schedules.
//
// For tests only: it needs GoogleTest, whoever has the main function.
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
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_failure.h"
#include "fraktor/actor/testkit/test_log.h"
#include "fraktor/actor/testkit/test_monitor.h"
#include "fraktor/actor/testkit/test_probe.h"
#include "fraktor/actor/turn/actor_context.h"
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
  // How long expectations wait where they say nothing else.
  absl::Duration patience = absl::Seconds(3);
  // 0: virtual time, and one thread. Otherwise so many workers, and the real clock; then patience should be long, since
  // a machine may be busy.
  int threads = 0;
  // In virtual time: so many steps, each of which is one run of one actor or one timer, may a call such as Settle or
  // Advance take. Then the test fails, and says who still has something to do: something never comes to rest. A
  // Simulation has an option of its own.
  int64_t max_steps = 1'000'000;
  // What the system is like; `toolbox` and `log_sink` are the kit's.
  ActorSystemOptions system = {};
  // Actors that do not end with the kit are a failure.
  bool must_end = true;
};

namespace testkit_internal {

// How often something has happened.
class EventTally {
 public:
  explicit EventTally(TestMonitor& monitor) : monitor_(monitor) {}

  void Count(bool fits, std::string what);
  int count() const;
  // What has happened, a line each, with a mark at those that fit.
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

// In the turn of the actor that a `Ref` refers to.
template <class Ref, class Function>
Task<void> CallInTurn(Function function, std::shared_ptr<EventTally> called) {
  ActorContext& context = ActorContext::Of(*ActorContext::worker().turn.running());
  // Also if it throws: the test goes on, and sees what the actor does.
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
  TestLogSink& log() { return log_; }

  // A child of /user without a name, made of `args`.
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
  // An actor that `factory()` makes, again for each restart: see TypedContext::Spawn.
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> Spawn(Factory factory) {
    return system_->Spawn({}, std::move(factory));
  }
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> SpawnNamed(std::string_view name, Factory factory) {
    return system_->Spawn(name, std::move(factory));
  }
  // By its recipe. The test fails if it cannot be.
  ActorRef Spawn(const ActorProps& props, std::string_view name = {}, TestLocation at = TestLocation::Here());

  // A probe that takes anything, or says that it takes these messages. Without a name it is "probe-1" and so on.
  // The test fails if it cannot have the name.
  TestProbe Probe(std::string_view name = {}, TestLocation at = TestLocation::Here());
  template <class M, class... Ms>
  TypedProbe<M, Ms...> Probe(std::string_view name = {}, TestLocation at = TestLocation::Here()) {
    return TypedProbe<M, Ms...>(Probe(name, at));
  }

  // Lets everything happen that can happen now. In virtual time no time passes. Actors that never come to rest, such as
  // one that tells itself something in each turn, are a failure: see TestKitOptions::max_steps.
  void Settle(TestLocation at = TestLocation::Here());
  // Lets so much virtual time pass, and all happen that comes with it.
  void Advance(absl::Duration duration, TestLocation at = TestLocation::Here());
  // Virtual time since the kit was made; the real one in a kit with threads.
  absl::Duration Elapsed() const;

  // Lets things happen, and time pass, until `done` says true; fails the test if that takes longer. In a kit with
  // threads it is asked when something has come to a probe, the log or a filter.
  void AwaitThat(std::string_view what, absl::FunctionRef<bool()> done, absl::Duration within = TestProbe::kPatience,
                 TestLocation at = TestLocation::Here());
  // The same without failing: false if it takes longer.
  bool RunUntil(absl::FunctionRef<bool()> done, absl::Duration within, TestLocation at = TestLocation::Here());

  // Lets things happen, and time pass, until the future is ready, and takes its result. The test
  // fails if that takes longer. Future::Wait would have no end where time is virtual.
  template <class T>
  FutureResult<T> Await(Future<T> future, absl::Duration within = TestProbe::kPatience,
                        TestLocation at = TestLocation::Here()) {
    AwaitReady(future.node(), within, at);
    return future.Take();
  }

  // Asks, and waits for the answer: as ActorSystem::AskAndWait, with the kit's patience.
  template <class Ref, class Q>
  auto AskAndWait(const Ref& to, Q&& question) {
    return system_->AskAndWait(to, std::forward<Q>(question), options_.patience);
  }
  template <class R, class Ref, class Q>
  absl::StatusOr<R> AskAndWait(const Ref& to, Q&& question) {
    return system_->AskAndWait<R>(to, std::forward<Q>(question), options_.patience);
  }

  // Calls `function(context)` in a turn of the actor, before the messages that wait in its mailbox, and waits until it
  // has returned: with a TypedContext<Ms...> for a TypedRef<Ms...>, otherwise with an ActorContext. What it throws is a
  // failure of the actor. The test fails if the actor has ended, or does not come to a turn in time.
  template <class Ref, class Function>
  void RunIn(const Ref& actor, Function function, TestLocation at = TestLocation::Here()) {
    AwaitTask(testkit_internal::Untyped(actor), at, [&](std::shared_ptr<testkit_internal::EventTally> called) {
      return testkit_internal::CallInTurn<Ref>(std::move(function), std::move(called));
    });
  }
  // The same with the object of the actor: `function(actor, context)`. The test fails if the actor is of another class.
  //
  //   kit.RunIn<Account>(account, [](Account& object, Account::Context&) { EXPECT_EQ(object.balance(), 100); });
  template <class A, class Function>
  void RunIn(const typename A::Ref& actor, Function function, TestLocation at = TestLocation::Here()) {
    // Not the test's: a function that comes too late for the test may still be called.
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

  // Runs the block, and then waits until exactly `times` events of this type have been published that match. The test
  // fails if there are fewer in time, or more.
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

  // The same for messages that reached nobody, for whatever reason.
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
  // And for messages that their receiver does not handle.
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

  // What a failure's text ends with: the time, and the last lines of the log.
  virtual std::string Surroundings() const;
  // The paths of the actors that have something to do now, parents before their children; those of all systems in a
  // simulation. A snapshot that is a little blurred in a kit with threads.
  virtual std::vector<std::string> BusyActors() const;

 protected:
  // On a toolbox that is pumped, which the kit owns or not.
  TestKit(const TestKitOptions& options, std::unique_ptr<PumpedToolbox> own, PumpedToolbox* pumped);

  // Ends the system, once. A failure unless all actors end.
  void EndSystem();

 private:
  friend class TestProbe;

  bool IsAliveRef(ActorRef actor) const;
  void AwaitReady(FutureNode& future, absl::Duration within, TestLocation at);
  // Runs a task in the actor's turns, and waits until it has counted something.
  void AwaitTask(ActorRef actor, TestLocation at,
                 absl::FunctionRef<Task<void>(std::shared_ptr<testkit_internal::EventTally> called)> make);
  [[noreturn]] void EndOnOtherClass(ActorRef actor, std::string_view wanted, TestLocation at) const;
  void AwaitTally(const testkit_internal::EventTally& tally, std::string_view what, int times, TestLocation at);
  void Boot();
  // For the text of a failure: who does not come to rest.
  std::string DescribeBusy() const;
  // Fails the test with what pumping came to.
  [[noreturn]] void EndPumping(TestLocation at, const absl::Status& ran);

  const TestKitOptions options_;
  TestMonitor monitor_;
  TestLogSink log_{monitor_};
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
