// The queues of a WorkStealingCoordinator, and what its methods do: see there. Apart from it so that the model checker
// can put its own atomics in.
//
// Thread safety: as ReadyQueueCoordinator says.
#ifndef FRAKTOR_ACTOR_READY_STEALING_QUEUES_H_
#define FRAKTOR_ACTOR_READY_STEALING_QUEUES_H_

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

#include "fraktor/actor/ready/idle_workers.h"
#include "fraktor/actor/ready/injection_queue.h"
#include "fraktor/actor/ready/ready_queue_coordinator.h"
#include "fraktor/utils/queue/atomics.h"
#include "fraktor/utils/queue/work_stealing_ring.h"
#include "fraktor/utils/sync/no_wait_lock.h"

namespace fraktor::inline v0 {

template <typename Atomics = StdAtomics, typename Lock = NoWaitLock, size_t kRingCapacity = 8192>
class BasicStealingQueues {
 public:
  using Node = BasicReadyNode<Atomics>;
  using Placement = ReadyQueueCoordinator::Placement;

  static constexpr uint32_t kWarmStreak = 32;
  static constexpr size_t kCapacity = kRingCapacity;

  BasicStealingQueues(WorkerIndex workers, WorkerWaker& waker)
      : waker_(waker), worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)), idle_(workers) {
    assert(workers >= 1 && workers <= kMaxWorkers);
  }

  bool RegisterReady(WorkerIndex index, Node& node, Placement placement);
  bool Unregister(Node& node) { return Membership::MakeVoid(node); }
  size_t DrainReady(WorkerIndex index, absl::Span<Node*> out);
  // How many foreign threads have put there.
  const typename Atomics::template Atomic<size_t>& injected_count() const { return injected_.count(); }
  bool BeginWait(WorkerIndex index);
  void EndWait(WorkerIndex index) { idle_.EndWait(index); }
  size_t ReadyCountHint() const;

 private:
  using Membership = BasicReadyMembership<Atomics>;
  using Ring = WorkStealingRing<Node*, kRingCapacity, Atomics>;

  struct alignas(64) Worker {
    // Of the worker alone.
    Node* warm = nullptr;
    uint32_t warm_streak = 0;
    uint32_t next_victim = 0;
    // For metrics only; relaxed.
    typename Atomics::template Atomic<bool> has_warm{false};
    Ring ring;
  };

  void PushToRing(Worker& worker, Node* node);
  Node* TakeOwn(Worker& worker);
  Node* Search(WorkerIndex index);
  bool AnythingReady() const;
  void WakeOneIfUseful();

  WorkerWaker& waker_;
  const WorkerIndex worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  BasicInjectionQueue<Atomics, Lock> injected_;  // By foreign threads.
  BasicInjectionQueue<Atomics, Lock> overflow_;  // By workers whose ring was full.
  BasicIdleWorkers<Atomics> idle_;
};

// Only definitions from here on.

template <typename Atomics, typename Lock, size_t kRingCapacity>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity>::RegisterReady(WorkerIndex index, Node& node,
                                                                      Placement placement) {
  const auto entry = Membership::Enter(node);
  if (entry != Membership::Entry::kEnter) return entry == Membership::Entry::kRevived;
  if (index == kForeign) {
    injected_.Push(&node);
    WakeOneIfUseful();
    return true;
  }
  Worker& worker = workers_[index];
  if (placement == Placement::kNext) {
    // A worker that has one actor to run next needs no help with it.
    Node* const displaced = worker.warm;
    worker.warm = &node;
    if (displaced == nullptr) {
      worker.has_warm.store(true, std::memory_order_relaxed);
      return true;
    }
    PushToRing(worker, displaced);
  } else {
    PushToRing(worker, &node);
    if (placement == Placement::kYield) return true;
  }
  WakeOneIfUseful();
  return true;
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
size_t BasicStealingQueues<Atomics, Lock, kRingCapacity>::DrainReady(WorkerIndex index, absl::Span<Node*> out) {
  size_t drained = 0;
  while (drained < out.size()) {
    Node* node = TakeOwn(workers_[index]);
    // One that has something to run does not search: others would rely on it while it runs that.
    if (node == nullptr && drained == 0) node = Search(index);
    if (node == nullptr) break;
    // If it was searching: there may be more where this came from.
    if (idle_.EndSearch(index)) WakeOneIfUseful();
    if (Membership::Leave(*node)) out[drained++] = node;
  }
  return drained;
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity>::BeginWait(WorkerIndex index) {
  // Nobody else looks there.
  if (workers_[index].warm != nullptr) return false;
  return idle_.BeginWait(index, [this] { return AnythingReady(); });
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
size_t BasicStealingQueues<Atomics, Lock, kRingCapacity>::ReadyCountHint() const {
  size_t ready = injected_.SizeHint() + overflow_.SizeHint();
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    ready += workers_[i].ring.SizeHint() + (workers_[i].has_warm.load(std::memory_order_relaxed) ? 1 : 0);
  }
  return ready;
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
void BasicStealingQueues<Atomics, Lock, kRingCapacity>::PushToRing(Worker& worker, Node* node) {
  if (worker.ring.TryPush(node)) return;
  // Too many for one worker: the older half goes to where everybody looks, and keeps its place before the new one. Not
  // to the foreign threads' place: a worker looks there before each run, for those who have nobody else.
  typename Ring::HalfBuffer moved;
  const size_t count = worker.ring.PopHalf(moved);
  // None, if others have taken all of them meanwhile.
  if (count > 0) overflow_.PushAll(absl::MakeConstSpan(moved.data(), count));
  const bool pushed = worker.ring.TryPush(node);
  assert(pushed);
  static_cast<void>(pushed);
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity>::TakeOwn(Worker& worker) -> Node* {
  if (Node* const node = injected_.TryPop()) return node;
  if (Node* const node = worker.warm) {
    worker.warm = nullptr;
    worker.has_warm.store(false, std::memory_order_relaxed);
    if (++worker.warm_streak <= kWarmStreak || !worker.ring.TryPush(node)) return node;
  }
  worker.warm_streak = 0;
  if (Node* const node = worker.ring.TryPop()) return node;
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity>::Search(WorkerIndex index) -> Node* {
  idle_.StartSearch(index);  // Until something is found, or BeginWait.
  Worker& worker = workers_[index];
  for (WorkerIndex tries = 0; tries < worker_count_; ++tries) {
    worker.next_victim = worker.next_victim + 1 < worker_count_ ? worker.next_victim + 1 : 0;
    if (worker.next_victim == index) continue;
    if (Node* const node = workers_[worker.next_victim].ring.StealHalfInto(worker.ring)) return node;
  }
  if (Node* const node = injected_.TryPop()) return node;
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity>::AnythingReady() const {
  if (!injected_.IsEmptyForParking() || !overflow_.IsEmptyForParking()) return true;
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    if (!workers_[i].ring.IsEmptyForParking()) return true;
  }
  return false;
}

template <typename Atomics, typename Lock, size_t kRingCapacity>
void BasicStealingQueues<Atomics, Lock, kRingCapacity>::WakeOneIfUseful() {
  const WorkerIndex sleeper = idle_.TakeSleeper();
  if (sleeper != kForeign) waker_.WakeWorker(sleeper);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_READY_STEALING_QUEUES_H_
