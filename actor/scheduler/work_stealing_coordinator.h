// The default ReadyQueueCoordinator: each worker has a ring of its own, from which others steal when they run dry.
//
// A worker looks, on each drain, in this order:
//   1. the injection queue, where foreign threads put actors; at most one is taken, so that a foreign message waits for
//      one run per worker and not behind everything that is ready;
//   2. its warm place, where the actor stands that was made ready last: its mailbox is in this core's cache. After
//      kWarmStreak in a row the actor there goes to the back of the ring, so that two actors that only talk to each
//      other do not keep the others waiting;
//   3. its ring, oldest first;
//   4. the other workers' rings, of which it takes half. Their warm places are not stolen from.
//
// Waking a thread costs the waker some microseconds, so it is done only if a worker sleeps and no worker is searching
// (one that searches will find the work). A worker that finds work after a search wakes the next one if there may be
// more. Nothing is lost: a worker that gives up its search says so, says that it sleeps, and then looks at everything
// once more; these steps, the registering and the look for sleepers are sequentially consistent, so one of the two sees
// the other.
#ifndef FRAKTOR_ACTOR_SCHEDULER_WORK_STEALING_COORDINATOR_H_
#define FRAKTOR_ACTOR_SCHEDULER_WORK_STEALING_COORDINATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

#include "fraktor/actor/scheduler/injection_queue.h"
#include "fraktor/actor/scheduler/ready_queue_coordinator.h"
#include "fraktor/utils/queue/work_stealing_ring.h"

namespace fraktor::inline v0 {

class WorkStealingCoordinator final : public ReadyQueueCoordinator {
 public:
  static constexpr uint32_t kWarmStreak = 32;

  // `workers` from 1 to kMaxWorkers. `waker` must outlive the coordinator.
  WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker);

  bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) override;
  void Unregister(ReadyNode& node) override;
  size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) override;
  bool BeginWait(WorkerIndex worker) override;
  void EndWait(WorkerIndex worker) override;
  size_t ReadyCountHint() const override;

 private:
  using Ring = WorkStealingRing<ReadyNode*>;

  struct alignas(64) Worker {
    // Of the worker alone.
    ReadyNode* warm = nullptr;
    uint32_t warm_streak = 0;
    uint32_t next_victim = 0;
    bool searching = false;  // Counted in searching_.
    // Set by the worker before it sleeps, cleared by whoever wakes it, or by itself. Sequentially consistent: see
    // above.
    std::atomic<bool> sleeps{false};
    // For metrics only; relaxed.
    std::atomic<bool> has_warm{false};
    Ring ring;
  };

  void PushToRing(Worker& worker, ReadyNode* node);
  ReadyNode* TakeOne(WorkerIndex index);
  ReadyNode* Found(Worker& worker, ReadyNode* node);
  ReadyNode* Search(WorkerIndex index);
  ReadyNode* Steal(WorkerIndex index);
  void StopSearching(Worker& worker);
  bool AnythingReady() const;
  void WakeOneIfUseful();

  WorkerWaker& waker_;
  const WorkerIndex worker_count_;
  std::unique_ptr<Worker[]> workers_;
  InjectionQueue injected_;
  // How many workers sleep, and how many look for work. Sequentially consistent: see above.
  alignas(64) std::atomic<int32_t> sleeping_{0};
  std::atomic<int32_t> searching_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_WORK_STEALING_COORDINATOR_H_
