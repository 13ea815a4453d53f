// MutexCoordinator: the simple ReadyQueueCoordinator, one list under one lock, first in, first out.
//
// Tests and benchmarks compare the work-stealing coordinator with it. WorkerExecutor uses it for
// CoordinatorKind::kMutex, and, with a choice function, on a toolbox that chooses the schedule
// (SimToolbox).
//
// Thread safety: as ReadyQueueCoordinator.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_MUTEX_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_MUTEX_COORDINATOR_H_

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

// It ignores the placement.
class MutexCoordinator final : public ReadyQueueCoordinator {
 public:
  // Returns the position of the actor to drain next, below `ready`, which is 2 or more.
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

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_MUTEX_COORDINATOR_H_
