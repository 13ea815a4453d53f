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
// A sleeping worker is woken only if no worker is searching: see idle_workers.h.
#ifndef FRAKTOR_ACTOR_READY_WORK_STEALING_COORDINATOR_H_
#define FRAKTOR_ACTOR_READY_WORK_STEALING_COORDINATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/actor/ready/ready_queue_coordinator.h"
#include "fraktor/actor/ready/stealing_queues.h"

namespace fraktor::inline v0 {

class WorkStealingCoordinator final : public ReadyQueueCoordinator {
 public:
  static constexpr uint32_t kWarmStreak = BasicStealingQueues<>::kWarmStreak;
  // Of each worker. What is more goes where all workers look when they have nothing else.
  static constexpr size_t kRingCapacity = BasicStealingQueues<>::kCapacity;

  // `workers` from 1 to kMaxWorkers. `waker` must outlive the coordinator.
  WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker);

  bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) override;
  bool Unregister(ReadyNode& node) override;
  size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) override;
  bool BeginWait(WorkerIndex worker) override;
  void EndWait(WorkerIndex worker) override;
  size_t ReadyCountHint() const override;

 private:
  BasicStealingQueues<> queues_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_READY_WORK_STEALING_COORDINATOR_H_
