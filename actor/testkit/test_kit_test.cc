#include "fraktor/actor/testkit/test_kit.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/actor/testkit/test_probe.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor {
namespace {

struct Greeted {
  std::string text;
  friend bool operator==(const Greeted&, const Greeted&) = default;
  friend void PrintTo(const Greeted& greeted, std::ostream* out) { *out << "Greeted(" << greeted.text << ")"; }
};
struct Greet {
  using Reply = Greeted;
  std::string name;
};
struct Fail {};
struct Parcel {
  std::unique_ptr<int> content;
};

class Greeter : public Actor<Greeter, Greet, Fail> {
 public:
  Greeted On(Context&, const Greet& greet) { return {"Hello, " + greet.name}; }
  absl::Status On(Context&, const Fail&) { return absl::InternalError("out of words"); }
};

struct Expired {};

// Sends Expired an hour after its start.
class Session : public Actor<Session, Greet> {
 public:
  explicit Session(ActorRef owner) : owner_(owner) {}
  absl::Status PreStart(Context& context) { return context.Run(Expire(context, owner_)); }
  Greeted On(Context&, const Greet&) { return {}; }

 private:
  static Task<void> Expire(Context& context, ActorRef owner) {
    auto hour = context.Delay(absl::Hours(1));
    co_await hour;
    context.Tell(owner, Expired{});
  }

  ActorRef owner_;
};

// Returns the text of a failing test. The failing expectation also ends the test, which would be
// this one.
void Ended(const std::function<void()>& test) {
  try {
    test();
  } catch (const testing::AssertionException&) {
    return;
  }
  ADD_FAILURE() << "the test went on";
}
#define EXPECT_TEST_ENDS(statement, text) EXPECT_NONFATAL_FAILURE(Ended([&] { statement; }), text)

TEST(TestKit, LetsAnHourPassInNoTime) {
  TestKit kit;
  auto probe = kit.Probe();
  kit.Spawn<Session>(probe.ref());
  kit.Advance(absl::Minutes(59));
  probe.ExpectNoMessage();
  kit.Advance(absl::Minutes(1));
  probe.Expect<Expired>(absl::ZeroDuration());
  EXPECT_EQ(kit.Elapsed(), absl::Hours(1));
}

struct Spin {};

// Never comes to rest.
class Spinner : public Actor<Spinner, Spin> {
 public:
  void On(Context& context, const Spin& spin) { context.Tell(context.self(), spin); }
};

TEST(TestKit, SaysWhoNeverComesToRest) {
  TestKitOptions options;
  options.max_steps = 1000;
  options.must_end = false;
  const auto with_spinner = [&](const std::function<void(TestKit&)>& wait) {
    TestKit kit(options);
    kit.Spawn<Greeter>().Tell(Fail{});
    kit.SpawnNamed<Spinner>("spinner").Tell(Spin{});
    wait(kit);
  };
  EXPECT_TEST_ENDS(with_spinner([](TestKit& kit) { kit.Settle(); }), "has not come to rest after 1000 steps");
  // No other actor is named.
  constexpr char kWho[] = "these actors have work:\n    pekko://default/user/spinner\n  check whether";
  EXPECT_TEST_ENDS(with_spinner([](TestKit& kit) { kit.Settle(); }), kWho);
  EXPECT_TEST_ENDS(with_spinner([](TestKit& kit) { kit.Advance(absl::Seconds(1)); }), kWho);
  EXPECT_TEST_ENDS(with_spinner([](TestKit& kit) { kit.RunUntil([] { return false; }, absl::Seconds(1)); }), kWho);
}

TEST(TestKit, NamesOnlySomeOfManyThatNeverComeToRest) {
  TestKitOptions options;
  options.max_steps = 1000;
  options.must_end = false;
  const auto with_spinners = [&] {
    TestKit kit(options);
    for (int i = 0; i < 12; ++i) kit.Spawn<Spinner>().Tell(Spin{});
    kit.Settle();
  };
  EXPECT_TEST_ENDS(with_spinners(), "\n    and 2 more\n  check whether");
}

TEST(TestKit, SaysThatNoActorIsBusyWhereTimersAre) {
  TestKitOptions options;
  options.max_steps = 1000;
  const auto with_timer = [&] {
    TestKit kit(options);
    kit.Settle();
    EXPECT_TRUE(kit.toolbox().SchedulePeriodic({.period = absl::Milliseconds(1)}, [] {}).ok());
    kit.Advance(absl::Hours(1));
  };
  EXPECT_TEST_ENDS(with_timer(), "no actor has work now: look for a timer");
}

TEST(TestKit, AProbeWaitsInVirtualTimeAndOnlyAsLongAsItTakes) {
  TestKit kit;
  auto probe = kit.Probe();
  kit.Spawn<Session>(probe.ref());
  probe.ExpectNoMessage(absl::Minutes(30));
  probe.Expect<Expired>(absl::Hours(10));
  EXPECT_EQ(kit.Elapsed(), absl::Hours(1));
}

TEST(TestKit, AProbeSendsAndIsAnswered) {
  TestKit kit;
  auto probe = kit.Probe();
  auto greeter = kit.SpawnNamed<Greeter>("greeter");
  probe.Send(greeter, Greet{"a"});
  EXPECT_EQ(probe.Expect<Greeted>().text, "Hello, a");
  EXPECT_EQ(probe.LastSender(), greeter.untyped());
  probe.Reply(Greet{"b"});
  probe.ExpectMessage(Greeted{"Hello, b"});
  EXPECT_EQ(kit.AskAndWait(greeter, Greet{"c"}).value().text, "Hello, c");
  EXPECT_EQ(kit.AskAndWait<Greeted>(greeter.untyped(), Greet{"d"}).value().text, "Hello, d");
}

TEST(TestKit, ATypedProbeStandsInForAnActor) {
  TestKit kit;
  auto stock = kit.Probe<Greet, Fail>("stock");
  const TypedRef<Greet> ref = stock.ref();
  auto asker = kit.Probe();
  asker.Send(ref, Greet{"a"});
  EXPECT_EQ(stock.Expect<Greet>().name, "a");
  stock.Reply(Greeted{"b"});
  EXPECT_EQ(asker.Expect<Greeted>().text, "b");
  EXPECT_EQ(kit.system().PathOf(ref.untyped()), "pekko://default/system/stock");
}

TEST(TestKit, AProbePassesAMessageOnWithItsSender) {
  TestKit kit;
  auto one = kit.Probe();
  auto two = kit.Probe();
  auto three = kit.Probe();
  one.Send(two.ref(), Greet{"a"});
  two.Expect<Greet>();
  two.Forward(three.ref());
  EXPECT_EQ(three.Expect<Greet>().name, "a");
  EXPECT_EQ(three.LastSender(), one.ref());
  one.Send(two.ref(), Parcel{std::make_unique<int>(7)});
  EXPECT_EQ(*two.Expect<Parcel>().content, 7);
  EXPECT_TEST_ENDS(two.Forward(three.ref()), "it cannot be copied, and the test has it");
}

TEST(TestKit, AProbeFishesForWhatItWantsAndIgnoresWhatItDoesNot) {
  TestKit kit;
  auto probe = kit.Probe();
  for (const char* const name : {"a", "b", "c"}) {
    Tell(probe.ref(), Fail{});
    Tell(probe.ref(), Greet{name});
  }
  EXPECT_EQ(probe.FishFor<Greet>([](const Greet& greet) { return greet.name == "b"; }).name, "b");
  probe.Ignore<Fail>();
  EXPECT_EQ(probe.Expect<Greet>().name, "c");
  Tell(probe.ref(), Greet{"d"});
  const std::variant<Greeted, Greet> either = probe.ExpectOneOf<Greeted, Greet>();
  EXPECT_EQ(std::get<Greet>(either).name, "d");
  Tell(probe.ref(), Parcel{std::make_unique<int>(7)});
  EXPECT_EQ(*std::get<Parcel>(probe.ExpectOneOf<Greet, Parcel>()).content, 7) << "one that cannot be copied";
  EXPECT_EQ(probe.Receive(absl::Seconds(1)), nullptr);
  Tell(probe.ref(), Greet{"e"});
  EXPECT_TRUE(probe.Receive()->Is<Greet>());
  EXPECT_EQ(probe.pending(), 0u);
}

TEST(TestKit, AProbeSeesAnActorEnd) {
  TestKit kit;
  auto probe = kit.Probe();
  auto watched = kit.Spawn<Greeter>();
  auto gone = kit.Spawn<Greeter>();
  auto unwatched = kit.Spawn<Greeter>();
  probe.Watch(watched);
  probe.Watch(unwatched);
  probe.Unwatch(unwatched);
  kit.system().Stop(gone);
  kit.system().Stop(unwatched);
  kit.Settle();
  EXPECT_FALSE(kit.IsAlive(gone));
  EXPECT_TRUE(kit.IsAlive(watched));
  probe.ExpectTerminated(gone);
  probe.ExpectNoMessage();
  kit.system().Stop(watched);
  probe.ExpectTerminated(watched);
}

TEST(TestKit, FailuresSayWhatWasExpectedAndWhatCame) {
  TestKit kit;
  auto probe = kit.Probe();
  auto greeter = kit.SpawnNamed<Greeter>("greeter");
  const std::string me = "pekko://default/system/probe-1 expected ";
  EXPECT_TEST_ENDS(probe.Expect<Greeted>(), me + "fraktor::(anonymous namespace)::Greeted, but nothing came within 3s");
  EXPECT_EQ(kit.Elapsed(), absl::Seconds(3));
  probe.Send(greeter, Greet{"a"});
  Tell(probe.ref(), Fail{});
  EXPECT_TEST_ENDS(probe.Expect<Expired>(), "fraktor::(anonymous namespace)::Fail");
  probe.Send(greeter, Greet{"a"});
  EXPECT_TEST_ENDS(probe.Expect<Expired>(),
                   "but got fraktor::(anonymous namespace)::Greeted from pekko://default/user/greeter");
  probe.FishFor<Greeted>();
  probe.Send(greeter, Greet{"a"});
  EXPECT_TEST_ENDS(probe.ExpectMessage(Greeted{"b"}), me + "Greeted(b), but got Greeted(Hello, a)");
  probe.Send(greeter, Greet{"a"});
  EXPECT_TEST_ENDS(probe.ExpectNoMessage(absl::Seconds(1)), "expected no message for 1s, but got ");
  Tell(probe.ref(), Fail{});
  EXPECT_TEST_ENDS(probe.FishFor<Greeted>(), "none came within 3s; dropped: fraktor::(anonymous namespace)::Fail");
  EXPECT_TEST_ENDS(probe.ExpectTerminated(greeter), "expected Terminated of pekko://default/user/greeter, but nothing");
  Tell(greeter.untyped(), Fail{});
  EXPECT_TEST_ENDS(probe.Expect<Greeted>(), "out of words");  // From the last lines of the log.
  EXPECT_TEST_ENDS(kit.AwaitThat("pigs fly", [] { return false; }), "this did not happen within 3s: pigs fly");
}

TEST(TestKit, FailuresAreAtTheLineOfTheTest) {
  TestKit kit;
  auto probe = kit.Probe();
  testing::TestPartResultArray results;
  int line = 0;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    Ended([&] {
      line = __LINE__ + 1;
      probe.Expect<Greeted>();
    });
  }
  ASSERT_EQ(results.size(), 1);
  EXPECT_EQ(results.GetTestPartResult(0).line_number(), line);
  EXPECT_TRUE(std::string(results.GetTestPartResult(0).file_name()).ends_with("test_kit_test.cc"));
}

TEST(TestKit, CountsDeadLettersAndUnhandledMessages) {
  TestKit kit;
  auto gone = kit.Spawn<Greeter>();
  auto greeter = kit.Spawn<Greeter>();
  kit.system().Stop(gone);
  kit.Settle();
  kit.ExpectDeadLetters<Greet>(2, [&] {
    for (const char* const name : {"a", "b"}) gone.Tell(Greet{name});
    gone.Tell(Fail{});
  });
  kit.ExpectDeadLetters<Greet>(
      1,
      [&] {
        for (const char* const name : {"a", "b"}) gone.Tell(Greet{name});
      },
      [](const Greet& greet) { return greet.name == "b"; });
  kit.ExpectUnhandled<Expired>(1, [&] { Tell(greeter.untyped(), Expired{}); });
  kit.ExpectDeadLetters<Greet>(
      0, [&] { greeter.Tell(Greet{"a"}); }, [](const Greet& greet) { return greet.name == "z"; });
  // The reply is dropped: nobody has asked.
  kit.ExpectEvents<DeadLetter>(0, [&] { greeter.Tell(Greet{"a"}); });
  EXPECT_TEST_ENDS(kit.ExpectDeadLetters<Greet>(2, [&] { gone.Tell(Greet{"a"}); }),
                   "expected 2 of AllDeadLetters, but there were 1; seen:\n  counted: fraktor::(anonymous "
                   "namespace)::Greet to an actor that has ended");
  EXPECT_TEST_ENDS(kit.ExpectUnhandled<Expired>(0, [&] { Tell(greeter.untyped(), Expired{}); }),
                   "expected 0 of UnhandledMessage, but there were 1");
}

TEST(TestKit, RefusesAProbeWhoseNameIsBad) {
  TestKit kit;
  EXPECT_TEST_ENDS(kit.Probe("a b"), "no probe \"a b\" could be made: ");
  auto probe = kit.Probe<int>("ab");
  EXPECT_TEST_ENDS(kit.Probe<int>("ab"), "the name \"ab\" is taken");
}

TEST(TestKit, CountsLinesOfTheLog) {
  TestKit kit;
  auto greeter = kit.SpawnNamed<Greeter>("greeter");
  const LogFilter restarts{.level = LogLevel::kWarning, .contains = "restarts after", .path = "/user/greeter"};
  kit.ExpectLog(restarts, 2, [&] {
    greeter.Tell(Fail{});
    greeter.Tell(Fail{});
  });
  EXPECT_TEST_ENDS(kit.ExpectLog(restarts, 1, [] {}), "but there were 0");
  EXPECT_TEST_ENDS(kit.ExpectLog({.contains = "out of words"}, 2, [&] { greeter.Tell(Fail{}); }),
                   "lines of the log at debug or above with \"out of words\" of \"\", but there were 1");
}

TEST(TestKit, ASpawnThatCannotBeEndsTheTest) {
  TestKit kit;
  kit.Spawn(TypedPropsOf<Greeter>(), "greeter");
  EXPECT_TEST_ENDS(kit.Spawn(TypedPropsOf<Greeter>(), "greeter"), "Greeter could be spawned: ");
}

// An actor that a test must not leave behind.
class Stubborn : public Actor<Stubborn, Greet> {
 public:
  Task<Greeted> On(Context&, Greet) {
    auto [promise, future] = MakePromise<void>();
    kept_ = std::make_unique<Promise<void>>(std::move(promise));
    co_await future;
    co_return Greeted{};
  }

 private:
  std::unique_ptr<Promise<void>> kept_;
};

TEST(TestKit, WithThreadsWaitsByTheRealClock) {
  TestKit kit({.patience = absl::Minutes(1), .threads = 2});
  auto probe = kit.Probe();
  auto greeter = kit.SpawnNamed<Greeter>("greeter");
  for (int i = 0; i < 100; ++i) probe.Send(greeter, Greet{std::to_string(i)});
  for (int i = 0; i < 100; ++i) probe.ExpectMessage(Greeted{"Hello, " + std::to_string(i)});
  kit.Settle();
  probe.ExpectNoMessage();
  kit.ExpectUnhandled<Expired>(1, [&] { Tell(greeter.untyped(), Expired{}); });
  kit.ExpectLog({.contains = "restarts"}, 1, [&] { greeter.Tell(Fail{}); });
  EXPECT_TEST_ENDS(kit.Advance(absl::Seconds(1)), "a kit with threads has the real clock, which cannot be advanced");
  EXPECT_EQ(kit.AskAndWait(greeter, Greet{"x"}).value().text, "Hello, x");
  kit.system().Stop(greeter);
  probe.ExpectTerminated(greeter);
}

TEST(TestKit, AwaitsAFutureInVirtualTime) {
  TestKit kit;
  auto greeter = kit.Spawn<Greeter>();
  EXPECT_EQ(kit.Await(kit.system().Ask(greeter, Greet{"x"}, absl::Seconds(1)))->text, "Hello, x");
  EXPECT_TRUE(kit.Await(MakeReadyFuture()).ok());
  auto [promise, future] = MakePromise<int>();
  ASSERT_TRUE(kit.toolbox().ScheduleAfter(absl::Hours(1), [p = &promise] { p->Set(absl::AbortedError("no")); }).ok());
  EXPECT_TRUE(absl::IsAborted(kit.Await(std::move(future), absl::Hours(1)).status()));
  EXPECT_EQ(kit.Elapsed(), absl::Hours(1));
  auto [kept, never] = MakePromise<void>();
  EXPECT_TEST_ENDS(kit.Await(std::move(never), absl::Seconds(2)).IgnoreError(),
                   "this did not happen within 2s: a future is ready");
}

TEST(TestKit, WithThreadsAwaitsAFutureByTheRealClock) {
  TestKit kit({.patience = absl::Minutes(1), .threads = 2});
  auto greeter = kit.Spawn<Greeter>();
  EXPECT_EQ(kit.Await(kit.system().Ask(greeter, Greet{"x"}, absl::Minutes(1)))->text, "Hello, x");
  auto [kept, never] = MakePromise<void>();
  EXPECT_TEST_ENDS(kit.Await(std::move(never), absl::Milliseconds(1)).IgnoreError(),
                   "this did not happen within 1ms: a future is ready");
}

// No actor would run while the thread of the test waits.
TEST(TestKit, RefusesAnEndlessWaitOnTheThreadThatDrivesVirtualTime) {
  TestKit kit;
  auto greeter = kit.Spawn<Greeter>();
  Future<Greeted> asked = kit.system().Ask(greeter, Greet{"x"}, absl::Seconds(1));
  const absl::Status refused = asked.Wait().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("TestKit::Await"), absl::string_view::npos) << refused;
  EXPECT_TRUE(absl::IsFailedPrecondition(asked.WaitFor(absl::InfiniteDuration())->status()));
  EXPECT_EQ(kit.Await(std::move(asked))->text, "Hello, x") << "The future is still there.";
}

TEST(TestKit, EndsAnActorThatWaits) {
  TestKit kit;
  auto stubborn = kit.Spawn<Stubborn>();
  stubborn.Tell(Greet{"a"});
  kit.Settle();
}

TEST(TestKit, ASystemThatDoesNotEndIsAFailure) {
  EXPECT_NONFATAL_FAILURE(
      {
        TestKit kit;
        // /system waits for a reply that does not come.
        kit.Probe("mute").Send(kit.system().system_guardian(), RegisterTerminationHook{});
      },
      "the test is over, but these actors have not ended within 10s:\n  pekko://default/system/mute");
  ActorSystemOptions system;
  TestKit lenient({.system = system, .must_end = false});
  lenient.Probe().Send(lenient.system().system_guardian(), RegisterTerminationHook{});
}

}  // namespace
}  // namespace fraktor
