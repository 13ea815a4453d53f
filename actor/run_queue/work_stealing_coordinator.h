// The default ReadyQueueCoordinator: each worker has a ring of its own, from which others steal
// when they run dry.
//
// A worker takes the next actor from the first of these that has one:
// 1. the injection queue, where foreign threads put actors, but not twice in a row: so a foreign
//    actor waits for two turns of one worker, not behind everything that is ready, and a foreign
//    flood gets at most half of the turns;
// 2. its warm place, which holds the actor that was made ready last: its mailbox is in this core's
//    cache. After kWarmStreak in a row the actor there goes to the back of the ring, so that two
//    actors that only talk to each other do not keep the others waiting;
// 3. the overflow queue, which all workers share, and to which a full ring moves the older half of
//    its actors;
// 4. its ring, oldest first;
// 5. the other workers' rings, of which it takes half. Their warm places are not stolen from.
// Now and then a worker steals although its ring is not empty: if the actors in another ring wait
// much longer. See stealing_queues.h, which also says what makes this fair.
//
// A sleeping worker is woken only if no worker is searching: see idle_workers.h.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_WORK_STEALING_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_WORK_STEALING_COORDINATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/actor/run_queue/stealing_queues.h"

namespace fraktor::inline v0 {

class WorkStealingCoordinator final : public ReadyQueueCoordinator {
 public:
  static constexpr uint32_t kWarmStreak = BasicStealingQueues<>::kWarmStreak;
  // The size of each worker's ring. A full ring moves its older half to the overflow queue.
  static constexpr size_t kRingCapacity = BasicStealingQueues<>::kCapacity;

  // `workers` from 1 to kMaxWorkers. `waker` must outlive the coordinator.
  WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker);

  bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) override;
  size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) override;
  bool BeginWait(WorkerIndex worker) override;
  void EndWait(WorkerIndex worker) override;
  size_t ReadyCountHint() const override;

 private:
  BasicStealingQueues<> queues_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_WORK_STEALING_COORDINATOR_H_
