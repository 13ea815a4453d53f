// BasicStealingQueues: the queues and the methods of WorkStealingCoordinator. They are a template
// of their own, so that the model checker can replace the atomics and tests can use a small ring.
//
// Fairness. No actor that is ready waits for ever, and actors that are always ready get about as
// many turns each:
// - A ring is first in, first out. A full ring moves its older half to the overflow queues, which
//   all workers share and which are first in, first out as well: one for actors that have run
//   before, the other for new actors.
// - While the overflow queues are long, an actor that has run before goes to the end of its
//   overflow queue, behind all that wait. Short ones empty into the rings, so that workers do not
//   share a queue for ever. A new actor always goes to a ring: the actor that was spawned last runs
//   first, so a program that spawns more than it can run keeps few actors alive at a time.
// - A worker takes from its ring first, and once in kOverflowInterval takes an actor that has run
//   before from the overflow queue. So an endless supply of new actors does not starve the others.
//   While the overflow queues are long, a worker takes a new actor from there only when its ring is
//   empty, and once in kNewInterval takes. Short queues give a new actor each kOverflowInterval
//   takes. kNewInterval is long, because each such actor may spawn very many while the others wait.
// - Once in kLookInterval takes a worker compares its ring with the longest known one. If that ring
//   is more than 1.5 times as long, the worker steals half of the difference. This balances rings
//   of unequal length.
// - The worker also compares how often its own ring and that of another worker have gone round,
//   another worker each time. If its own has gone round more than 1.5 times as often, it steals
//   some actors. So a worker that is slow, or stuck in a turn, loses its actors to others, also to
//   busy ones. The comparison spans kLookRounds rounds, because workers do not always run at the
//   same time.
// - A worker takes at most every second actor from the injection queue, so foreign threads get at
//   most half of the turns. The first actor there waits for at most two turns of one worker.
//
// Thread safety: as ReadyQueueCoordinator says.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_STEALING_QUEUES_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_STEALING_QUEUES_H_

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

#include "fraktor/actor/run_queue/internal/idle_workers.h"
#include "fraktor/actor/run_queue/internal/injection_queue.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/queue/internal/work_stealing_ring.h"
#include "fraktor/utils/sync/internal/no_wait_lock.h"

namespace fraktor::inline v0::actor_internal {

template <typename Atomics = utils_internal::StdAtomics, typename Lock = utils_internal::NoWaitLock,
          size_t kRingCapacity = 8192, uint32_t kLookInterval = 32>
class BasicStealingQueues {
 public:
  using Node = BasicReadyNode<Atomics>;
  using Placement = ReadyQueueCoordinator::Placement;

  static constexpr uint32_t kWarmStreak = 32;
  static constexpr uint32_t kLookRounds = 4;
  static constexpr uint32_t kOverflowInterval = 16;
  static constexpr uint32_t kNewInterval = 1024;
  static constexpr size_t kLongOverflow = std::max<size_t>(kRingCapacity / 64, 1);
  static constexpr size_t kCapacity = kRingCapacity;

  BasicStealingQueues(WorkerIndex workers, WorkerWaker& waker)
      : waker_(waker), worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)), idle_(workers) {
    assert(workers >= 1 && workers <= kMaxWorkers);
    for (WorkerIndex i = 0; i < workers; ++i) workers_[i].neighbour = NextOf(i);
  }

  bool RegisterReady(WorkerIndex index, Node& node, Placement placement);
  size_t DrainReady(WorkerIndex index, absl::Span<Node*> out);
  // Not zero if foreign threads have queued actors; see InjectionQueue::count().
  const typename Atomics::template Atomic<size_t>& injected_count() const { return injected_.count(); }
  bool BeginWait(WorkerIndex index);
  void EndWait(WorkerIndex index) { idle_.EndWait(index); }
  bool HasReady(WorkerIndex index) const;
  size_t ReadyCountHint() const;

 private:
  using Membership = BasicReadyMembership<Atomics>;
  using Ring = utils_internal::WorkStealingRing<Node*, kRingCapacity, Atomics>;

  struct alignas(64) Worker {
    // Only the worker uses these.
    Node* warm = nullptr;
    uint32_t warm_streak = 0;
    uint32_t next_victim = 0;
    // Whether the last actor came from the injection queue. If so, the next one does not.
    bool was_injected = false;
    // The worker with which this one compares itself, and the `takes` of both at the beginning of
    // the comparison.
    WorkerIndex neighbour = 0;
    uint64_t neighbour_takes = 0;
    uint64_t own_takes = 0;
    // How often the worker has looked for an actor in its ring or in an overflow queue. The worker
    // writes it; others read it to compare their speed with this worker's. Relaxed: it orders
    // nothing.
    typename Atomics::template Atomic<uint64_t> takes{0};
    // For metrics only; relaxed.
    typename Atomics::template Atomic<bool> has_warm{false};
    Ring ring;
  };

  WorkerIndex NextOf(WorkerIndex index) const { return index + 1 < worker_count_ ? index + 1 : 0; }
  void PushBehind(Worker& worker, Node* node);
  void PushToRing(Worker& worker, Node* node);
  void PushToFullRing(Worker& worker, Node* node);
  Node* Take(WorkerIndex index);
  Node* TakeQueued(WorkerIndex index);
  Node* TakeOverflowBeforeRing(uint64_t takes);
  bool HasOverflow() const;
  bool HasLongOverflow() const { return overflow_.SizeHint() + new_overflow_.SizeHint() >= kLongOverflow; }
  Node* StealFromSlower(WorkerIndex index);
  Node* StealIfSlower(Worker& worker, uint64_t own_takes, Ring& other, uint64_t other_takes, uint64_t most);
  Node* Search(WorkerIndex index);
  bool AnythingReady() const;
  void WakeOneIfUseful();

  WorkerWaker& waker_;
  const WorkerIndex worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  BasicInjectionQueue<Atomics, Lock> injected_;  // Foreign threads push.
  // Workers push; see the top.
  BasicInjectionQueue<Atomics, Lock> overflow_;      // Actors that have run before.
  BasicInjectionQueue<Atomics, Lock> new_overflow_;  // The others.
  BasicIdleWorkers<Atomics> idle_;
  // The worker with the longest ring, as far as workers have noticed. A hint; relaxed.
  typename Atomics::template Atomic<WorkerIndex> crowded_{0};
};

// Only definitions from here on.

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::RegisterReady(WorkerIndex index, Node& node,
                                                                                     Placement placement) {
  if (!Membership::Enter(node)) return false;
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
    PushBehind(worker, displaced);
  } else {
    PushBehind(worker, &node);
    if (placement == Placement::kYield) return true;
  }
  WakeOneIfUseful();
  return true;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
size_t BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::DrainReady(WorkerIndex index,
                                                                                    absl::Span<Node*> out) {
  size_t drained = 0;
  while (drained < out.size()) {
    Node* node = Take(index);
    // A worker that has an actor to run does not search: others would rely on its search while it
    // runs that actor.
    if (node == nullptr && drained == 0) node = Search(index);
    if (node == nullptr) break;
    // After a search there may be more ready actors: wake another worker.
    if (idle_.EndSearch(index)) WakeOneIfUseful();
    Membership::Leave(*node);
    out[drained++] = node;
  }
  return drained;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::BeginWait(WorkerIndex index) {
  // No other worker takes the warm actor.
  if (workers_[index].warm != nullptr) return false;
  return idle_.BeginWait(index, [this] { return AnythingReady(); });
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::HasReady(WorkerIndex index) const {
  const Worker& worker = workers_[index];
  return worker.warm != nullptr || worker.ring.SizeHint() != 0 || HasOverflow() ||
         injected_.count().load(std::memory_order_relaxed) != 0;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
size_t BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::ReadyCountHint() const {
  size_t ready = injected_.SizeHint() + overflow_.SizeHint() + new_overflow_.SizeHint();
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    ready += workers_[i].ring.SizeHint() + (workers_[i].has_warm.load(std::memory_order_relaxed) ? 1 : 0);
  }
  return ready;
}

// Queues an actor behind those that have waited longer.
template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::PushBehind(Worker& worker, Node* node) {
  if (HasOverflow() && Membership::HasRun(*node) && HasLongOverflow()) [[unlikely]] {
    overflow_.Push(node);
  } else {
    PushToRing(worker, node);
  }
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::PushToRing(Worker& worker, Node* node) {
  if (!worker.ring.TryPush(node)) [[unlikely]]
    PushToFullRing(worker, node);
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
[[gnu::noinline]] void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::PushToFullRing(Worker& worker,
                                                                                                        Node* node) {
  // The older half goes to the overflow queues, and not to the injection queue, where the actors of
  // foreign threads would wait behind it.
  typename Ring::HalfBuffer moved;
  typename Ring::HalfBuffer moved_new;
  const size_t count = worker.ring.PopHalf(moved);
  size_t old_count = 0;
  size_t new_count = 0;
  for (size_t i = 0; i < count; ++i) {
    if (Membership::HasRun(*moved[i])) {
      moved[old_count++] = moved[i];
    } else {
      moved_new[new_count++] = moved[i];
    }
  }
  // Both are 0 if other workers have stolen all of them meanwhile.
  if (old_count > 0) overflow_.PushAll(absl::MakeConstSpan(moved.data(), old_count));
  if (new_count > 0) new_overflow_.PushAll(absl::MakeConstSpan(moved_new.data(), new_count));
  const bool pushed = worker.ring.TryPush(node);
  assert(pushed);
  static_cast<void>(pushed);
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::Take(WorkerIndex index) -> Node* {
  Worker& worker = workers_[index];
  if (!worker.was_injected) {
    if (Node* const node = injected_.TryPop()) {
      worker.was_injected = true;
      return node;
    }
  }
  worker.was_injected = false;
  if (Node* const node = worker.warm) {
    worker.warm = nullptr;
    worker.has_warm.store(false, std::memory_order_relaxed);
    if (++worker.warm_streak <= kWarmStreak) return node;
    PushBehind(worker, node);
  }
  worker.warm_streak = 0;
  if (Node* const node = TakeQueued(index)) return node;
  // There is nothing else to run, so the injection queue may be next twice in a row.
  Node* const node = injected_.TryPop();
  worker.was_injected = node != nullptr;
  return node;
}

// Takes from the ring, and at intervals from an overflow queue or another ring.
template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::TakeQueued(WorkerIndex index) -> Node* {
  Worker& worker = workers_[index];
  const uint64_t takes = worker.takes.load(std::memory_order_relaxed) + 1;
  worker.takes.store(takes, std::memory_order_relaxed);
  if (takes % kLookInterval == 0) [[unlikely]] {
    if (Node* const node = StealFromSlower(index)) return node;
  } else if (takes % kOverflowInterval == 1 && HasOverflow()) [[unlikely]] {
    if (Node* const node = TakeOverflowBeforeRing(takes)) return node;
  }
  if (Node* const node = worker.ring.TryPop()) return node;
  if (Node* const node = new_overflow_.TryPop()) return node;
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
[[gnu::noinline]] auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::TakeOverflowBeforeRing(
    uint64_t takes) -> Node* {
  if (takes % kNewInterval == 1 || !HasLongOverflow()) {
    if (Node* const node = new_overflow_.TryPop()) return node;
  }
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::HasOverflow() const {
  return overflow_.count().load(std::memory_order_relaxed) != 0 ||
         new_overflow_.count().load(std::memory_order_relaxed) != 0;
}

// Compares the worker with the one that has the longest ring and with its neighbour.
template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
[[gnu::noinline]] auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::StealFromSlower(
    WorkerIndex index) -> Node* {
  if (worker_count_ == 1) return nullptr;
  Worker& worker = workers_[index];
  const uint64_t own_length = worker.ring.SizeHint();
  const WorkerIndex crowded = crowded_.load(std::memory_order_relaxed);
  const WorkerIndex longest = crowded == index ? worker.neighbour : crowded;
  if (own_length > 2 * workers_[crowded].ring.SizeHint()) crowded_.store(index, std::memory_order_relaxed);
  // At most one batch: other workers steal from the same ring.
  Node* stolen = StealIfSlower(worker, 1, workers_[longest].ring, 1, Ring::kMostStolen);
  const uint64_t takes = worker.takes.load(std::memory_order_relaxed);
  const uint64_t own_takes = takes - worker.own_takes;
  if (stolen == nullptr && own_takes >= kLookRounds * std::max<uint64_t>(own_length + 1, kLookInterval)) {
    Worker& neighbour = workers_[worker.neighbour];
    stolen = StealIfSlower(worker, own_takes, neighbour.ring,
                           neighbour.takes.load(std::memory_order_relaxed) - worker.neighbour_takes, kRingCapacity);
    worker.neighbour = NextOf(worker.neighbour);
    if (worker.neighbour == index) worker.neighbour = NextOf(index);
    worker.neighbour_takes = workers_[worker.neighbour].takes.load(std::memory_order_relaxed);
    worker.own_takes = takes;
  }
  // A worker that was about to sleep may not have seen the stolen actors while they were in no
  // ring.
  if (stolen != nullptr) WakeOneIfUseful();
  return stolen;
}

// Steals if the actors of the other ring wait more than 1.5 times as long as those of `worker`:
// as many actors as make the waits equal, but at most about `most`. `own_takes` and `other_takes`
// are the numbers of actors that the two workers take in the same time.
template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::StealIfSlower(Worker& worker, uint64_t own_takes,
                                                                                     Ring& other, uint64_t other_takes,
                                                                                     uint64_t most) -> Node* {
  const uint64_t here = (worker.ring.SizeHint() + 1) * other_takes;
  const uint64_t there = other.SizeHint() * own_takes;
  if (2 * there <= 3 * here) return nullptr;
  const uint64_t surplus = std::min((there - here) / (own_takes + other_takes), most);
  Node* const first = other.StealHalfInto(worker.ring, std::clamp<uint64_t>(surplus, 1, Ring::kMostStolen));
  for (uint64_t stolen = Ring::kMostStolen; stolen < surplus && first != nullptr; stolen += Ring::kMostStolen) {
    Node* const next = other.StealHalfInto(worker.ring);
    if (next == nullptr) break;
    PushToRing(worker, next);
  }
  return first;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::Search(WorkerIndex index) -> Node* {
  idle_.StartSearch(index);  // It ends when an actor is found, or in BeginWait.
  Worker& worker = workers_[index];
  for (WorkerIndex tries = 0; tries < worker_count_; ++tries) {
    worker.next_victim = NextOf(worker.next_victim);
    if (worker.next_victim == index) continue;
    if (Node* const node = workers_[worker.next_victim].ring.StealHalfInto(worker.ring)) return node;
  }
  if (Node* const node = injected_.TryPop()) return node;
  if (Node* const node = new_overflow_.TryPop()) return node;
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::AnythingReady() const {
  if (!injected_.IsEmptyForParking() || !overflow_.IsEmptyForParking() || !new_overflow_.IsEmptyForParking()) {
    return true;
  }
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    if (!workers_[i].ring.IsEmptyForParking()) return true;
  }
  return false;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::WakeOneIfUseful() {
  const WorkerIndex sleeper = idle_.TakeSleeper();
  if (sleeper != kForeign) waker_.WakeWorker(sleeper);
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_STEALING_QUEUES_H_
