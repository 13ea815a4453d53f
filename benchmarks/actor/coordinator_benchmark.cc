// What the ready set costs when many threads at once make actors ready: ten foreign threads register, two workers drain.
// An item is an actor that went through. The default coordinator and the one with a mutex do the same.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/scheduler/mutex_coordinator.h"
#include "fraktor/actor/scheduler/ready_queue_coordinator.h"
#include "fraktor/actor/scheduler/work_stealing_coordinator.h"

namespace fraktor {
namespace {

constexpr int kThreads = 10;
constexpr WorkerIndex kWorkers = 2;
// As many actors as a thread has; it waits when all of them are ready.
constexpr size_t kNodes = 256;

struct alignas(64) Actor final : public ReadyNode {
  std::atomic<bool> idle{true};  // released by the worker that drained it, acquired by the thread that owns it
};

// A coordinator with workers that have nothing to do with what they drain.
class Pool final : public WorkerWaker {
 public:
  template <class Coordinator>
  static std::unique_ptr<Pool> Make() {
    std::unique_ptr<Pool> pool(new Pool);
    pool->coordinator_ = std::make_unique<Coordinator>(kWorkers, *pool);
    for (WorkerIndex i = 0; i < kWorkers; ++i) pool->workers_.emplace_back([&pool = *pool, i] { pool.Work(i); });
    return pool;
  }

  ~Pool() override {
    stopping_.store(true, std::memory_order_relaxed);
    for (std::counting_semaphore<>& bell : bells_) bell.release();
    for (std::thread& worker : workers_) worker.join();
  }

  void Register(Actor& actor) {
    while (!actor.idle.load(std::memory_order_acquire)) std::this_thread::yield();
    actor.idle.store(false, std::memory_order_relaxed);
    coordinator_->RegisterReady(kForeign, actor, ReadyQueueCoordinator::Placement::kBack);
  }

 private:
  Pool() = default;

  void WakeWorker(WorkerIndex worker) override { bells_[worker].release(); }

  void Work(WorkerIndex index) {
    while (!stopping_.load(std::memory_order_relaxed)) {
      ReadyNode* node = nullptr;
      if (coordinator_->DrainReady(index, absl::MakeSpan(&node, 1)) == 1) {
        static_cast<Actor*>(node)->idle.store(true, std::memory_order_release);
      } else if (coordinator_->BeginWait(index)) {
        bells_[index].acquire();
        coordinator_->EndWait(index);
      }
    }
  }

  std::unique_ptr<ReadyQueueCoordinator> coordinator_;
  std::counting_semaphore<> bells_[kWorkers]{std::counting_semaphore<>{0}, std::counting_semaphore<>{0}};
  std::atomic<bool> stopping_{false};  // the bells order
  std::vector<std::thread> workers_;
};

std::unique_ptr<Pool> pool;  // the first thread's, while others are outside of their loops

template <class Coordinator>
void Register(benchmark::State& state) {
  const auto actors = std::make_unique<Actor[]>(kNodes);
  if (state.thread_index() == 0) pool = Pool::Make<Coordinator>();
  size_t next = 0;
  for (auto _ : state) pool->Register(actors[next++ % kNodes]);
  state.SetItemsProcessed(state.iterations());
  // All that this thread has registered must be drained before it goes.
  for (size_t i = 0; i < kNodes; ++i) {
    while (!actors[i].idle.load(std::memory_order_acquire)) std::this_thread::yield();
  }
}

BENCHMARK_TEMPLATE(Register, WorkStealingCoordinator)->Name("register/work_stealing")->Threads(kThreads)->UseRealTime();
BENCHMARK_TEMPLATE(Register, MutexCoordinator)->Name("register/mutex")->Threads(kThreads)->UseRealTime();

}  // namespace
}  // namespace fraktor
