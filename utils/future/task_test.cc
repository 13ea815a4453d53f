#include "fraktor/utils/future/task.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/test_executors.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor {
namespace {

template <class Awaitable>
concept CanAwaitTemporary = requires(Awaitable awaitable) {
  std::move(awaitable).operator co_await();
};
template <class Awaitable>
concept CanAwaitNamed = requires(Awaitable awaitable) {
  awaitable.operator co_await();
};

static_assert(CanAwaitNamed<Future<int>> && CanAwaitNamed<Task<int>> && CanAwaitNamed<Task<void>>);
#if FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
static_assert(!CanAwaitTemporary<Future<int>> && !CanAwaitTemporary<Task<int>> && !CanAwaitTemporary<Task<void>>);
#else
static_assert(CanAwaitTemporary<Future<int>> && CanAwaitTemporary<Task<int>> && CanAwaitTemporary<Task<void>>);
#endif

// Tells whether it is still alive.
class Alive {
 public:
  explicit Alive(std::vector<std::string>* log, std::string name) : log_(log), name_(std::move(name)) {}
  ~Alive() { log_->push_back(name_); }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;

 private:
  std::vector<std::string>* log_;
  std::string name_;
};

Task<int> Double(Future<int> future) {
  absl::StatusOr<int> value = co_await future;
  if (!value.ok()) co_return value.status();
  co_return *value * 2;
}

Task<std::string> Describe(Future<int> future) {
  Task<int> doubling = Double(std::move(future));
  absl::StatusOr<int> doubled = co_await doubling;
  if (!doubled.ok()) co_return doubled.status();
  co_return "doubled: " + std::to_string(*doubled);
}

TEST(Task, IsLazyAndRunsOnItsExecutorOnly) {
  ManualExecutor executor;
  auto [promise, future] = MakePromise<int>();
  Future<std::string> text = Describe(std::move(future)).Start(executor);
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_FALSE(text.IsReady());
  promise.Set(4);
  EXPECT_FALSE(text.IsReady());  // it resumes when the executor runs it, not here
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_EQ(text.Take().value(), "doubled: 8");
}

TEST(Task, ReturnsErrorsAsValues) {
  ManualExecutor executor;
  Future<std::string> text = Describe(MakeReadyFuture<int>(absl::NotFoundError("none"))).Start(executor);
  executor.RunAll();
  EXPECT_EQ(text.Take().status(), absl::NotFoundError("none"));
}

Task<void> SetFlag(bool* flag) {
  *flag = true;
  co_return;
}
Task<void> FallOffTheEnd(bool* flag) {
  Task<void> setting = SetFlag(flag);
  absl::Status status = co_await setting;
  EXPECT_TRUE(status.ok());
}
Task<absl::Status> Check(Future<void> future) {
  absl::Status status = co_await future;
  co_return status;
}
Task<std::unique_ptr<int>> Box(int value) { co_return std::make_unique<int>(value); }
Task<int> Unbox() {
  Task<std::unique_ptr<int>> boxing = Box(6);
  absl::StatusOr<std::unique_ptr<int>> box = co_await boxing;
  co_return **box;
}

TEST(Task, ComesToVoidAStatusOrAValueThatOnlyMoves) {
  ManualExecutor executor;
  bool flag = false;
  Future<void> done = FallOffTheEnd(&flag).Start(executor);
  Future<void> checked = Check(MakeReadyFuture<void>(absl::AbortedError("x"))).Start(executor);
  Future<int> unboxed = Unbox().Start(executor);
  EXPECT_FALSE(flag);
  executor.RunAll();
  EXPECT_TRUE(flag);
  EXPECT_EQ(done.Take(), absl::OkStatus());
  EXPECT_EQ(checked.Take(), absl::AbortedError("x"));
  EXPECT_EQ(unboxed.Take().value(), 6);
}

Task<int> Throw(Future<void> future) {
  absl::Status status = co_await future;
  if (status.ok()) throw std::runtime_error("broken");
  co_return 1;
}
Task<int> Catch(Future<void> future) {
  Task<int> throwing = Throw(std::move(future));
  bool caught = false;
  try {
    absl::StatusOr<int> value = co_await throwing;
    co_return value;
  } catch (const std::runtime_error&) {
    caught = true;
  }
  co_return caught ? 2 : 3;
}
Task<int> PassOn(Future<void> future) {
  Task<int> throwing = Throw(std::move(future));
  absl::StatusOr<int> value = co_await throwing;
  co_return value;
}

TEST(Task, ThrowsAnExceptionAgainWhereItIsAwaitedAndMakesAnErrorOfItAtTheRoot) {
  ManualExecutor executor;
  Future<int> caught = Catch(MakeReadyFuture()).Start(executor);
  Future<int> passed = PassOn(MakeReadyFuture()).Start(executor);
  executor.RunAll();
  EXPECT_EQ(caught.Take().value(), 2);
  EXPECT_EQ(passed.Take().status(), absl::UnknownError("exception: broken"));
}

Task<int> Inner(std::vector<std::string>* log, Future<int> future) {
  Alive alive(log, "inner");
  absl::StatusOr<int> value = co_await future;
  log->push_back("went on");
  co_return value;
}
Task<int> Outer(std::vector<std::string>* log, Future<int> future) {
  Alive alive(log, "outer");
  Task<int> inner = Inner(log, std::move(future));
  absl::StatusOr<int> value = co_await inner;
  co_return value;
}

TEST(Task, IsDestroyedWhereItWaitsWhenItsFutureIsDropped) {
  ManualExecutor executor;
  std::vector<std::string> log;
  auto [promise, future] = MakePromise<int>();
  Future<int> result = Outer(&log, std::move(future)).Start(executor);
  executor.RunAll();
  result = {};
  EXPECT_TRUE(log.empty());  // only on the executor
  EXPECT_FALSE(promise.IsCancelled());
  executor.RunAll();
  EXPECT_EQ(log, std::vector<std::string>({"inner", "outer"}));
  EXPECT_TRUE(promise.IsCancelled());
}

TEST(Task, NeverStartsWhenItsFutureIsDroppedBefore) {
  ManualExecutor executor;
  std::vector<std::string> log;
  auto [promise, future] = MakePromise<int>();
  Future<int> result = Outer(&log, std::move(future)).Start(executor);
  EXPECT_TRUE(result.Cancel());
  executor.RunAll();
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(promise.IsCancelled());
  EXPECT_EQ(result.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST(Task, IsCancelledWhenTheExecutorRefuses) {
  ManualExecutor executor;
  std::vector<std::string> log;
  auto [promise, future] = MakePromise<int>();
  Future<int> result = Outer(&log, std::move(future)).Start(executor);
  executor.RunAll();
  executor.Close();
  promise.Set(1);
  EXPECT_EQ(log, std::vector<std::string>({"inner", "outer"}));
  EXPECT_EQ(result.Take().status().code(), absl::StatusCode::kCancelled);
  Future<int> late = Double(MakeReadyFuture<int>(1)).Start(executor);
  EXPECT_EQ(late.Take().status().code(), absl::StatusCode::kCancelled);
}

TEST(Task, FreesItsFrameWhenItIsNeverStarted) {
  auto held = std::make_shared<int>(1);
  // The frame owns the future, and the future owns the function.
  Task<int> task = Double(MakeReadyFuture<int>(1).Map([held](int n) { return n + *held; }));
  EXPECT_EQ(held.use_count(), 2);
  task = Task<int>();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(TaskDeathTest, RefusesToStartTwice) {
  ManualExecutor executor;
  Task<int> task = Double(MakeReadyFuture<int>(1));
  Future<int> first = std::move(task).Start(executor);
  EXPECT_DEATH(std::move(task).Start(executor).Cancel(), "empty task");
  executor.RunAll();
}

// A recursion of this depth overflows the stack. Awaiting must not recurse, even without
// optimization.
#if defined(__SANITIZE_THREAD__)
constexpr int kDeep = 100'000;  // a tenth, because ThreadSanitizer is slow
#else
constexpr int kDeep = 1'000'000;
#endif

Task<int> Deep(int depth, Future<void>* gate) {
  if (depth == 0) {
    if (gate != nullptr) {
      absl::Status status = co_await *gate;
      if (!status.ok()) co_return status;
    }
    co_return 0;
  }
  Task<int> deeper = Deep(depth - 1, gate);
  absl::StatusOr<int> value = co_await deeper;
  if (!value.ok()) co_return value.status();
  co_return *value + 1;
}

TEST(Task, AwaitsAMillionTasksDeep) {
  ManualExecutor executor;
  Future<int> result = Deep(kDeep, nullptr).Start(executor);
  executor.RunAll();
  EXPECT_EQ(result.Take().value(), kDeep);
}

TEST(Task, IsDestroyedInnermostFirstWithoutRecursion) {
  ManualExecutor executor;
  auto [promise, gate] = MakePromise<void>();
  Future<int> result = Deep(kDeep, &gate).Start(executor);
  executor.RunAll();
  EXPECT_FALSE(result.IsReady());
  result = {};
  executor.RunAll();
  EXPECT_TRUE(promise.valid());
}

Task<int64_t> SumReady(int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    Future<int> future = MakeReadyFuture<int>(i);
    absl::StatusOr<int> value = co_await future;
    sum += *value;
  }
  co_return sum;
}
Task<int> One() { co_return 1; }
Task<int64_t> SumTasks(int count) {
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    Task<int> one = One();
    absl::StatusOr<int> value = co_await one;
    sum += *value;
  }
  co_return sum;
}

TEST(Task, AwaitsAMillionReadyFuturesAndTasksInALoop) {
  ManualExecutor executor;
  Future<int64_t> futures = SumReady(kDeep).Start(executor);
  Future<int64_t> tasks = SumTasks(kDeep).Start(executor);
  EXPECT_EQ(executor.RunAll(), 2u);  // ready futures and tasks do not go through the executor
  EXPECT_EQ(futures.Take().value(), int64_t{kDeep} * (kDeep - 1) / 2);
  EXPECT_EQ(tasks.Take().value(), kDeep);
}

// GCC 12 miscompiles this if it is awaited in one expression: an aggregate with a member that has a
// destructor, in a call, in an await. In two lines it is right; AddressSanitizer would report a
// double free.
struct Message {
  std::string text;
  int number;
};
Task<std::string> Ask(Message message) { co_return message.text + std::to_string(message.number); }
Future<std::string> AskLater(Message message) { return MakeReadyFuture<std::string>(message.text); }

Task<std::string> AskInTwoLines(std::string text) {
  Task<std::string> asking = Ask(Message{text, 2});
  absl::StatusOr<std::string> answer = co_await asking;
  if (!answer.ok()) co_return answer.status();
  Future<std::string> later = AskLater(Message{*answer, 3});
  absl::StatusOr<std::string> second = co_await later;
  if (!second.ok()) co_return second.status();
  Message last{*second, 4};
  co_return last.text;
}

TEST(Task, AwaitsNamedAsksOfAggregatesSafely) {
  ManualExecutor executor;
  const std::string text(100, 'x');  // too long for the small-string buffer
  Future<std::string> answer = AskInTwoLines(text).Start(executor);
  executor.RunAll();
  EXPECT_EQ(answer.Take().value(), text + "2");
}

#if !FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
Task<std::string> AskInOneLine(std::string text) {
  absl::StatusOr<std::string> answer = co_await Ask(Message{text, 2});
  absl::StatusOr<std::string> second = co_await AskLater(Message{*answer, 3});
  co_return second;
}

TEST(Task, AwaitsTemporariesWhereTheCompilerIsRight) {
  ManualExecutor executor;
  const std::string text(100, 'x');
  Future<std::string> answer = AskInOneLine(text).Start(executor);
  executor.RunAll();
  EXPECT_EQ(answer.Take().value(), text + "2");
}
#endif

// A driver like that of an actor: wakers are plain words, and the driver looks at the wake-ups in
// its own turn.
class WordDriver final : public TaskDriver {
 public:
  Waker BeginWait() override {
    ++waits_;
    return Waker{
        .function = [](void* target, uint64_t slot,
                       uint64_t wait) noexcept { static_cast<WordDriver*>(target)->mail.emplace_back(slot, wait); },
        .target = this,
        .first = 77,
        .second = waits_};
  }
  void EndWait(bool wake_is_owed) override { owed.push_back(wake_is_owed); }

  std::vector<std::pair<uint64_t, uint64_t>> mail;
  std::vector<bool> owed;

 private:
  uint64_t waits_ = 0;
};

Task<int> Sum(Future<int>* a, Future<int>* b) {
  absl::StatusOr<int> first = co_await *a;
  absl::StatusOr<int> second = co_await *b;
  co_return *first + *second;
}

TEST(RunningTask, IsWokenThroughTheWakersOfItsDriver) {
  WordDriver driver;
  auto a = MakePromise<int>();
  auto b = MakePromise<int>();
  RunningTask<int> running(Sum(&a.future, &b.future), driver);
  EXPECT_FALSE(running.Resume());
  EXPECT_FALSE(running.Resume());  // a superfluous wake-up
  EXPECT_TRUE(driver.mail.empty());
  a.promise.Set(1);
  EXPECT_EQ(driver.mail, (std::vector<std::pair<uint64_t, uint64_t>>{{77, 1}}));
  EXPECT_FALSE(running.Resume());
  b.promise.Set(2);
  EXPECT_EQ(driver.mail, (std::vector<std::pair<uint64_t, uint64_t>>{{77, 1}, {77, 2}}));
  EXPECT_TRUE(running.Resume());
  EXPECT_TRUE(running.is_done());
  EXPECT_EQ(running.exception(), nullptr);
  EXPECT_EQ(running.TakeResult().value(), 3);
  EXPECT_EQ(driver.owed, std::vector<bool>({true, true}));
}

TEST(RunningTask, GivesItsWakerBackWhenItIsDestroyedInAWait) {
  WordDriver driver;
  auto a = MakePromise<int>();
  auto b = MakePromise<int>();
  {
    RunningTask<int> running(Sum(&a.future, &b.future), driver);
    EXPECT_FALSE(running.Resume());
  }
  EXPECT_EQ(driver.owed, std::vector<bool>({false}));
  a.promise.Set(1);
  EXPECT_TRUE(driver.mail.empty());
}

TEST(RunningTask, KeepsTheExceptionForItsDriver) {
  WordDriver driver;
  RunningTask<int> running(Throw(MakeReadyFuture()), driver);
  ASSERT_TRUE(running.Resume());
  ASSERT_NE(running.exception(), nullptr);
  EXPECT_THROW(std::rethrow_exception(running.exception()), std::runtime_error);
}

// Tasks on a thread of their own. Other threads complete their futures, or drop their results.
TEST(TaskStress, RunsOnItsThreadWhoeverCompletesOrDrops) {
  constexpr int kRounds = 5'000;
  std::atomic<int> wrong_thread{0};
  int sum = 0;
  int expected = 0;
  {
    ThreadExecutor executor;
    struct Body {
      static Task<int> Run(Future<int> first, Future<int> second, std::thread::id home, std::atomic<int>* wrong) {
        struct Check {
          ~Check() {
            if (std::this_thread::get_id() != home) ++*wrong;
          }
          std::thread::id home;
          std::atomic<int>* wrong;
        } check{home, wrong};
        absl::StatusOr<int> a = co_await first;
        if (std::this_thread::get_id() != home) ++*wrong;
        absl::StatusOr<int> b = co_await second;
        if (std::this_thread::get_id() != home) ++*wrong;
        co_return *a + *b;
      }
    };
    std::vector<PromiseAndFuture<int>> first, second;
    for (int i = 0; i < kRounds; ++i) {
      first.push_back(MakePromise<int>());
      second.push_back(MakePromise<int>());
    }
    std::atomic<int> position{-1};
    std::thread completer([&] {
      for (int i = 0; i < kRounds; ++i) {
        while (position.load(std::memory_order_acquire) < i) std::this_thread::yield();
        first[i].promise.Set(i);
        second[i].promise.Set(1);
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      Future<int> result =
          Body::Run(std::move(first[i].future), std::move(second[i].future), executor.thread_id(), &wrong_thread)
              .Start(executor);
      position.store(i, std::memory_order_release);
      if (i % 2 == 0) continue;  // dropped
      expected += i + 1;
      sum += result.Wait().value();
    }
    completer.join();
  }
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(wrong_thread.load(), 0);
}

}  // namespace
}  // namespace fraktor
