#include "fraktor/actor/timer/system_timers.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/internal/pattern_fixture.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/timer/timer_period.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {

using actor_internal::Gate;
using pattern_internal::CoarseToolbox;
using pattern_internal::PatternTest;

namespace {

struct Ping {};

class SystemTimersTest : public PatternTest {
 protected:
  using PatternTest::PatternTest;

  SystemTimers& timers() { return SystemTimers::Of(*system_); }
  auto Noting(const char* text) {
    return [this, text] { Note(text); };
  }
  ActorRef SpawnNoting() {
    return Spawn({.receive = [this](ActorContext& context, Envelope& message) {
      if (!message.Is<Ping>()) return context.Unhandled(message);
      Note(context.sender().IsNoOne() ? "ping" : "ping of somebody");
      return absl::OkStatus();
    }});
  }
};

// A125
TEST_F(SystemTimersTest, NeverCallsEarly) {
  ASSERT_TRUE(timers().StartSingle(absl::Seconds(1), Noting("once")).ok());
  ASSERT_TRUE(timers().StartSingle(absl::Seconds(-1), Noting("now")).ok());
  EXPECT_EQ(Take(), Log()) << "not within the call";
  RunFor(absl::Seconds(1) - absl::Nanoseconds(1));
  EXPECT_EQ(Take(), Log({"0: now"}));
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log({"1: once"}));
}

// A125
TEST_F(SystemTimersTest, IsCancelledOnceAndBeforeOnly) {
  int callbacks = 0;
  const auto count = [&callbacks] { ++callbacks; };
  Cancellable early = timers().StartSingle(absl::Seconds(1), Noting("early"), {.on_cancel = count}).value();
  Cancellable late = timers().StartSingle(absl::Seconds(1), Noting("late"), {.on_cancel = count}).value();
  Cancellable copy = early;
  EXPECT_FALSE(early.IsCancelled());
  EXPECT_TRUE(copy.Cancel());
  EXPECT_EQ(callbacks, 1);
  EXPECT_FALSE(early.Cancel());
  EXPECT_TRUE(early.IsCancelled());
  RunFor(absl::Seconds(2));
  EXPECT_EQ(Take(), Log({"1: late"}));
  EXPECT_FALSE(late.Cancel());
  EXPECT_FALSE(late.IsCancelled());
  EXPECT_EQ(callbacks, 1);
  Cancellable nothing;
  EXPECT_FALSE(nothing.Cancel());
  EXPECT_FALSE(nothing.IsCancelled());
}

// Cancelling destroys the captures at once, and not at the end of the delay.
TEST_F(SystemTimersTest, LetsGoOfAFunctionThatIsCancelled) {
  auto held = std::make_shared<int>(1);
  Cancellable once = timers().StartSingle(absl::Hours(1), [held] {}).value();
  Cancellable often = timers().StartFixedRate({.period = absl::Hours(1)}, [held] {}).value();
  EXPECT_EQ(held.use_count(), 3);
  EXPECT_TRUE(once.Cancel());
  EXPECT_TRUE(often.Cancel());
  EXPECT_EQ(held.use_count(), 1);
}

// A126: the function cancels itself for good.
TEST_F(SystemTimersTest, RepeatsUntilItIsCancelledFromWithin) {
  Cancellable repeated;
  int times = 0;
  repeated = timers()
                 .StartFixedDelay({.period = absl::Seconds(1), .initial_delay = absl::ZeroDuration()},
                                  [&] {
                                    Note("again");
                                    if (++times == 3) {
                                      EXPECT_TRUE(repeated.Cancel());
                                      EXPECT_FALSE(repeated.Cancel());
                                    }
                                  })
                 .value();
  EXPECT_EQ(toolbox_->last_cadence(), Cadence::kFixedDelay);
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log({"0: again", "1: again", "2: again"}));
  EXPECT_TRUE(repeated.IsCancelled());
}

class HeldUpSystemTimersTest : public SystemTimersTest {
 protected:
  HeldUpSystemTimersTest() : SystemTimersTest(std::make_unique<CoarseToolbox>(/*held_up=*/4)) {}
};

// A126
TEST_F(HeldUpSystemTimersTest, CatchesUpAtAFixedRate) {
  int calls = 0;
  ASSERT_TRUE(timers().StartFixedRate({.period = absl::Milliseconds(25)}, [&calls] { ++calls; }).ok());
  EXPECT_EQ(toolbox_->last_cadence(), Cadence::kFixedRate);
  const ActorRef actor = SpawnNoting();
  ASSERT_TRUE(timers().StartFixedRate({.period = absl::Milliseconds(25)}, actor, Ping{}).ok());
  RunFor(absl::Milliseconds(1025));
  // 40 a second, four at a time.
  EXPECT_EQ(calls, 44);
  EXPECT_EQ(Take().size(), 44u);
}

TEST_F(HeldUpSystemTimersTest, DoesNotCatchUpAfterItIsCancelled) {
  int calls = 0;
  Cancellable repeated;
  repeated = timers()
                 .StartFixedRate({.period = absl::Seconds(1)},
                                 [&] {
                                   if (++calls == 2) {
                                     EXPECT_TRUE(repeated.Cancel());
                                   }
                                 })
                 .value();
  RunFor(absl::Minutes(1));
  EXPECT_EQ(calls, 2);
}

// A126
TEST_F(SystemTimersTest, EndsAFunctionThatThrows) {
  int calls = 0;
  const auto fail = [&calls] {
    ++calls;
    throw std::runtime_error("as told");
  };
  Cancellable rate = timers().StartFixedRate({.period = absl::Seconds(1)}, fail).value();
  Cancellable delay = timers()
                          .StartFixedDelay({.period = absl::Seconds(1)},
                                           [&calls] {
                                             ++calls;
                                             throw 7;
                                           })
                          .value();
  ASSERT_TRUE(timers().StartSingle(absl::Seconds(1), fail).ok());
  RunFor(absl::Minutes(1));
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(rate.Cancel());
  EXPECT_FALSE(delay.IsCancelled());
  ASSERT_EQ(kept_log_.lines.size(), 3u);
  EXPECT_NE(kept_log_.lines[0].find("the function of a system timer threw: as told; it is not repeated"),
            std::string::npos);
  EXPECT_NE(kept_log_.lines[1].find("no std::exception"), std::string::npos);
}

TEST_F(SystemTimersTest, SendsMessages) {
  const ActorRef actor = SpawnNoting();
  const ActorRef sender = Spawn({});
  ASSERT_TRUE(timers().StartSingle(absl::Seconds(1), actor, Ping{}).ok());
  ASSERT_TRUE(timers().StartSingle(absl::Seconds(2), actor, Ping{}, {.sender = sender}).ok());
  Cancellable rate =
      timers().StartFixedRate({.period = absl::Seconds(2), .initial_delay = absl::Seconds(3)}, actor, Ping{}).value();
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Take(), Log({"1: ping", "2: ping of somebody", "3: ping", "5: ping"}));
  EXPECT_TRUE(rate.Cancel());
  // From an actor, and one of the runtime's own messages.
  In(actor, [](ActorContext& context) {
    EXPECT_TRUE(SystemTimers::Of(context.system()).StartSingle(absl::Seconds(1), context.self(), PoisonPill{}).ok());
  });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log());
  EXPECT_FALSE(IsAlive(actor));
}

// A126
TEST_F(SystemTimersTest, GoesOnAcrossARestartAndEndsWithTheReceiver) {
  const ActorRef actor = SpawnNoting();
  Cancellable rate = timers().StartFixedRate({.period = absl::Seconds(1)}, actor, Ping{}).value();
  Cancellable delay = timers().StartFixedDelay({.period = absl::Seconds(1)}, actor, Ping{}).value();
  RunFor(absl::Seconds(1));
  In(actor, [](ActorContext&) { return absl::InternalError("as told"); });
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Take(), Log({"1: ping", "1: ping", "2: ping", "2: ping"}));
  In(actor, [](ActorContext& context) { context.Stop(); });
  RunFor(absl::Seconds(1));
  const uint64_t steps = toolbox_->steps();
  RunFor(absl::Hours(1));
  EXPECT_EQ(toolbox_->steps(), steps) << "the timers are gone";
  EXPECT_FALSE(rate.Cancel());
  EXPECT_FALSE(delay.Cancel());
  EXPECT_EQ(system_->dead_letters().total(), 0u);
}

// A127: a delay of one turn of the wheel (64 slots on each of its levels), and the longest one, are
// as good as others.
TEST_F(SystemTimersTest, RefusesDelaysThatAreTooLongAndTakesAllOthers) {
  const absl::StatusOr<Cancellable> refused =
      timers().StartSingle(kMaxTimerDelay + absl::Nanoseconds(1), Noting("never"));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "system timer: the delay is 876000h0.000000001s; use at most 876000h");
  EXPECT_FALSE(timers().StartSingle(absl::InfiniteDuration(), Noting("never")).ok());
  EXPECT_FALSE(timers().StartFixedRate({.period = absl::ZeroDuration()}, Noting("never")).ok());
  int64_t period_ns = 1;
  int calls = 0;
  std::vector<absl::Duration> delays;
  for (int level = 0; level < 10; ++level) {
    for (const int64_t delay_ns : {period_ns - 1, period_ns, period_ns + 1}) {
      const Instant due = toolbox_->Now() + absl::Nanoseconds(delay_ns);
      ASSERT_TRUE(timers()
                      .StartSingle(absl::Nanoseconds(delay_ns),
                                   [&, due] {
                                     ++calls;
                                     EXPECT_EQ(toolbox_->Now(), due);
                                   })
                      .ok());
    }
    period_ns *= 64;
  }
  ASSERT_TRUE(timers().StartSingle(kMaxTimerDelay, [&calls] { ++calls; }).ok());
  RunFor(kMaxTimerDelay);
  EXPECT_EQ(calls, 31);
}

TEST_F(SystemTimersTest, LogsWhatOnCancelThrows) {
  const auto fail = [] { throw std::runtime_error("as told"); };
  Cancellable early = timers().StartSingle(absl::Seconds(1), Noting("early"), {.on_cancel = fail}).value();
  Cancellable left = timers().StartSingle(absl::Seconds(1), Noting("left"), {.on_cancel = fail}).value();
  EXPECT_TRUE(early.Cancel());
  ASSERT_EQ(kept_log_.lines.size(), 1u);
  EXPECT_NE(kept_log_.lines[0].find("the on_cancel of an entry threw: as told"), std::string::npos);
  system_.reset();
  EXPECT_TRUE(left.IsCancelled());
  ASSERT_EQ(kept_log_.lines.size(), 2u);
  EXPECT_NE(kept_log_.lines[1].find("the on_cancel of an entry threw: as told"), std::string::npos);
}

TEST_F(SystemTimersTest, CancelsWhatIsLeftWhenTheSystemEnds) {
  int callbacks = 0;
  const auto count = [&callbacks] { ++callbacks; };
  Cancellable once = timers().StartSingle(absl::Seconds(1), Noting("once"), {.on_cancel = count}).value();
  Cancellable rate =
      timers().StartFixedRate({.period = absl::Seconds(1)}, Noting("rate"), {.on_cancel = count}).value();
  system_.reset();
  EXPECT_EQ(callbacks, 2);
  EXPECT_TRUE(once.IsCancelled());
  EXPECT_FALSE(rate.Cancel());
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log());
}

TEST_F(SystemTimersTest, CancelsWhatIsLeftWhenTheSystemIsShutDown) {
  int callbacks = 0;
  const auto count = [&callbacks] { ++callbacks; };
  Cancellable once = timers().StartSingle(absl::Seconds(1), Noting("once"), {.on_cancel = count}).value();
  Cancellable rate =
      timers().StartFixedRate({.period = absl::Seconds(1)}, Noting("rate"), {.on_cancel = count}).value();
  EXPECT_TRUE(system_->Shutdown(absl::ZeroDuration()).ok());
  EXPECT_EQ(callbacks, 2);
  EXPECT_TRUE(once.IsCancelled());
  EXPECT_TRUE(rate.IsCancelled());
  EXPECT_FALSE(rate.Cancel());
  EXPECT_EQ(timers().StartSingle(absl::ZeroDuration(), Noting("late")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log());
}

TEST_F(SystemTimersTest, TakesNothingIfItIsFirstUsedAfterTheEndOfTheSystem) {
  EXPECT_TRUE(system_->Shutdown(absl::ZeroDuration()).ok());
  EXPECT_EQ(timers().StartFixedRate({.period = absl::Seconds(1)}, Noting("late")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  RunFor(absl::Minutes(1));
  EXPECT_EQ(Take(), Log());
}

// The function runs while its entry is cancelled, and does not wait for itself.
TEST_F(SystemTimersTest, CallsAFunctionForTheLastTimeThatShutsTheSystemDown) {
  int callbacks = 0;
  Cancellable rate = timers()
                         .StartFixedRate({.period = absl::Seconds(1)},
                                         [&] {
                                           Note("shuts down");
                                           system_->Shutdown(absl::ZeroDuration());
                                         },
                                         {.on_cancel = [&callbacks] { ++callbacks; }})
                         .value();
  RunFor(absl::Minutes(1));
  EXPECT_TRUE(system_->IsTerminated());
  EXPECT_EQ(Take(), Log({"1: shuts down"}));
  EXPECT_TRUE(rate.IsCancelled());
  EXPECT_EQ(callbacks, 1);
}

// The only worker is held by a handler, so the thread that watches over workers fires the timers. A
// message that finds no room must not hold that thread.
TEST(SystemTimersThreads, AMessageToAFullMailboxDoesNotHoldOtherTimers) {
  struct Gate {
    absl::Notification entered;
    absl::Notification leave;
    absl::Status waited;
  };
  class Holding final : public ActorInstance {
   public:
    explicit Holding(Gate* gate) : gate_(*gate) {}
    absl::Status Receive(ActorContext&, Envelope&) override {
      if (!gate_.entered.HasBeenNotified()) {
        gate_.entered.Notify();
        gate_.leave.WaitForNotification();
      }
      return absl::OkStatus();
    }

   private:
    Gate& gate_;
  };
  Gate gate;
  auto toolbox = StdToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.workers = 1;
  options.log_level = LogLevel::kOff;
  auto system = ActorSystem::Create(options).value();
  const PropsPtr props = MakeProps<Holding>(
      {.mailbox = {.capacity = 1, .overflow = OverflowStrategy::kBlockProducer, .push_timeout = absl::Hours(1)}},
      &gate);
  const ActorRef full = system->TrySpawn(*props).value();
  Tell(full, Ping{});
  gate.entered.WaitForNotification();
  Tell(full, Ping{});
  SystemTimers& timers = SystemTimers::Of(*system);
  absl::Notification fired;
  ASSERT_TRUE(timers.StartSingle(absl::Milliseconds(5), full, Ping{}).ok());
  ASSERT_TRUE(timers
                  .StartSingle(absl::Milliseconds(50),
                               [&] {
                                 gate.waited = system->WhenTerminated().Wait();
                                 fired.Notify();
                               })
                  .ok());
  EXPECT_TRUE(fired.WaitForNotificationWithTimeout(absl::Seconds(20))) << "the timers are blocked";
  EXPECT_EQ(system->dead_letters().count(DeadLetterReason::kPushTimedOut), 1u);
  EXPECT_EQ(gate.waited.code(), absl::StatusCode::kFailedPrecondition) << "a function must not wait either";
  gate.leave.Notify();
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
}

TEST(SystemTimersThreads, DoNotRunAFunctionAfterShutdown) {
  auto toolbox = StdToolbox::Make({}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.workers = 2;
  auto system = ActorSystem::Create(options).value();
  absl::Notification entered;
  std::atomic<bool> has_returned{false};
  std::atomic<int> callbacks{0};
  SystemTimers& timers = SystemTimers::Of(*system);
  Cancellable often = timers
                          .StartFixedRate({.period = absl::Microseconds(100)},
                                          [&] {
                                            if (!entered.HasBeenNotified()) entered.Notify();
                                            for (int i = 0; i < 100; ++i) std::this_thread::yield();
                                            EXPECT_FALSE(has_returned);
                                          },
                                          {.on_cancel = [&callbacks] { ++callbacks; }})
                          .value();
  entered.WaitForNotification();
  EXPECT_TRUE(system->Shutdown(absl::InfiniteDuration()).ok());
  has_returned = true;
  EXPECT_TRUE(often.IsCancelled());
  EXPECT_EQ(callbacks, 1);
  EXPECT_EQ(timers.StartSingle(absl::ZeroDuration(), [] { ADD_FAILURE(); }).status().code(),
            absl::StatusCode::kFailedPrecondition);
  system.reset();
  toolbox.reset();
}

TEST(SystemTimersThreads, MayEndTheSystemFromAFunction) {
  auto toolbox = StdToolbox::Make({}).value();
  for (const bool shuts_down : {false, true}) {
    ActorSystemOptions options;
    options.toolbox = toolbox.get();
    options.workers = 2;
    options.log_level = LogLevel::kOff;
    auto system = ActorSystem::Create(options).value();
    std::atomic<int> callbacks{0};
    ASSERT_TRUE(SystemTimers::Of(*system)
                    .StartFixedRate({.period = absl::Milliseconds(1)},
                                    [&] {
                                      if (shuts_down) {
                                        system->Shutdown(absl::InfiniteDuration());
                                      } else {
                                        system->Terminate();
                                      }
                                    },
                                    {.on_cancel = [&callbacks] { ++callbacks; }})
                    .ok());
    EXPECT_TRUE(system->WhenTerminated().Wait().ok());
    EXPECT_EQ(callbacks, 1);
  }
}

// Many threads start timers, cancel them and end at once. A cancelled function does not run; all
// others run once.
TEST(SystemTimersThreads, AgreeOnWhoCancelled) {
  constexpr int kThreads = 4;
  constexpr int kEach = 300;
  auto toolbox = StdToolbox::Make({}).value();
  std::atomic<int> called{0};
  std::atomic<int> cancelled{0};
  std::atomic<int> callbacks{0};
  std::atomic<int> repeated{0};
  {
    ActorSystemOptions options;
    options.toolbox = toolbox.get();
    options.workers = 2;
    auto system = ActorSystem::Create(options).value();
    SystemTimers& timers = SystemTimers::Of(*system);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          Cancellable once = timers
                                 .StartSingle(absl::Microseconds(i % 3), [&called] { ++called; },
                                              {.on_cancel = [&callbacks] { ++callbacks; }})
                                 .value();
          Cancellable often =
              timers.StartFixedRate({.period = absl::Microseconds(100)}, [&repeated] { ++repeated; }).value();
          if (once.Cancel()) ++cancelled;
          if (i % 2 == 0) {
            EXPECT_TRUE(often.Cancel());
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  // The end of the system has cancelled the rest, and waited for running functions.
  EXPECT_EQ(called + callbacks, kThreads * kEach);
  EXPECT_LE(cancelled, callbacks);
  const int after = repeated;
  toolbox.reset();
  EXPECT_EQ(repeated, after);
}

}  // namespace
}  // namespace fraktor
