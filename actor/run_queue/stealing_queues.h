// The queues of a WorkStealingCoordinator, and what its methods do: see there. They are a template,
// apart from the coordinator, so that the model checker can use its own atomics, and tests a small
// ring.
//
// Fairness. No actor that is ready waits for ever, and actors that are always ready get about as
// many turns each:
// - A ring is first in, first out. A full ring moves its older half to the overflow queue, which
//   all workers share. The actors there are older than those in the rings, so workers take from
//   there first.
// - Once in kLookInterval takes a worker compares its ring with the longest one, as far as known.
//   If that one is half as long again, it steals half of the difference: so rings of unequal length
//   are balanced.
// - It also compares how often its own ring and that of another worker have gone round, another
//   worker each time. If its own has gone round half as often again, it steals some: so a worker
//   that is slow, or stuck in a turn, loses its actors to others, also to those that are not idle.
//   It waits for kLookRounds rounds before it judges, since workers do not always run at the same
//   time.
// - A take that compares rings does not look at the overflow queue. So the ring gets some of the
//   turns, whatever the overflow queue holds.
// - A worker takes at most every second actor from the injection queue, so foreign threads get at
//   most half of the turns; and the first of their actors waits for two turns of one worker at
//   most.
//
// Thread safety: as ReadyQueueCoordinator says.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_STEALING_QUEUES_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_STEALING_QUEUES_H_

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"

#include "fraktor/actor/run_queue/idle_workers.h"
#include "fraktor/actor/run_queue/injection_queue.h"
#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/utils/queue/atomics.h"
#include "fraktor/utils/queue/work_stealing_ring.h"
#include "fraktor/utils/sync/no_wait_lock.h"

namespace fraktor::inline v0 {

template <typename Atomics = StdAtomics, typename Lock = NoWaitLock, size_t kRingCapacity = 8192,
          uint32_t kLookInterval = 32>
class BasicStealingQueues {
 public:
  using Node = BasicReadyNode<Atomics>;
  using Placement = ReadyQueueCoordinator::Placement;

  static constexpr uint32_t kWarmStreak = 32;
  static constexpr uint32_t kLookRounds = 4;
  static constexpr size_t kCapacity = kRingCapacity;

  BasicStealingQueues(WorkerIndex workers, WorkerWaker& waker)
      : waker_(waker), worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)), idle_(workers) {
    assert(workers >= 1 && workers <= kMaxWorkers);
    for (WorkerIndex i = 0; i < workers; ++i) workers_[i].neighbour = NextOf(i);
  }

  bool RegisterReady(WorkerIndex index, Node& node, Placement placement);
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
    // These belong to the worker alone.
    Node* warm = nullptr;
    uint32_t warm_streak = 0;
    uint32_t next_victim = 0;
    // The last actor came from the injection queue: the next one does not.
    bool was_injected = false;
    // The other worker with which this one compares itself, and the `takes` of both when it began
    // to.
    WorkerIndex neighbour = 0;
    uint64_t neighbour_takes = 0;
    uint64_t own_takes = 0;
    // How often the worker has looked for an actor in its ring or in the overflow queue. Written by
    // the worker, read by others that want to know how fast it is; relaxed.
    typename Atomics::template Atomic<uint64_t> takes{0};
    // For metrics only; relaxed.
    typename Atomics::template Atomic<bool> has_warm{false};
    Ring ring;
  };

  WorkerIndex NextOf(WorkerIndex index) const { return index + 1 < worker_count_ ? index + 1 : 0; }
  void PushToRing(Worker& worker, Node* node);
  void PushToFullRing(Worker& worker, Node* node);
  Node* Take(WorkerIndex index);
  Node* TakeQueued(WorkerIndex index);
  Node* StealFromSlower(WorkerIndex index);
  Node* StealIfSlower(Worker& worker, uint64_t own_takes, Ring& other, uint64_t other_takes, uint64_t most);
  Node* Search(WorkerIndex index);
  bool AnythingReady() const;
  void WakeOneIfUseful();

  WorkerWaker& waker_;
  const WorkerIndex worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  BasicInjectionQueue<Atomics, Lock> injected_;  // By foreign threads.
  BasicInjectionQueue<Atomics, Lock> overflow_;  // By workers whose ring was full.
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
    PushToRing(worker, displaced);
  } else {
    PushToRing(worker, &node);
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
    // One that has something to run does not search: others would rely on it while it runs that.
    if (node == nullptr && drained == 0) node = Search(index);
    if (node == nullptr) break;
    // If it was searching: there may be more where this came from.
    if (idle_.EndSearch(index)) WakeOneIfUseful();
    Membership::Leave(*node);
    out[drained++] = node;
  }
  return drained;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::BeginWait(WorkerIndex index) {
  // Nobody else looks there.
  if (workers_[index].warm != nullptr) return false;
  return idle_.BeginWait(index, [this] { return AnythingReady(); });
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
size_t BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::ReadyCountHint() const {
  size_t ready = injected_.SizeHint() + overflow_.SizeHint();
  for (WorkerIndex i = 0; i < worker_count_; ++i) {
    ready += workers_[i].ring.SizeHint() + (workers_[i].has_warm.load(std::memory_order_relaxed) ? 1 : 0);
  }
  return ready;
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::PushToRing(Worker& worker, Node* node) {
  if (!worker.ring.TryPush(node)) [[unlikely]]
    PushToFullRing(worker, node);
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
[[gnu::noinline]] void BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::PushToFullRing(Worker& worker,
                                                                                                        Node* node) {
  // Not to the injection queue: foreign threads would wait behind them.
  typename Ring::HalfBuffer moved;
  const size_t count = worker.ring.PopHalf(moved);
  // None if thieves have taken all of them meanwhile.
  if (count > 0) overflow_.PushAll(absl::MakeConstSpan(moved.data(), count));
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
    PushToRing(worker, node);
  }
  worker.warm_streak = 0;
  if (Node* const node = TakeQueued(index)) return node;
  // There is nothing else: foreign actors need not wait.
  Node* const node = injected_.TryPop();
  worker.was_injected = node != nullptr;
  return node;
}

// From the overflow queue, the ring, and now and then another ring.
template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
auto BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::TakeQueued(WorkerIndex index) -> Node* {
  Worker& worker = workers_[index];
  const uint64_t takes = worker.takes.load(std::memory_order_relaxed) + 1;
  worker.takes.store(takes, std::memory_order_relaxed);
  if (takes % kLookInterval == 0) [[unlikely]] {
    if (Node* const node = StealFromSlower(index)) return node;
  } else if (overflow_.count().load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (Node* const node = overflow_.TryPop()) return node;
  }
  if (Node* const node = worker.ring.TryPop()) return node;
  return overflow_.TryPop();
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
  // Not more than one batch: others look as well.
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
  // While the stolen actors were in no ring, a worker that was about to sleep may have overlooked
  // them.
  if (stolen != nullptr) WakeOneIfUseful();
  return stolen;
}

// Steals if the actors of the other ring wait half as long again as those of `worker`, and so many
// that all wait equally long then, but at most about `most`. `own_takes` and `other_takes` are how
// many actors the two workers take in the same time.
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
  idle_.StartSearch(index);  // Until something is found, or BeginWait.
  Worker& worker = workers_[index];
  for (WorkerIndex tries = 0; tries < worker_count_; ++tries) {
    worker.next_victim = NextOf(worker.next_victim);
    if (worker.next_victim == index) continue;
    if (Node* const node = workers_[worker.next_victim].ring.StealHalfInto(worker.ring)) return node;
  }
  if (Node* const node = injected_.TryPop()) return node;
  return overflow_.TryPop();
}

template <typename Atomics, typename Lock, size_t kRingCapacity, uint32_t kLookInterval>
bool BasicStealingQueues<Atomics, Lock, kRingCapacity, kLookInterval>::AnythingReady() const {
  if (!injected_.IsEmptyForParking() || !overflow_.IsEmptyForParking()) return true;
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

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_STEALING_QUEUES_H_
