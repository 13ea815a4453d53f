// What the ready set costs when many threads at once make actors ready: ten foreign threads register, two workers drain.
// An item is an actor that went through. The default coordinator and the one with a mutex do the same. Nobody waits for
// anybody between the start and the end, so that what is measured is the set and not how the system schedules threads.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/internal/work_stealing_coordinator.h"

namespace fraktor {

using actor_internal::kForeign;
using actor_internal::MutexCoordinator;
using actor_internal::ReadyNode;
using actor_internal::ReadyQueueCoordinator;
using actor_internal::WorkerIndex;
using actor_internal::WorkerWaker;
using actor_internal::WorkStealingCoordinator;

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 10;
constexpr WorkerIndex kWorkers = 2;
constexpr size_t kActorsPerThread = 10'000;
constexpr int64_t kActors = kThreads * kActorsPerThread;

struct alignas(64) Actor final : public ReadyNode {};

// A coordinator with workers that have nothing to do with what they drain.
template <class Coordinator>
class Pool final : public WorkerWaker {
 public:
  Pool() {
    for (WorkerIndex i = 0; i < kWorkers; ++i) workers_.emplace_back([this, i] { Work(i); });
  }

  ~Pool() override {
    stopping_.store(true, std::memory_order_relaxed);
    for (Desk& desk : desks_) desk.bell.release();
    for (std::thread& worker : workers_) worker.join();
  }

  void Register(Actor& actor) { coordinator_.RegisterReady(kForeign, actor, ReadyQueueCoordinator::Placement::kBack); }

  // Before the first of them is registered.
  void Expect(int64_t actors) { wanted_.fetch_add(actors, std::memory_order_relaxed); }
  // Until all of them have been drained.
  void Await() { done_.acquire(); }

 private:
  struct alignas(64) Desk {
    std::counting_semaphore<> bell{0};
    std::atomic<int64_t> drained{0};  // sequentially consistent before a look at all, so that the last one sees all
  };

  void WakeWorker(WorkerIndex worker) override { desks_[worker].bell.release(); }

  void Work(WorkerIndex index) {
    Desk& desk = desks_[index];
    int64_t drained = 0;
    while (!stopping_.load(std::memory_order_relaxed)) {
      ReadyNode* node = nullptr;
      if (coordinator_.DrainReady(index, absl::MakeSpan(&node, 1)) == 1) {
        ++drained;
        continue;
      }
      desk.drained.store(drained, std::memory_order_seq_cst);
      TellIfDone();
      if (coordinator_.BeginWait(index)) {
        desk.bell.acquire();
        coordinator_.EndWait(index);
      }
    }
  }

  void TellIfDone() {
    int64_t sum = 0;
    for (const Desk& desk : desks_) sum += desk.drained.load(std::memory_order_seq_cst);
    int64_t told = told_.load(std::memory_order_relaxed);
    // Once for each round: both may see it.
    if (sum == wanted_.load(std::memory_order_relaxed) && told != sum &&
        told_.compare_exchange_strong(told, sum, std::memory_order_relaxed)) {
      done_.release();
    }
  }

  Coordinator coordinator_{kWorkers, *this};
  Desk desks_[kWorkers];
  std::atomic<bool> stopping_{false};  // the bells order
  std::atomic<int64_t> wanted_{0};     // who drained an actor sees what was expected before that was registered
  std::atomic<int64_t> told_{0};       // decides who tells
  std::counting_semaphore<> done_{0};
  std::vector<std::thread> workers_;
};

// The threads that register, and the coordinator with its workers. They wait between two rounds.
template <class Coordinator>
class Rig {
 public:
  Rig() {
    for (size_t thread = 0; thread < kThreads; ++thread) {
      threads_.emplace_back([this, mine = actors_.get() + thread * kActorsPerThread] {
        for (;;) {
          start_.arrive_and_wait();
          if (over_.load(std::memory_order_relaxed)) return;
          for (size_t i = 0; i < kActorsPerThread; ++i) pool_.Register(mine[i]);
        }
      });
    }
  }

  ~Rig() {
    over_.store(true, std::memory_order_relaxed);
    start_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  // All actors go through once. How many seconds that takes.
  double Round() {
    pool_.Expect(kActors);
    const Clock::time_point begin = Clock::now();
    start_.arrive_and_wait();
    pool_.Await();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  const std::unique_ptr<Actor[]> actors_ = std::make_unique<Actor[]>(kActors);
  Pool<Coordinator> pool_;
  std::barrier<> start_{kThreads + 1};
  std::atomic<bool> over_{false};  // the barrier orders
  std::vector<std::thread> threads_;
};

template <class Coordinator>
void Register(benchmark::State& state) {
  Rig<Coordinator> rig;
  for (auto _ : state) state.SetIterationTime(rig.Round());
  state.SetItemsProcessed(state.iterations() * kActors);
}

BENCHMARK_TEMPLATE(Register, WorkStealingCoordinator)->Name("register/work_stealing/threads:10")->UseManualTime();
BENCHMARK_TEMPLATE(Register, MutexCoordinator)->Name("register/mutex/threads:10")->UseManualTime();

// Both in turn, many times, and each first as often as the other. A round depends on where the system lets twelve
// threads run, and differs by half from the next; so does a process from the next. `ratio` is the median of how long
// the mutex takes, divided by how long the default takes in the round beside it.
void Compared(benchmark::State& state) {
  constexpr int kRounds = 101;
  Rig<MutexCoordinator> mutex;
  Rig<WorkStealingCoordinator> work_stealing;
  for (auto _ : state) {
    std::vector<double> ratios;
    double seconds = 0;
    for (int i = 0; i < kRounds; ++i) {
      double reference = i % 2 == 0 ? mutex.Round() : 0;
      const double ours = work_stealing.Round();
      if (i % 2 != 0) reference = mutex.Round();
      ratios.push_back(reference / ours);
      seconds += ours;
    }
    std::sort(ratios.begin(), ratios.end());
    state.counters["ratio"] = ratios[kRounds / 2];
    state.SetIterationTime(seconds);
  }
  state.SetItemsProcessed(state.iterations() * kRounds * kActors);
}
BENCHMARK(Compared)->Name("register/compared/threads:10")->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace fraktor
