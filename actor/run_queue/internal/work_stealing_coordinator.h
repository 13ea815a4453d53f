// WorkStealingCoordinator: the default ReadyQueueCoordinator. Each worker has a ring of its own,
// from which others steal when theirs are empty.
//
// A worker takes the next actor from the first of these that has one:
// 1. the injection queue, into which foreign threads push, but not twice in a row. So a foreign
//    actor waits for two turns of one worker and not behind all ready actors, and a flood of
//    foreign messages gets at most half of the turns;
// 2. its warm place, which holds the actor that the worker queued last: its mailbox is in this
//    core's cache. After kWarmStreak warm actors in a row the next one goes to the back of the
//    ring, so that two actors that only send to each other do not delay the others;
// 3. its ring, oldest first;
// 4. the overflow queues, which all workers share, and to which a full ring moves the older half of
//    its actors. Once in some takes they go before the ring;
// 5. the other workers' rings, of which it takes half. Their warm places are not stolen from.
// A worker also steals although its ring is not empty, if the actors of another ring wait much
// longer. stealing_queues.h says what makes this fair.
//
// A sleeping worker is woken only if no worker is searching: see idle_workers.h.
//
// Thread safety: as ReadyQueueCoordinator. WorkerExecutor owns it.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_WORK_STEALING_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_WORK_STEALING_COORDINATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/internal/stealing_queues.h"

namespace fraktor::inline v0::actor_internal {

class WorkStealingCoordinator final : public ReadyQueueCoordinator {
 public:
  static constexpr uint32_t kWarmStreak = BasicStealingQueues<>::kWarmStreak;
  // The size of each worker's ring. A full ring moves its older half to the overflow queues.
  static constexpr size_t kRingCapacity = BasicStealingQueues<>::kCapacity;

  // `workers` from 1 to kMaxWorkers. `waker` must outlive the coordinator.
  WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker);

  bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) override;
  size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) override;
  bool HasReady(WorkerIndex worker) const override;
  bool BeginWait(WorkerIndex worker) override;
  void EndWait(WorkerIndex worker) override;
  size_t ReadyCountHint() const override;

 private:
  BasicStealingQueues<> queues_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_WORK_STEALING_COORDINATOR_H_
