// Futures against std::future, and what an await costs.
#include <cstdint>
#include <future>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor {
namespace {

// Runs each piece of work when it is asked to; holds one.
class OneSlotExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void() &&> work) override { work_ = std::move(work); }
  void RunAll() {
    while (work_ != nullptr) std::exchange(work_, nullptr)();
  }

 private:
  absl::AnyInvocable<void() &&> work_;
};

void CountWake(void* target, uint64_t, uint64_t) noexcept { ++*static_cast<int64_t*>(target); }

// Make, set, get.
void BM_StdFuture(benchmark::State& state) {
  for (auto _ : state) {
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    promise.set_value(1);
    benchmark::DoNotOptimize(future.get());
  }
}
BENCHMARK(BM_StdFuture);

void BM_Future(benchmark::State& state) {
  for (auto _ : state) {
    auto [promise, future] = MakePromise<int>();
    promise.Set(1);
    benchmark::DoNotOptimize(*future.Take());
  }
}
BENCHMARK(BM_Future);

// The same with a consumer who polled before, and is woken.
void BM_FutureThatWakes(benchmark::State& state) {
  int64_t wakes = 0;
  for (auto _ : state) {
    auto [promise, future] = MakePromise<int>();
    if (future.Poll(Waker{.function = &CountWake, .target = &wakes})) state.SkipWithError("ready too early");
    promise.Set(1);
    benchmark::DoNotOptimize(*future.Take());
  }
  if (wakes != static_cast<int64_t>(state.iterations())) state.SkipWithError("not one wake-up for each future");
}
BENCHMARK(BM_FutureThatWakes);

void BM_FutureThen(benchmark::State& state) {
  OneSlotExecutor executor;
  for (auto _ : state) {
    Future<int> then = MakeReadyFuture<int>(1).Then(executor, [](absl::StatusOr<int> n) { return *n + 1; });
    executor.RunAll();
    benchmark::DoNotOptimize(*then.Take());
  }
}
BENCHMARK(BM_FutureThen);

Task<int64_t> AwaitReady(benchmark::State& state) {
  int64_t sum = 0;
  for (auto _ : state) {
    Future<int> future = MakeReadyFuture<int>(1);
    absl::StatusOr<int> value = co_await future;
    sum += *value;
  }
  co_return sum;
}

// One await of a ready future, with the making of that future.
void BM_TaskAwaitsReadyFuture(benchmark::State& state) {
  OneSlotExecutor executor;
  Future<int64_t> sum = AwaitReady(state).Start(executor);
  executor.RunAll();
  benchmark::DoNotOptimize(*sum.Take());
}
BENCHMARK(BM_TaskAwaitsReadyFuture);

Task<int> One() { co_return 1; }

Task<int64_t> AwaitTasks(benchmark::State& state) {
  int64_t sum = 0;
  for (auto _ : state) {
    Task<int> one = One();
    absl::StatusOr<int> value = co_await one;
    sum += *value;
  }
  co_return sum;
}

// One await of a task: a frame, two switches.
void BM_TaskAwaitsTask(benchmark::State& state) {
  OneSlotExecutor executor;
  Future<int64_t> sum = AwaitTasks(state).Start(executor);
  executor.RunAll();
  benchmark::DoNotOptimize(*sum.Take());
}
BENCHMARK(BM_TaskAwaitsTask);

// A task that waits, is woken and goes on through its executor.
Task<int64_t> AwaitPending(benchmark::State& state, Promise<int>* next) {
  int64_t sum = 0;
  for (auto _ : state) {
    PromiseAndFuture<int> pair = MakePromise<int>();
    *next = std::move(pair.promise);
    absl::StatusOr<int> value = co_await pair.future;
    sum += *value;
  }
  co_return sum;
}

void BM_TaskWaitsAndIsWoken(benchmark::State& state) {
  OneSlotExecutor executor;
  Promise<int> next;
  Future<int64_t> sum = AwaitPending(state, &next).Start(executor);
  executor.RunAll();
  while (!sum.IsReady()) {
    next.Set(1);
    executor.RunAll();
  }
  benchmark::DoNotOptimize(*sum.Take());
}
BENCHMARK(BM_TaskWaitsAndIsWoken);

}  // namespace
}  // namespace fraktor
