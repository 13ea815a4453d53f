// Patterns with futures: timeouts, tasks from outside, pipes, graceful stops, retries, circuit
// breakers; and lines that actors log.
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/pattern/actor_log.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/pattern/graceful_stop.h"
#include "fraktor/actor/pattern/pipe_to.h"
#include "fraktor/actor/pattern/retry.h"
#include "fraktor/actor/pattern/start_task.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

class RecordingSink final : public LogSink {
 public:
  void Write(const LogRecord& record) override { lines.push_back(FormatLogRecord(record)); }
  std::vector<std::string> lines;
};

class PatternTest : public testing::Test {
 protected:
  PatternTest() : toolbox_(LocalToolbox::Make({}).value()) {
    ActorSystemOptions options;
    options.config.system_name = "s";
    options.toolbox = toolbox_.get();
    options.log_sink = &sink_;
    options.log_limits = {.lines = 2, .pause = absl::Seconds(10)};
    system_ = ActorSystem::Create(options).value();
  }

  void Settle() { ASSERT_TRUE(toolbox_->RunUntilIdle().ok()); }
  void Advance(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }

  RecordingSink sink_;
  std::unique_ptr<LocalToolbox> toolbox_;
  std::unique_ptr<ActorSystem> system_;
};

// Timeouts.

TEST_F(PatternTest, AFutureWithATimeoutGivesTheValueOrFails) {
  auto [promise, future] = MakePromise<std::string>();
  Future<std::string> in_time = WithTimeout(*toolbox_, std::move(future), absl::Seconds(1));
  EXPECT_FALSE(in_time.IsReady());
  Advance(absl::Milliseconds(999));
  promise.Set(std::string("value"));
  EXPECT_EQ(in_time.Take().value(), "value");
  auto [never, waiting] = MakePromise<std::string>();
  Future<std::string> late = WithTimeout(*toolbox_, std::move(waiting), absl::Seconds(1));
  Advance(absl::Milliseconds(999));
  EXPECT_FALSE(late.IsReady());
  Advance(absl::Milliseconds(1));
  ASSERT_TRUE(late.IsReady());
  const absl::Status status = late.Take().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(ErrorKindOf<FutureTimeoutKind>(status), FutureTimeoutKind::kNotInTime);
  EXPECT_TRUE(never.IsCancelled()) << "who works for it hears that nobody waits any more";
  EXPECT_EQ(WithTimeout(*toolbox_, MakeReadyFuture<int>(7), absl::Seconds(1)).Take().value(), 7);
  auto [endless, patient] = MakePromise<int>();
  Future<int> unlimited = WithTimeout(*toolbox_, std::move(patient), absl::InfiniteDuration());
  Advance(absl::Hours(1000));
  EXPECT_FALSE(unlimited.IsReady());
  EXPECT_TRUE(unlimited.Cancel());
  EXPECT_TRUE(endless.IsCancelled());
  Future<void> sleeping = SleepFor(*toolbox_, absl::Seconds(1));
  Advance(absl::Milliseconds(999));
  EXPECT_FALSE(sleeping.IsReady());
  Advance(absl::Milliseconds(1));
  EXPECT_TRUE(sleeping.Take().ok());
}

TEST_F(PatternTest, ATimedFutureThatIsDroppedLetsGoOfTheTimerAndTheInnerOne) {
  auto [promise, future] = MakePromise<int>();
  { Future<int> dropped = WithTimeout(*toolbox_, std::move(future), absl::Seconds(1)); }
  EXPECT_TRUE(promise.IsCancelled());
  Advance(absl::Seconds(2));
}

// Value and timer come at the same time, on two threads: one of them wins, and the other is
// dropped.
// Futures that are dropped leave no timer behind: the toolbox has ten.
TEST(SleepFor, CancelsItsTimerWhenTheFutureIsDropped) {
  auto toolbox = LocalToolbox::Make({.max_timers = 10}).value();
  for (int i = 0; i < 100; ++i) {
    Future<void> dropped = SleepFor(*toolbox, absl::Hours(1));
    ASSERT_FALSE(dropped.IsReady()) << i << ": " << dropped.Take();
    Future<void> cancelled = SleepFor(*toolbox, absl::Hours(1));
    EXPECT_TRUE(cancelled.Cancel());
    EXPECT_EQ(cancelled.Take().code(), absl::StatusCode::kCancelled);
  }
  std::vector<Future<void>> sleeping;
  for (int i = 0; i < 10; ++i) sleeping.push_back(SleepFor(*toolbox, absl::Hours(1)));
  EXPECT_EQ(SleepFor(*toolbox, absl::Hours(1)).Take().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());
  EXPECT_TRUE(sleeping.back().Take().ok());
  sleeping.pop_back();
  Future<void> last = SleepFor(*toolbox, absl::Hours(1));
  toolbox.reset();
  EXPECT_EQ(last.Take().code(), absl::StatusCode::kCancelled) << "the toolbox has ended";
}

TEST(SleepForOnThreads, FiresOrIsDropped) {
  auto toolbox = StdToolbox::Make({}).value();
  for (int i = 0; i < 2000; ++i) {
    Future<void> future = SleepFor(*toolbox, absl::Microseconds(i % 50));
    if (i % 3 == 0) {
      EXPECT_TRUE(future.Wait().ok());
    } else if (i % 3 == 1 && !future.Cancel()) {
      EXPECT_TRUE(future.Take().ok());
    }
  }
}

struct Doze {};
class Dozing : public Actor<Dozing, Doze> {
 public:
  explicit Dozing(absl::Status* ended) : ended_(*ended) {}
  Task<> On(Context& context, const Doze&) {
    Future<void> delay = context.Delay(absl::Hours(1));
    ended_ = delay.IsReady() ? delay.Take() : absl::OkStatus();
    if (!ended_.ok()) co_return;
    ended_ = co_await delay;
  }

 private:
  absl::Status& ended_;
};

// A handler that waits in Delay ends with its actor, and so does its timer.
TEST(Delay, LeavesNoTimerOfAnActorThatHasEnded) {
  auto toolbox = LocalToolbox::Make({.max_timers = 100}).value();
  ActorSystemOptions options;
  options.toolbox = toolbox.get();
  options.log_level = LogLevel::kOff;
  auto system = ActorSystem::Create(options).value();
  for (int i = 0; i < 1000; ++i) {
    absl::Status ended;
    auto dozing = system->Spawn<Dozing>("", &ended);
    dozing.Tell(Doze{});
    ASSERT_TRUE(toolbox->RunUntilIdle().ok());
    ASSERT_TRUE(ended.ok()) << i << ": " << ended;
    system->Stop(dozing.untyped());
    ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  }
}

TEST(WithTimeoutOnThreads, RacesAreWonOnce) {
  auto toolbox = StdToolbox::Make({}).value();
  int values = 0;
  for (int i = 0; i < 300; ++i) {
    auto [promise, future] = MakePromise<int>();
    std::thread completer([p = std::move(promise), i]() mutable {
      for (volatile int spin = 0; spin < i * 50;) spin = spin + 1;
      p.Set(i);
    });
    absl::StatusOr<int> result = WithTimeout(*toolbox, std::move(future), absl::Microseconds(i)).Wait();
    if (result.ok()) {
      EXPECT_EQ(*result, i);
      ++values;
    } else {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
    }
    completer.join();
  }
  EXPECT_LE(values, 300);
}

// Tasks.

Task<int> AddOne(Future<int> future) {
  absl::StatusOr<int> value = co_await future;
  if (!value.ok()) co_return value.status();
  if (*value < 0) throw std::runtime_error("negative");
  co_return *value + 1;
}

TEST_F(PatternTest, ATaskFromOutsideKeepsTheLambdaThatItComesFrom) {
  auto [promise, future] = MakePromise<int>();
  auto held = std::make_shared<int>(3);
  Future<int> sum = StartTask(*system_, [held, waited = std::move(future)]() mutable -> Task<int> {
    const absl::StatusOr<int> added = co_await waited;
    co_return *held + *added;
  });
  Settle();
  EXPECT_EQ(held.use_count(), 2);
  promise.Set(4);
  Settle();
  EXPECT_EQ(sum.Take().value(), 7);
  EXPECT_EQ(held.use_count(), 1);
  Future<void> nothing = StartTask(*system_, [held]() -> Task<void> { co_return; });
  Settle();
  EXPECT_TRUE(nothing.Take().ok());
}

TEST_F(PatternTest, ATaskFromOutsideRunsInTheSystem) {
  auto [promise, future] = MakePromise<int>();
  Future<int> sum = StartTask(*system_, AddOne(std::move(future)));
  Settle();
  EXPECT_FALSE(sum.IsReady());
  promise.Set(1);
  Settle();
  EXPECT_EQ(sum.Take().value(), 2);
  Future<int> thrown = StartTask(*system_, AddOne(MakeReadyFuture<int>(-1)));
  Settle();
  EXPECT_NE(thrown.Take().status().message().find("negative"), absl::string_view::npos);
  auto [waits, for_ever] = MakePromise<int>();
  { Future<int> dropped = StartTask(*system_, AddOne(std::move(for_ever))); }
  Settle();
  EXPECT_TRUE(waits.IsCancelled()) << "a task that nobody waits for ends where it waits";
  auto [open, pending] = MakePromise<int>();
  Future<int> cut_off = StartTask(*system_, AddOne(std::move(pending)));
  EXPECT_TRUE(system_->Shutdown(absl::Seconds(10)).ok());
  EXPECT_EQ(cut_off.Take().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(StartTask(*system_, AddOne(MakeReadyFuture<int>(1))).Take().status().code(),
            absl::StatusCode::kUnavailable);
}

// Pipes.

struct Loaded {
  std::string text;
};
struct Load {
  ActorRef from;
};
class Reader : public Actor<Reader, Loaded, Load> {
 public:
  Reader(Future<Loaded>* future, std::vector<std::string>* log) : future_(*future), log_(*log) {}
  void On(Context& context, const Load&) { PipeTo(context, std::move(future_), context.self()); }
  void On(Context& context, const Loaded& loaded) {
    log_.push_back(loaded.text + (context.sender() == context.self().untyped() ? " from itself" : " from another"));
  }
  void On(Context& context, const ErrorReply& error) {
    log_.push_back(std::string(error.status.message()) +
                   (context.sender() == context.self().untyped() ? " from itself" : " from another"));
  }

 private:
  Future<Loaded>& future_;
  std::vector<std::string>& log_;
};
using Lines = std::vector<std::string>;

// A102
TEST_F(PatternTest, APipeSendsTheValueOrTheErrorWithTheGivenSender) {
  std::vector<std::string> log;
  auto [promise, future] = MakePromise<Loaded>();
  auto reader = system_->Spawn<Reader>("reader", &future, &log);
  reader.Tell(Load{});
  Settle();
  EXPECT_TRUE(log.empty());
  promise.Set(Loaded{"page"});
  Settle();
  EXPECT_EQ(log, Lines({"page from itself"}));
  auto [failing, failed] = MakePromise<Loaded>();
  PipeTo(*system_, std::move(failed), reader.untyped(), reader.untyped());
  Settle();
  failing.Set(absl::NotFoundError("no page"));
  Settle();
  EXPECT_EQ(log.back(), "no page from itself");
  PipeTo(*system_, MakeReadyFuture<Loaded>(Loaded{"ready"}), reader.untyped(), ActorRef());
  Settle();
  EXPECT_EQ(log.back(), "ready from another");
}

// The value comes from a thread of its own; many pipes at once.
TEST(PipeToOnThreads, ValuesOfManyFuturesArrive) {
  struct Count {
    using Reply = int;
  };
  class Sum : public Actor<Sum, int, Count> {
   public:
    void On(Context&, const int& value) { sum_ += value; }
    int On(Context&, const Count&) { return sum_; }

   private:
    int sum_ = 0;
  };
  ActorSystem system("pipes");
  auto sum = system.Spawn<Sum>();
  constexpr int kPipes = 1000;
  std::vector<Promise<int>> promises;
  for (int i = 0; i < kPipes; ++i) {
    auto [promise, future] = MakePromise<int>();
    promises.push_back(std::move(promise));
    PipeTo(system, std::move(future), sum.untyped(), ActorRef());
  }
  std::thread completer([&] {
    for (Promise<int>& promise : promises) promise.Set(1);
  });
  completer.join();
  for (;;) {
    const absl::StatusOr<int> so_far = system.AskAndWait(sum, Count{}, absl::Seconds(60));
    ASSERT_TRUE(so_far.ok()) << so_far.status();
    if (*so_far == kPipes) break;
  }
}

// Graceful stops.

struct Drain {};
class Stoppable : public Actor<Stoppable, Drain, int> {
 public:
  explicit Stoppable(std::vector<std::string>* log) : log_(*log) {}
  void On(Context& context, const Drain&) {
    log_.push_back("drains");
    context.Stop();
  }
  void On(Context&, const int& n) { log_.push_back(std::to_string(n)); }
  void PostStop(Context&) { log_.push_back("stops"); }

 private:
  std::vector<std::string>& log_;
};
class Stubborn : public Actor<Stubborn, Drain> {
 public:
  void On(Context&, const Drain&) {}
};

// A103
TEST_F(PatternTest, AGracefulStopIsReadyWhenTheActorHasEnded) {
  std::vector<std::string> log;
  auto actor = system_->Spawn<Stoppable>("actor", &log);
  actor.Tell(1);
  Future<void> stopping = GracefulStop(*system_, actor.untyped(), absl::Seconds(1));
  EXPECT_FALSE(stopping.IsReady());
  Settle();
  EXPECT_EQ(log, Lines({"1", "stops"})) << "after what it has been sent";
  EXPECT_TRUE(stopping.Take().ok());
  EXPECT_TRUE(GracefulStop(*system_, actor.untyped(), absl::Seconds(1)).Take().ok()) << "at once if it has ended";
  log.clear();
  auto drained = system_->Spawn<Stoppable>("drained", &log);
  Future<void> draining = GracefulStop(*system_, drained.untyped(), absl::Seconds(1), Drain{});
  Settle();
  EXPECT_TRUE(draining.Take().ok());
  EXPECT_EQ(log, Lines({"drains", "stops"}));
  auto stubborn = system_->Spawn<Stubborn>("stubborn");
  Future<void> in_vain = GracefulStop(*system_, stubborn.untyped(), absl::Seconds(1), Drain{});
  Advance(absl::Milliseconds(999));
  EXPECT_FALSE(in_vain.IsReady());
  Advance(absl::Milliseconds(1));
  const absl::Status status = in_vain.Take();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "pekko://s/user/stubborn has not ended within 1s");
  EXPECT_EQ(GracefulStop(*system_, ActorRef(), absl::Seconds(1)).Take().code(), absl::StatusCode::kInvalidArgument);
}

// Blocks for a while at 0, so that its mailbox fills.
class Busy : public Actor<Busy, Drain, int> {
 public:
  explicit Busy(std::vector<std::string>* log) : log_(*log) {}
  void On(Context& context, const Drain&) { context.Stop(); }
  Task<> On(Context& context, int n) {
    if (n == 0) {
      Future<void> delay = context.Delay(absl::Seconds(1));
      const absl::Status waited = co_await delay;
      EXPECT_TRUE(waited.ok()) << waited;
    }
    log_.push_back(std::to_string(n));
  }
  void PostStop(Context&) { log_.push_back("stops"); }

 private:
  std::vector<std::string>& log_;
};

// A103
TEST_F(PatternTest, AGracefulStopGetsIntoAFullMailbox) {
  for (const OverflowStrategy overflow : {OverflowStrategy::kReject, OverflowStrategy::kDropNewest,
                                          OverflowStrategy::kDropOldest, OverflowStrategy::kDeadLetter}) {
    std::vector<std::string> log;
    auto actor = system_->Spawn<Busy>("", {.mailbox = {.capacity = 2, .overflow = overflow}}, &log);
    actor.Tell(0);
    Settle();
    for (const int n : {1, 2, 3}) actor.Tell(n);
    Future<void> stopping = GracefulStop(*system_, actor, absl::Seconds(10));
    Settle();
    EXPECT_FALSE(stopping.IsReady()) << ToString(overflow);
    Advance(absl::Seconds(1));
    EXPECT_EQ(log, overflow == OverflowStrategy::kDropOldest ? Lines({"0", "2", "3", "stops"})
                                                             : Lines({"0", "1", "2", "stops"}))
        << ToString(overflow) << ": after what there was room for";
    ASSERT_TRUE(stopping.IsReady()) << ToString(overflow);
    EXPECT_TRUE(stopping.Take().ok());
  }
}

TEST_F(PatternTest, AGracefulStopByAMessageForWhichThereIsNoRoomFailsInTime) {
  std::vector<std::string> log;
  auto actor =
      system_->Spawn<Busy>("busy", {.mailbox = {.capacity = 1, .overflow = OverflowStrategy::kDropNewest}}, &log);
  actor.Tell(0);
  Settle();
  actor.Tell(1);
  Future<void> stopping = GracefulStop(*system_, actor, absl::Seconds(2), Drain{});
  Advance(absl::Milliseconds(1999));
  EXPECT_EQ(log, Lines({"0", "1"}));
  EXPECT_FALSE(stopping.IsReady());
  Advance(absl::Milliseconds(1));
  ASSERT_TRUE(stopping.IsReady());
  EXPECT_EQ(stopping.Take().message(), "pekko://s/user/busy has not ended within 2s");
  system_->Stop(actor);
  Settle();
}

// Retries.

// A104; the option counts the retries, so there is one attempt more.
TEST_F(PatternTest, ARetryTriesOnceMoreThanItsRetries) {
  int attempts = 0;
  const auto failing = [&]() -> Future<int> {
    ++attempts;
    return MakeReadyFuture<int>(absl::UnavailableError("attempt " + std::to_string(attempts)));
  };
  Future<int> result = StartTask(*system_, Retry(*toolbox_, {.max_retries = 3}, failing));
  Settle();
  EXPECT_EQ(attempts, 4);
  EXPECT_EQ(result.Take().status().message(), "attempt 4");
  attempts = 0;
  Future<int> fine = StartTask(*system_, Retry(*toolbox_, {.max_retries = 3}, [&]() -> Future<int> {
    return MakeReadyFuture<int>(++attempts < 3 ? absl::StatusOr<int>(absl::AbortedError(""))
                                               : absl::StatusOr<int>(attempts));
  }));
  Settle();
  EXPECT_EQ(fine.Take().value(), 3);
}

// A104
TEST_F(PatternTest, WhatAnAttemptThrowsIsAFailure) {
  int attempts = 0;
  Future<void> result = StartTask(*system_, Retry(*toolbox_, {.max_retries = 2}, [&]() -> Future<void> {
    if (++attempts < 3) throw std::runtime_error("thrown");
    return MakeReadyFuture();
  }));
  Settle();
  EXPECT_EQ(attempts, 3);
  EXPECT_TRUE(result.Take().ok());
}

// A104
TEST_F(PatternTest, APredicateSaysWhichErrorsAreWorthAnotherAttempt) {
  int attempts = 0;
  RetryOptions options{.max_retries = 5};
  options.is_worth_it = [](const absl::Status& error) { return error.code() == absl::StatusCode::kUnavailable; };
  Future<int> result = StartTask(*system_, Retry(*toolbox_, options, [&]() -> Future<int> {
    ++attempts;
    return MakeReadyFuture<int>(attempts < 3 ? absl::UnavailableError("busy") : absl::NotFoundError("gone"));
  }));
  Settle();
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(result.Take().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PatternTest, PausesBetweenAttemptsGrowUpToALimit) {
  std::vector<absl::Duration> at;
  const Instant start = toolbox_->Now();
  RetryOptions options{.max_retries = 4, .delay = absl::Seconds(1), .factor = 2.0, .max_delay = absl::Seconds(3)};
  Future<int> result = StartTask(*system_, Retry(*toolbox_, options, [&]() -> Future<int> {
    at.push_back(toolbox_->Now() - start);
    return MakeReadyFuture<int>(absl::AbortedError(""));
  }));
  Advance(absl::Minutes(1));
  EXPECT_EQ(at, std::vector<absl::Duration>(
                    {absl::ZeroDuration(), absl::Seconds(1), absl::Seconds(3), absl::Seconds(6), absl::Seconds(9)}));
  EXPECT_TRUE(result.IsReady());
  options.jitter = 0.5;
  EXPECT_EQ(options.DelayBefore(1, 0.0), absl::Seconds(1));
  EXPECT_EQ(options.DelayBefore(1, 1.0), absl::Milliseconds(1500));
  for (const RetryOptions& bad :
       {RetryOptions{.max_retries = -1}, RetryOptions{.delay = -absl::Seconds(1)}, RetryOptions{.factor = 0.5},
        RetryOptions{.delay = absl::Seconds(2), .max_delay = absl::Seconds(1)}, RetryOptions{.jitter = 2}}) {
    EXPECT_EQ(bad.Validate().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Circuit breakers.

class BreakerTest : public testing::Test {
 protected:
  class Recorder final : public CircuitBreakerListener {
   public:
    explicit Recorder(std::vector<std::string>* log) : log_(*log) {}
    void OnTransition(CircuitState, CircuitState to) override { log_.emplace_back(NameOf(to)); }
    void OnCall(CallOutcome outcome, absl::Duration took) override {
      static constexpr const char* kNames[] = {"success", "failure", "timeout", "rejected"};
      log_.push_back(std::string(kNames[static_cast<int>(outcome)]) + " " + absl::FormatDuration(took));
    }

   private:
    std::vector<std::string>& log_;
  };

  void Make(CircuitBreakerOptions options) {
    breaker_ = CircuitBreaker::Make(*toolbox_, std::move(options)).value();
    breaker_->AddListener(std::make_shared<Recorder>(&log_));
  }
  absl::Status Call(absl::Status result) {
    return breaker_->CallNow([&] { return result; });
  }
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<CircuitBreaker> breaker_;
  std::vector<std::string> log_;
};

// A123
TEST_F(BreakerTest, OpensAfterFailuresRejectsAndLetsOneTrialDecide) {
  Make({.name = "stock", .max_failures = 2, .reset_timeout = absl::Seconds(10)});
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed);
  Call(absl::UnavailableError("down")).IgnoreError();
  EXPECT_EQ(breaker_->failures(), 1);
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed);
  Call(absl::UnavailableError("down")).IgnoreError();
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen);
  EXPECT_EQ(TakeLog(), Lines({"failure 0", "failure 0", "open"}));
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(4)).ok());
  bool was_called = false;
  const absl::Status rejected = breaker_->CallNow([&] { was_called = true; });
  EXPECT_FALSE(was_called);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(rejected.message(), "circuit breaker \"stock\" is open, for 6s more; try again then");
  EXPECT_EQ(ErrorDetailNumberOf<CircuitBreakerErrorKind>(rejected, "remaining_ns"), 6'000'000'000);
  EXPECT_EQ(breaker_->remaining(), absl::Seconds(6));
  EXPECT_EQ(TakeLog(), Lines({"rejected 0"}));
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(6)).ok());
  EXPECT_EQ(TakeLog(), Lines({"half_open"})) << "told by itself, without a call";
  auto [promise, future] = MakePromise<int>();
  Future<int> trial = breaker_->Call([&, f = &future] { return std::move(*f); });
  EXPECT_EQ(Call(absl::OkStatus()).code(), absl::StatusCode::kUnavailable) << "only one call is the trial";
  promise.Set(absl::AbortedError("still down"));
  EXPECT_EQ(breaker_->state(), CircuitState::kHalfOpen) << "counted when it is taken";
  EXPECT_FALSE(trial.Take().ok());
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen);
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(10)).ok());
  EXPECT_TRUE(Call(absl::OkStatus()).ok());
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed);
  EXPECT_EQ(breaker_->failures(), 0);
}

// A123
TEST_F(BreakerTest, CallsThatTakeTooLongAreFailures) {
  Make({.max_failures = 2, .call_timeout = absl::Seconds(1)});
  auto [promise, future] = MakePromise<int>();
  Future<int> slow = breaker_->Call([&, f = &future] { return std::move(*f); });
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());
  ASSERT_TRUE(slow.IsReady());
  EXPECT_EQ(slow.Take().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(breaker_->failures(), 1);
  const absl::StatusOr<int> late = breaker_->CallNow([&] {
    toolbox_->RunFor(absl::Seconds(2)).IgnoreError();
    return 5;
  });
  EXPECT_EQ(late.value(), 5) << "a result that is there is given";
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen);
  EXPECT_EQ(TakeLog(), Lines({"timeout 1s", "timeout 2s", "open"}));
}

// A124
TEST_F(BreakerTest, TheTimeoutOfAnotherIsNotItsOwn) {
  Make({.max_failures = 1, .harmless_codes = {absl::StatusCode::kDeadlineExceeded}});
  const absl::Status other =
      MakeError(absl::StatusCode::kDeadlineExceeded, FutureTimeoutKind::kNotInTime, "another future, on another node");
  Future<int> called = breaker_->Call([&] { return MakeReadyFuture<int>(other); });
  EXPECT_EQ(called.Take().status(), other);
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed) << "The options say what counts.";
  EXPECT_EQ(TakeLog(), Lines({"success 0"}));
}

// A124
TEST_F(BreakerTest, PredicatesSayWhatAFailureIs) {
  Make({.max_failures = 1, .harmless_codes = {absl::StatusCode::kNotFound}});
  EXPECT_FALSE(Call(absl::NotFoundError("")).ok());
  EXPECT_EQ(breaker_->failures(), 0);
  CircuitBreakerOptions options{.max_failures = 1};
  options.is_failure = [](const absl::Status& error) { return error.code() == absl::StatusCode::kDataLoss; };
  Make(std::move(options));
  EXPECT_FALSE(Call(absl::InternalError("")).ok());
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed);
  EXPECT_FALSE(Call(absl::DataLossError("")).ok());
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen);
  Make({.max_failures = 1});
  Future<int> wrong = breaker_->Call([] { return MakeReadyFuture<int>(-1); },
                                     [](const absl::StatusOr<int>& result) { return result.ok() && *result < 0; });
  EXPECT_EQ(wrong.Take().value(), -1);
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen) << "values too";
}

// A124
TEST_F(BreakerTest, ASuccessResetsTheCountAndThrowsCount) {
  Make({.max_failures = 2});
  EXPECT_THROW(breaker_->CallNow([]() -> int { throw std::runtime_error("no"); }).value(), std::runtime_error);
  EXPECT_EQ(breaker_->failures(), 1);
  EXPECT_TRUE(Call(absl::OkStatus()).ok());
  EXPECT_EQ(breaker_->failures(), 0);
  Future<int> thrown = breaker_->Call([]() -> Future<int> { throw std::runtime_error("no"); });
  EXPECT_FALSE(thrown.Take().ok());
  EXPECT_EQ(breaker_->failures(), 1);
  breaker_->Succeed();
  EXPECT_EQ(breaker_->failures(), 0);
  breaker_->Fail();
  breaker_->Fail();
  EXPECT_EQ(breaker_->state(), CircuitState::kOpen);
}

// A124
TEST_F(BreakerTest, TheResetTimeoutGrowsUpToItsLimitAndStartsAnewWhenClosed) {
  Make({.max_failures = 1,
        .reset_timeout = absl::Seconds(1),
        .backoff_factor = 3.0,
        .max_reset_timeout = absl::Seconds(5)});
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 4; ++i) {
    Call(absl::InternalError("")).IgnoreError();
    waits.push_back(breaker_->remaining());
    ASSERT_TRUE(toolbox_->RunFor(breaker_->remaining()).ok());
    EXPECT_EQ(breaker_->state(), CircuitState::kHalfOpen);
  }
  EXPECT_EQ(waits,
            std::vector<absl::Duration>({absl::Seconds(1), absl::Seconds(3), absl::Seconds(5), absl::Seconds(5)}));
  EXPECT_TRUE(Call(absl::OkStatus()).ok());
  Call(absl::InternalError("")).IgnoreError();
  EXPECT_EQ(breaker_->remaining(), absl::Seconds(1));
}

TEST_F(BreakerTest, ACallOfAnEarlierStateChangesNothing) {
  Make({.max_failures = 1, .reset_timeout = absl::Seconds(1)});
  auto [promise, future] = MakePromise<int>();
  Future<int> early = breaker_->Call([&, f = &future] { return std::move(*f); });
  breaker_->Fail();
  ASSERT_TRUE(toolbox_->RunFor(absl::Seconds(1)).ok());
  EXPECT_EQ(breaker_->state(), CircuitState::kHalfOpen);
  promise.Set(1);
  EXPECT_EQ(early.Take().value(), 1);
  EXPECT_EQ(breaker_->state(), CircuitState::kHalfOpen);
  auto [unused, waiting] = MakePromise<int>();
  {
    Future<int> dropped = breaker_->Call([&, f = &waiting] { return std::move(*f); });
  }
  EXPECT_TRUE(Call(absl::OkStatus()).ok()) << "a trial that was dropped makes room for another";
  EXPECT_EQ(breaker_->state(), CircuitState::kClosed);
}

TEST_F(BreakerTest, OptionsThatMakeNoSenseAreRefused) {
  for (const CircuitBreakerOptions& bad :
       {CircuitBreakerOptions{.max_failures = 0}, CircuitBreakerOptions{.call_timeout = absl::ZeroDuration()},
        CircuitBreakerOptions{.reset_timeout = -absl::Seconds(1)}, CircuitBreakerOptions{.backoff_factor = 0.9},
        CircuitBreakerOptions{.reset_timeout = absl::Hours(48)}}) {
    EXPECT_EQ(CircuitBreaker::Make(*toolbox_, bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(BreakerOnThreads, CountsEveryCallOnce) {
  auto toolbox = StdToolbox::Make({}).value();
  auto breaker = CircuitBreaker::Make(*toolbox, {.max_failures = 1'000'000, .call_timeout = absl::Hours(1)}).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) breaker->CallNow([] { return absl::InternalError(""); }).IgnoreError();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(breaker->failures(), 4000);
}

// Lines of actors.

struct Say {
  LogLevel level;
};
class Speaker : public Actor<Speaker, Say> {
 public:
  void On(Context& context, const Say& say) { Log(context, say.level, "said"); }
};

// A93, for the lines of an actor: its path, its type, and its site.
TEST_F(PatternTest, AnActorLogsWithItsPathAndType) {
  auto speaker = system_->Spawn<Speaker>("speaker");
  speaker.Tell(Say{LogLevel::kDebug});
  speaker.Tell(Say{LogLevel::kWarning});
  Settle();
  ASSERT_EQ(sink_.lines.size(), 1u) << "debug is off";
  EXPECT_EQ(sink_.lines[0].substr(0, 1), "W");
  EXPECT_NE(sink_.lines[0].find(" pekko://s/user/speaker "), std::string::npos) << sink_.lines[0];
  EXPECT_NE(sink_.lines[0].find("Speaker: said"), std::string::npos) << sink_.lines[0];
  for (int i = 0; i < 5; ++i) speaker.Tell(Say{LogLevel::kInfo});
  Settle();
  EXPECT_EQ(sink_.lines.size(), 2u) << "the site has reached its limit";
  system_->log().SetLevel(LogLevel::kDebug);
  Advance(absl::Seconds(10));
  speaker.Tell(Say{LogLevel::kDebug});
  Settle();
  EXPECT_NE(sink_.lines.back().find("4 lines of this site were left out"), std::string::npos) << sink_.lines.back();
}

}  // namespace
}  // namespace fraktor
