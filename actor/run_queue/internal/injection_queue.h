// InjectionQueue: the queue of ready actors for threads that have no ring of their own. Any thread
// pushes; workers pop, first in, first out. BasicStealingQueues has two: one for foreign threads,
// one for the overflow of full rings.
//
// A push of one or many nodes is one compare-exchange on a stack. A worker that finds the outgoing
// list empty reverses the whole stack into it, under a lock that only workers take and for which
// they never wait. Pushers and poppers write to different cache lines, except once per reversal.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_INJECTION_QUEUE_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_INJECTION_QUEUE_H_

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/internal/no_wait_lock.h"

namespace fraktor::inline v0::actor_internal {

// Lock has TryLock and Unlock.
template <typename Atomics = utils_internal::StdAtomics, typename Lock = utils_internal::NoWaitLock>
class BasicInjectionQueue {
 public:
  using Node = BasicReadyNode<Atomics>;

  // Sequentially consistent: a thread that pushes and then looks for sleepers, and a worker that
  // counts itself as sleeping and then calls IsEmptyForParking, do not miss each other.
  void Push(Node* node) { PushAll(absl::MakeSpan(&node, 1)); }

  // Pushes several nodes, at least one, which are popped in this order.
  void PushAll(absl::Span<Node* const> nodes) {
    size_.fetch_add(nodes.size(), std::memory_order_relaxed);
    for (size_t i = 1; i < nodes.size(); ++i) Membership::set_next(*nodes[i], nodes[i - 1]);
    Node* top = pushed_.load(std::memory_order_relaxed);
    do {
      Membership::set_next(*nodes.front(), top);
    } while (!pushed_.compare_exchange_weak(top, nodes.back(), std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  // Returns null if the queue is empty, or if another worker is popping at this moment. That worker
  // looks at the queue again before it sleeps.
  Node* TryPop() {
    // The first load is usually enough. It does not touch the cache line that others push to.
    if (outgoing_.load(std::memory_order_relaxed) == nullptr && LooksEmpty(std::memory_order_relaxed)) return nullptr;
    if (!lock_.TryLock()) return nullptr;
    Node* const node = PopLocked();
    lock_.Unlock();
    return node;
  }

  bool IsEmptyForParking() const { return LooksEmpty(std::memory_order_seq_cst); }

  // Returns the approximate number of nodes, for metrics and for workers that have other work.
  size_t SizeHint() const {
    const size_t popped = popped_.load(std::memory_order_relaxed);
    const size_t size = size_.load(std::memory_order_relaxed);
    return size > popped ? size - popped : 0;
  }
  // Not zero if the queue has nodes, unless a push is under way. It is not their number.
  const typename Atomics::template Atomic<size_t>& count() const { return size_; }

 private:
  using Membership = BasicReadyMembership<Atomics>;

  // The order of the loads matters. A node that has left the stack is being moved or is in the
  // outgoing list. A thread that sees the stack without the node sees that it is being moved, or
  // acquires the outgoing list with it.
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
      // Acquires the nodes that pushes have released; each push continues the release sequence of
      // the head. Releases the store above.
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

  // Subtracts all nodes of one reversal at once: a write to size_ takes the cache line from the
  // threads that push.
  void CountPop(bool is_last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const size_t popped = popped_.load(std::memory_order_relaxed) + 1;
    popped_.store(is_last ? 0 : popped, std::memory_order_relaxed);
    if (is_last) size_.fetch_sub(popped, std::memory_order_relaxed);
  }

  // The stack, newest first. A push releases it; the pop that takes the whole stack acquires it.
  alignas(64) typename Atomics::template Atomic<Node*> pushed_{nullptr};
  // The number of nodes in the stack and in the last reversal. Relaxed: it orders nothing.
  typename Atomics::template Atomic<size_t> size_{0};
  // The outgoing list, oldest first. Written under the lock, read also without it.
  alignas(64) typename Atomics::template Atomic<Node*> outgoing_{nullptr};
  // The number of nodes of the last reversal that were popped; size_ still contains them. Written
  // under the lock. Relaxed: it orders nothing.
  typename Atomics::template Atomic<size_t> popped_{0};
  // True while nodes are in neither list, so that a worker does not take the queue for empty and
  // sleep. The exchange of pushed_ and the end of the move release it; LooksEmpty acquires it.
  typename Atomics::template Atomic<bool> moving_{false};
  Lock lock_;
};

using InjectionQueue = BasicInjectionQueue<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_INJECTION_QUEUE_H_
