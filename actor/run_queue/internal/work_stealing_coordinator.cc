#include "fraktor/actor/run_queue/internal/work_stealing_coordinator.h"

namespace fraktor::inline v0::actor_internal {

WorkStealingCoordinator::WorkStealingCoordinator(WorkerIndex workers, WorkerWaker& waker) : queues_(workers, waker) {
  SetWaiting(queues_.injected_count());
}

bool WorkStealingCoordinator::RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) {
  return queues_.RegisterReady(worker, node, placement);
}

size_t WorkStealingCoordinator::DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) {
  return queues_.DrainReady(worker, out);
}

bool WorkStealingCoordinator::HasReady(WorkerIndex worker) const { return queues_.HasReady(worker); }

bool WorkStealingCoordinator::BeginWait(WorkerIndex worker) { return queues_.BeginWait(worker); }

void WorkStealingCoordinator::EndWait(WorkerIndex worker) { queues_.EndWait(worker); }

size_t WorkStealingCoordinator::ReadyCountHint() const { return queues_.ReadyCountHint(); }

}  // namespace fraktor::inline v0::actor_internal
