// The simple ReadyQueueCoordinator: one list under one lock. It is the reference that the work-stealing one is tested
// and measured against, the one to use on a single worker that must be fair to the message, and, with a choice
// function, the one of simulations.
//
//   MutexCoordinator coordinator(2, waker);
//   MutexCoordinator simulated(1, waker, [&](size_t n) { return sim.Choose(n); });   // who of n is next
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_MUTEX_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_MUTEX_COORDINATOR_H_

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"

#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// Placement makes no difference: first come, first served.
class MutexCoordinator final : public ReadyQueueCoordinator {
 public:
  // Given how many are ready, at least two, answers the position of the next one to drain, below that.
  using Choice = absl::AnyInvocable<size_t(size_t ready)>;

  // `workers` from 1 to kMaxWorkers. `waker` must outlive the coordinator.
  MutexCoordinator(WorkerIndex workers, WorkerWaker& waker, Choice choice = nullptr);

  bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) override;
  size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) override;
  bool BeginWait(WorkerIndex worker) override;
  void EndWait(WorkerIndex worker) override;
  size_t ReadyCountHint() const override;

 private:
  ReadyNode* TakeAt(size_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  WorkerWaker& waker_;
  mutable Mutex mutex_;
  Choice choice_ ABSL_GUARDED_BY(mutex_);
  ReadyNode* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  ReadyNode* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<bool> waits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_MUTEX_COORDINATOR_H_
