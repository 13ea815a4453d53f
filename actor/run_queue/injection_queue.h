// Where threads that have no ring of their own put ready actors: any number of them push, workers pop, first in first
// out.
//
// A push, of one or of many, is one compare-exchange on a stack. A worker that finds the outgoing list empty turns the
// whole stack round into it, under a lock that only workers take and never wait for. Who pushes and who pops write to
// lines of their own, but once per turn.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INJECTION_QUEUE_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INJECTION_QUEUE_H_

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"

#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/utils/queue/atomics.h"
#include "fraktor/utils/sync/no_wait_lock.h"

namespace fraktor::inline v0 {

// Lock has TryLock and Unlock.
template <typename Atomics = StdAtomics, typename Lock = NoWaitLock>
class BasicInjectionQueue {
 public:
  using Node = BasicReadyNode<Atomics>;

  // Sequentially consistent, so that who pushes and then looks for sleepers, and who says that it sleeps and then looks
  // at LooksEmpty, do not miss each other.
  void Push(Node* node) { PushAll(absl::MakeSpan(&node, 1)); }

  // The same for several, which are popped in this order. There must be one at least.
  void PushAll(absl::Span<Node* const> nodes) {
    size_.fetch_add(nodes.size(), std::memory_order_relaxed);
    for (size_t i = 1; i < nodes.size(); ++i) Membership::set_next(*nodes[i], nodes[i - 1]);
    Node* top = pushed_.load(std::memory_order_relaxed);
    do {
      Membership::set_next(*nodes.front(), top);
    } while (!pushed_.compare_exchange_weak(top, nodes.back(), std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  // Null if there is nothing, or if another worker is popping at this moment: that one will not sleep without another
  // look.
  Node* TryPop() {
    // Mostly the first look is enough, and is not at what the others push to.
    if (outgoing_.load(std::memory_order_relaxed) == nullptr && LooksEmpty(std::memory_order_relaxed)) return nullptr;
    if (!lock_.TryLock()) return nullptr;
    Node* const node = PopLocked();
    lock_.Unlock();
    return node;
  }

  bool IsEmptyForParking() const { return LooksEmpty(std::memory_order_seq_cst); }

  // More or less, for metrics and for workers that have something else to do.
  size_t SizeHint() const {
    const size_t popped = popped_.load(std::memory_order_relaxed);
    const size_t size = size_.load(std::memory_order_relaxed);
    return size > popped ? size - popped : 0;
  }
  // Not zero if there is anything, while nobody pushes. How many there are is not said.
  const typename Atomics::template Atomic<size_t>& count() const { return size_; }

 private:
  using Membership = BasicReadyMembership<Atomics>;

  // In this order: what has left the stack is being moved, or is in the outgoing list. Who sees the stack without it
  // sees that it is being moved, or acquires the outgoing list as it was afterwards.
  bool LooksEmpty(std::memory_order order) const {
    return pushed_.load(order) == nullptr && !moving_.load(std::memory_order_acquire) &&
           outgoing_.load(std::memory_order_relaxed) == nullptr;
  }

  Node* PopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Node* node = outgoing_.load(std::memory_order_relaxed);
    if (node != nullptr) {
      outgoing_.store(Membership::next(*node), std::memory_order_relaxed);
    } else {
      moving_.store(true, std::memory_order_relaxed);
      // Acquires what the pushes released, all of which the stack's head carries on, and releases the line above.
      for (Node* newest = pushed_.exchange(nullptr, std::memory_order_acq_rel); newest != nullptr;) {
        Node* const older = Membership::next(*newest);
        Membership::set_next(*newest, node);
        node = newest;
        newest = older;
      }
      if (node != nullptr) outgoing_.store(Membership::next(*node), std::memory_order_relaxed);
      moving_.store(false, std::memory_order_release);
      if (node == nullptr) return nullptr;
    }
    CountPop(/*is_last=*/Membership::next(*node) == nullptr);
    return node;
  }

  // Those of one turn together: to write to size_ is to take the line away from who pushes.
  void CountPop(bool is_last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const size_t popped = popped_.load(std::memory_order_relaxed) + 1;
    popped_.store(is_last ? 0 : popped, std::memory_order_relaxed);
    if (is_last) size_.fetch_sub(popped, std::memory_order_relaxed);
  }

  // Newest first. Released by a push, acquired by the pop that takes all.
  alignas(64) typename Atomics::template Atomic<Node*> pushed_{nullptr};
  // Those in the stack and all of the last turn. Counts, orders nothing.
  typename Atomics::template Atomic<size_t> size_{0};
  // Oldest first. Written under the lock; looked at without it.
  alignas(64) typename Atomics::template Atomic<Node*> outgoing_{nullptr};
  // Of the last turn; what size_ does not know yet. Written under the lock. Counts, orders nothing.
  typename Atomics::template Atomic<size_t> popped_{0};
  // True while nodes are in neither: a worker that looks then must not take the queue for empty and sleep. Released by
  // the exchange of pushed_ and by the end of the move, acquired by LooksEmpty.
  typename Atomics::template Atomic<bool> moving_{false};
  Lock lock_;
};

using InjectionQueue = BasicInjectionQueue<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INJECTION_QUEUE_H_
