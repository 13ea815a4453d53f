#include "fraktor/utils/future/future.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/test_executors.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {
namespace {

// Counts how often its waker is called.
class WakeCounter {
 public:
  Waker waker(uint64_t number = 0) {
    return Waker{.function =
                     [](void* target, uint64_t, uint64_t) noexcept {
                       static_cast<WakeCounter*>(target)->count_.fetch_add(1, std::memory_order_relaxed);
                     },
                 .target = this,
                 .first = number};
  }
  int count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> count_{0};
};

static_assert(!std::is_copy_constructible_v<Future<int>> && std::is_nothrow_move_constructible_v<Future<int>>);
static_assert(!std::is_copy_constructible_v<Promise<int>> && std::is_nothrow_move_constructible_v<Promise<int>>);
static_assert(std::is_same_v<Future<int>::Result, absl::StatusOr<int>>);
static_assert(std::is_same_v<Future<void>::Result, absl::Status>);

TEST(Future, GivesTheValueThatWasSetBeforeItWasPolled) {
  auto [promise, future] = MakePromise<std::string>();
  EXPECT_FALSE(future.IsReady());
  EXPECT_TRUE(promise.Set("hello"));
  EXPECT_FALSE(promise.valid());
  WakeCounter wakes;
  EXPECT_TRUE(future.Poll(wakes.waker()));
  EXPECT_EQ(future.Take().value(), "hello");
  EXPECT_FALSE(future.valid());
  EXPECT_EQ(wakes.count(), 0);
}

TEST(Future, WakesTheOneWhoPolledExactlyOnce) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter wakes;
  EXPECT_FALSE(future.Poll(wakes.waker()));
  EXPECT_FALSE(future.Poll(wakes.waker()));
  EXPECT_EQ(wakes.count(), 0);
  promise.Set(1);
  EXPECT_EQ(wakes.count(), 1);
  EXPECT_TRUE(future.Poll(wakes.waker()));
  EXPECT_EQ(future.Take().value(), 1);
  EXPECT_EQ(wakes.count(), 1);
}

TEST(Future, WakesOnlyTheLastWakerThatWasGiven) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter first, second;
  EXPECT_FALSE(future.Poll(first.waker()));
  EXPECT_FALSE(future.Poll(second.waker()));
  promise.Set(1);
  EXPECT_EQ(first.count(), 0);
  EXPECT_EQ(second.count(), 1);
}

TEST(Future, TakesAWakerBackOrSaysThatItIsTooLate) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter wakes;
  EXPECT_TRUE(future.StopWaking());
  EXPECT_FALSE(future.Poll(wakes.waker()));
  EXPECT_TRUE(future.StopWaking());
  promise.Set(1);
  EXPECT_TRUE(future.StopWaking());
  EXPECT_EQ(wakes.count(), 0);

  auto [promise2, future2] = MakePromise<int>();
  EXPECT_FALSE(future2.Poll(wakes.waker()));
  promise2.Set(1);
  EXPECT_FALSE(future2.StopWaking());
  EXPECT_EQ(wakes.count(), 1);
}

TEST(Future, CarriesErrorsVoidAndValuesThatOnlyMove) {
  auto [failing, failed] = MakePromise<int>();
  failing.Set(absl::NotFoundError("nothing"));
  EXPECT_EQ(failed.Take().status(), absl::NotFoundError("nothing"));

  auto [flag, flagged] = MakePromise<void>();
  flag.Set();
  EXPECT_EQ(flagged.Take(), absl::OkStatus());

  auto [boxing, boxed] = MakePromise<std::unique_ptr<int>>();
  boxing.Set(std::make_unique<int>(5));
  EXPECT_EQ(*boxed.Take().value(), 5);

  EXPECT_EQ(MakeReadyFuture<int>(3).Take().value(), 3);
  EXPECT_EQ(MakeReadyFuture().Take(), absl::OkStatus());
}

TEST(Promise, CompletesWithCancelledWhenItIsDropped) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter wakes;
  EXPECT_FALSE(future.Poll(wakes.waker()));
  promise = Promise<int>();
  EXPECT_EQ(wakes.count(), 1);
  EXPECT_EQ(future.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST(Promise, LearnsThatTheFutureWasDropped) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter cancelled;
  EXPECT_FALSE(promise.IsCancelled());
  EXPECT_TRUE(promise.OnCancel(cancelled.waker()));
  EXPECT_EQ(cancelled.count(), 0);
  future = Future<int>();
  EXPECT_EQ(cancelled.count(), 1);
  EXPECT_TRUE(promise.IsCancelled());
  EXPECT_FALSE(promise.OnCancel(cancelled.waker(1)));
  EXPECT_FALSE(promise.StopCancelWaking());
  EXPECT_FALSE(promise.Set(1));
  EXPECT_EQ(cancelled.count(), 1);
}

TEST(Promise, IsNotToldOfADropAfterTheCompletion) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter cancelled;
  EXPECT_TRUE(promise.OnCancel(cancelled.waker()));
  EXPECT_TRUE(promise.Set(1));
  future = Future<int>();
  EXPECT_EQ(cancelled.count(), 0);
}

TEST(Promise, ReplacesAndTakesBackTheCancelWaker) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter first, second;
  EXPECT_TRUE(promise.OnCancel(first.waker()));
  EXPECT_TRUE(promise.OnCancel(second.waker()));
  EXPECT_TRUE(promise.StopCancelWaking());
  future.Cancel();
  EXPECT_EQ(first.count() + second.count(), 0);
}

TEST(Future, IsReadyAtOnceWhenItIsCancelled) {
  auto [promise, future] = MakePromise<int>();
  WakeCounter wakes;
  EXPECT_FALSE(future.Poll(wakes.waker()));
  EXPECT_TRUE(future.Cancel());
  EXPECT_TRUE(future.Cancel());
  EXPECT_TRUE(promise.IsCancelled());
  EXPECT_FALSE(promise.Set(1));
  EXPECT_TRUE(future.Poll(wakes.waker()));
  EXPECT_EQ(future.Take().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(wakes.count(), 0);
}

TEST(Future, KeepsItsValueWhenItIsCancelledTooLate) {
  auto [promise, future] = MakePromise<int>();
  promise.Set(1);
  EXPECT_FALSE(future.Cancel());
  EXPECT_EQ(future.Take().value(), 1);
}

TEST(Future, DestroysAValueThatNobodyTakes) {
  std::weak_ptr<int> watch;
  {
    auto [promise, future] = MakePromise<std::shared_ptr<int>>();
    auto value = std::make_shared<int>(1);
    watch = value;
    promise.Set(std::move(value));
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
  auto [promise, future] = MakePromise<std::shared_ptr<int>>();
  future = {};
  auto value = std::make_shared<int>(1);
  watch = value;
  promise.Set(std::move(value));
  EXPECT_TRUE(watch.expired());
}

TEST(FutureDeathTest, RefusesMisuseWithAText) {
  Future<int> empty;
  EXPECT_DEATH(empty.IsReady(), "empty future");
  auto pair = MakePromise<int>();
  EXPECT_DEATH((void)pair.future.Take(), "not ready");
  pair.promise.Set(1);
  EXPECT_DEATH(pair.promise.Set(2), "empty promise");
}

TEST(FutureMap, RunsWhenTakenAndNotBefore) {
  auto [promise, future] = MakePromise<int>();
  int calls = 0;
  Future<std::string> text = std::move(future).Map([&](int n) {
    ++calls;
    return std::to_string(n);
  });
  WakeCounter wakes;
  EXPECT_FALSE(text.Poll(wakes.waker()));
  promise.Set(7);
  EXPECT_EQ(wakes.count(), 1);
  EXPECT_TRUE(text.IsReady());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(text.Take().value(), "7");
  EXPECT_EQ(calls, 1);
}

TEST(FutureMap, LetsErrorsPassAndMakesErrors) {
  int calls = 0;
  Future<int> mapped = MakeReadyFuture<int>(absl::AbortedError("first")).Map([&](int n) {
    ++calls;
    return n;
  });
  EXPECT_EQ(mapped.Take().status(), absl::AbortedError("first"));
  EXPECT_EQ(calls, 0);

  Future<int> failing =
      MakeReadyFuture<int>(1).Map([](int) -> absl::StatusOr<int> { return absl::NotFoundError("2"); });
  EXPECT_EQ(failing.Take().status(), absl::NotFoundError("2"));

  Future<void> checked = MakeReadyFuture<int>(1).Map([](int) { return absl::NotFoundError("3"); });
  EXPECT_EQ(checked.Take(), absl::NotFoundError("3"));

  Future<int> from_void = MakeReadyFuture().Map([] { return 4; });
  EXPECT_EQ(from_void.Take().value(), 4);
  Future<void> to_void = MakeReadyFuture<int>(1).Map([](int) {});
  EXPECT_EQ(to_void.Take(), absl::OkStatus());
}

TEST(FutureMap, MakesAnErrorOfAnException) {
  Future<int> thrown = MakeReadyFuture<int>(1).Map([](int) -> int { throw std::runtime_error("broken"); });
  EXPECT_EQ(thrown.Take().status(), absl::UnknownError("exception: broken"));
  Future<int> odd = MakeReadyFuture<int>(1).Map([](int) -> int { throw 5; });
  EXPECT_EQ(odd.Take().status().code(), absl::StatusCode::kUnknown);
}

TEST(FutureMap, RepairsErrorsWithTheWholeResult) {
  Future<int> repaired = MakeReadyFuture<int>(absl::AbortedError("x")).MapResult([](absl::StatusOr<int> result) {
    return result.ok() ? *result : -1;
  });
  EXPECT_EQ(repaired.Take().value(), -1);
}

TEST(FutureMap, CancelsAndDropsThroughTheChain) {
  auto [promise, future] = MakePromise<int>();
  auto held = std::make_shared<int>(0);
  Future<int> mapped = std::move(future).Map([held](int n) { return n; }).Map([held](int n) { return n; });
  EXPECT_EQ(held.use_count(), 3);
  mapped = {};
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(promise.IsCancelled());
}

// A recursion of this depth overflows the stack: polling, taking and dropping must not recurse.
#if defined(__SANITIZE_THREAD__)
constexpr int kDeep = 100'000;  // a tenth, because ThreadSanitizer is slow
#else
constexpr int kDeep = 1'000'000;
#endif
constexpr int kDeepEnough = 100'000;  // recursion would need more than a hundred bytes of stack for each level

TEST(FutureMap, TakesAndDropsALongChainWithoutRecursion) {
  Future<int> future = MakeReadyFuture<int>(0);
  for (int i = 0; i < kDeep; ++i) future = std::move(future).Map([](int n) { return n + 1; });
  WakeCounter wakes;
  EXPECT_TRUE(future.Poll(wakes.waker()));
  EXPECT_EQ(future.Take().value(), kDeep);

  auto [promise, dropped] = MakePromise<int>();
  for (int i = 0; i < kDeepEnough; ++i) dropped = std::move(dropped).Map([](int n) { return n + 1; });
  dropped = {};
  EXPECT_TRUE(promise.IsCancelled());
}

TEST(FutureThen, RunsOnTheExecutorAndNeverWhereItIsCompleted) {
  ManualExecutor executor;
  auto [promise, future] = MakePromise<int>();
  int seen = 0;
  Future<std::string> then = std::move(future).Then(executor, [&](absl::StatusOr<int> n) {
    seen = *n;
    return std::to_string(*n);
  });
  EXPECT_EQ(executor.size(), 0u);
  promise.Set(4);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_EQ(seen, 4);
  EXPECT_EQ(then.Take().value(), "4");
}

TEST(FutureThen, RunsOnTheExecutorAlsoIfTheResultIsThereAlready) {
  ManualExecutor executor;
  int calls = 0;
  Future<void> then = MakeReadyFuture<int>(absl::AbortedError("x")).Then(executor, [&](absl::StatusOr<int> n) {
    ++calls;
    return n.status();
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(then.Take(), absl::AbortedError("x"));
}

TEST(FutureThen, MakesAnErrorOfAnException) {
  ManualExecutor executor;
  Future<int> then =
      MakeReadyFuture<int>(1).Then(executor, [](absl::StatusOr<int>) -> int { throw std::runtime_error("broken"); });
  executor.RunAll();
  EXPECT_EQ(then.Take().status(), absl::UnknownError("exception: broken"));
}

TEST(FutureThen, PassesADropOnToItsSourceOnTheExecutor) {
  ManualExecutor executor;
  auto [promise, future] = MakePromise<int>();
  auto held = std::make_shared<int>(0);
  Future<int> then = std::move(future).Then(executor, [held](absl::StatusOr<int> n) { return *n; });
  then = {};
  EXPECT_FALSE(promise.IsCancelled());
  EXPECT_EQ(held.use_count(), 2);  // the captures of the function are destroyed on the executor
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_TRUE(promise.IsCancelled());
  EXPECT_EQ(held.use_count(), 1);
}

TEST(FutureThen, DoesNotRunAfterADrop) {
  ManualExecutor executor;
  auto [promise, future] = MakePromise<int>();
  int calls = 0;
  Future<void> then = std::move(future).Then(executor, [&](absl::StatusOr<int>) { ++calls; });
  promise.Set(1);
  then = {};
  executor.RunAll();
  EXPECT_EQ(calls, 0);
}

TEST(FutureThen, IsCancelledWhenTheExecutorRefuses) {
  ManualExecutor executor;
  auto [promise, future] = MakePromise<int>();
  auto held = std::make_shared<int>(0);
  Future<int> then = std::move(future).Then(executor, [held](absl::StatusOr<int> n) { return *n; });
  executor.Close();
  promise.Set(1);
  EXPECT_EQ(then.Take().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(held.use_count(), 1);
  Future<int> late = MakeReadyFuture<int>(1).Then(executor, [](absl::StatusOr<int> n) { return *n; });
  EXPECT_EQ(late.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST(FutureThen, IsCancelledWhenTheExecutorDiesWithItInTheQueue) {
  auto executor = std::make_unique<ManualExecutor>();
  Future<int> then = MakeReadyFuture<int>(1).Then(*executor, [](absl::StatusOr<int> n) { return *n; });
  EXPECT_FALSE(then.IsReady());
  executor.reset();
  EXPECT_EQ(then.Take().status().code(), absl::StatusCode::kCancelled);
}

Future<int> LongThenChain(Future<int> future, ManualExecutor& executor, int length) {
  for (int i = 0; i < length; ++i) {
    future = std::move(future).Then(executor, [](absl::StatusOr<int> n) -> absl::StatusOr<int> {
      if (!n.ok()) return n;
      return *n + 1;
    });
  }
  return future;
}

TEST(FutureThen, RunsDropsAndRefusesALongChainWithoutRecursion) {
  {
    ManualExecutor executor;
    Future<int> ready = LongThenChain(MakeReadyFuture<int>(0), executor, kDeep);
    executor.RunAll();
    EXPECT_EQ(ready.Take().value(), kDeep);
  }
  {
    ManualExecutor executor;
    auto [promise, future] = MakePromise<int>();
    Future<int> dropped = LongThenChain(std::move(future), executor, kDeepEnough);
    dropped = {};
    executor.RunAll();
    EXPECT_TRUE(promise.IsCancelled());
  }
  {
    ManualExecutor executor;
    auto [promise, future] = MakePromise<int>();
    Future<int> refused = LongThenChain(std::move(future), executor, kDeepEnough);
    executor.Close();
    promise.Set(1);
    EXPECT_EQ(refused.Take().status().code(), absl::StatusCode::kCancelled);
  }
  {
    ManualExecutor executor;
    auto [promise, future] = MakePromise<int>();
    Future<int> refused = LongThenChain(std::move(future), executor, kDeepEnough);
    executor.Close();
    refused = {};
    EXPECT_TRUE(promise.IsCancelled());
  }
}

TEST(FutureWait, BlocksUntilAnotherThreadCompletesIt) {
  auto pair = MakePromise<int>();
  std::thread completer([&] { pair.promise.Set(3); });
  EXPECT_EQ(pair.future.Wait().value(), 3);
  completer.join();
  EXPECT_EQ(MakeReadyFuture<int>(4).Wait().value(), 4);
}

TEST(FutureWait, DoesNotBlockAWorker) {
  auto [promise, future] = MakePromise<int>();
  {
    const toolbox_internal::WorkerThreadScope worker(true);
    for (const absl::Status& refused : {future.Wait().status(), future.WaitFor(absl::Seconds(60))->status()}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_NE(refused.message().find("Wait blocks the worker"), absl::string_view::npos) << refused;
    }
    EXPECT_EQ(future.WaitFor(absl::ZeroDuration()), std::nullopt) << "which does not wait";
    ASSERT_TRUE(future.valid());
    promise.Set(3);
    EXPECT_EQ(future.Wait().value(), 3) << "there is nothing to wait for";
  }
  std::thread other;
  auto later = MakePromise<void>();
  other = std::thread([&] { later.promise.Set(); });
  EXPECT_TRUE(later.future.Wait().ok());
  other.join();
}

TEST(FutureWait, HasAnEndOnTheThreadThatDrivesVirtualTime) {
  std::unique_ptr<LocalToolbox> toolbox = LocalToolbox::Make({}).value();
  {
    auto [promise, future] = MakePromise<int>();
    ASSERT_TRUE(toolbox->ScheduleAfter(absl::Hours(1), [p = &promise] { p->Set(3); }).ok());
    for (const absl::Status& refused : {future.Wait().status(), future.WaitFor(absl::InfiniteDuration())->status()}) {
      EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_NE(refused.message().find("RunUntil"), absl::string_view::npos) << refused;
    }
    EXPECT_EQ(future.WaitFor(absl::Milliseconds(1)), std::nullopt) << "A wait with a limit is allowed.";
    ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());
    EXPECT_EQ(future.Wait().value(), 3) << "There is nothing to wait for.";
  }
  // The last thread that pumped the toolbox drives it.
  std::thread other([&] {
    EXPECT_TRUE(toolbox->RunUntilIdle().ok());
    auto [promise, future] = MakePromise<int>();
    EXPECT_EQ(future.Wait().status().code(), absl::StatusCode::kFailedPrecondition);
  });
  other.join();
  const auto wait = [] {
    auto pair = MakePromise<int>();
    std::thread completer([&] { pair.promise.Set(3); });
    const absl::StatusOr<int> result = pair.future.Wait();
    completer.join();
    return result;
  };
  EXPECT_EQ(wait().value(), 3) << "This thread drives nothing any more.";
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  auto open = MakePromise<int>();
  EXPECT_EQ(open.future.Wait().status().code(), absl::StatusCode::kFailedPrecondition);
  toolbox.reset();
  EXPECT_EQ(wait().value(), 3) << "The toolbox has gone.";
}

TEST(FutureWait, GivesUpAfterTheTimeoutAndCanBeTriedAgain) {
  auto [promise, future] = MakePromise<int>();
  EXPECT_EQ(future.WaitFor(absl::ZeroDuration()), std::nullopt);
  EXPECT_EQ(future.WaitFor(absl::Milliseconds(1)), std::nullopt);
  ASSERT_TRUE(future.valid());
  promise.Set(3);
  EXPECT_EQ(future.WaitFor(absl::Milliseconds(1)).value().value(), 3);
}

TEST(FutureWait, TakesAnyDuration) {
  auto pair = MakePromise<int>();
  std::thread completer([&] { pair.promise.Set(3); });
  EXPECT_EQ(pair.future.WaitFor(absl::InfiniteDuration()).value().value(), 3);
  completer.join();
  auto [promise, future] = MakePromise<int>();
  EXPECT_EQ(future.WaitFor(-absl::InfiniteDuration()), std::nullopt);
}

}  // namespace
}  // namespace fraktor
