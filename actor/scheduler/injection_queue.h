// Where threads that have no ring of their own put ready actors: any number of them push, workers pop, first in first
// out.
//
// A push is one compare-exchange on a stack. A worker that finds the outgoing list empty turns the whole stack round
// into it, under a lock that only workers take and never wait for.
#ifndef FRAKTOR_ACTOR_SCHEDULER_INJECTION_QUEUE_H_
#define FRAKTOR_ACTOR_SCHEDULER_INJECTION_QUEUE_H_

#include <atomic>
#include <cstddef>

#include "absl/base/thread_annotations.h"

#include "fraktor/actor/scheduler/ready_queue_coordinator.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class InjectionQueue {
 public:
  // Sequentially consistent, so that who pushes and then looks for sleepers, and who says that it sleeps and then looks
  // at LooksEmpty, do not miss each other.
  void Push(ReadyNode* node) {
    size_.fetch_add(1, std::memory_order_relaxed);
    ReadyNode* top = pushed_.load(std::memory_order_relaxed);
    do {
      ReadyMembership::set_next(*node, top);
    } while (!pushed_.compare_exchange_weak(top, node, std::memory_order_seq_cst, std::memory_order_relaxed));
  }

  // Null if there is nothing, or if another worker is popping at this moment: that one will not sleep without another
  // look.
  ReadyNode* TryPop() {
    if (LooksEmpty(std::memory_order_relaxed)) return nullptr;
    if (!mutex_.TryLock()) return nullptr;
    ReadyNode* const node = PopLocked();
    mutex_.Unlock();
    if (node != nullptr) size_.fetch_sub(1, std::memory_order_relaxed);
    return node;
  }

  bool IsEmptyForParking() const { return LooksEmpty(std::memory_order_seq_cst); }

  // More or less, for metrics.
  size_t SizeHint() const { return size_.load(std::memory_order_relaxed); }

 private:
  // In this order: what has left the stack is being moved, or is in the outgoing list.
  bool LooksEmpty(std::memory_order order) const {
    return pushed_.load(order) == nullptr && !moving_.load(order) && outgoing_.load(order) == nullptr;
  }

  ReadyNode* PopLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ReadyNode* node = outgoing_.load(std::memory_order_relaxed);
    if (node != nullptr) {
      outgoing_.store(ReadyMembership::next(*node), std::memory_order_relaxed);
    } else {
      moving_.store(true, std::memory_order_seq_cst);
      // Acquires what the pushes released, all of which the stack's head carries on.
      for (ReadyNode* newest = pushed_.exchange(nullptr, std::memory_order_seq_cst); newest != nullptr;) {
        ReadyNode* const older = ReadyMembership::next(*newest);
        ReadyMembership::set_next(*newest, node);
        node = newest;
        newest = older;
      }
      if (node != nullptr) outgoing_.store(ReadyMembership::next(*node), std::memory_order_seq_cst);
      moving_.store(false, std::memory_order_seq_cst);
    }
    return node;
  }

  // Newest first. Released by a push, acquired by the pop that takes all.
  alignas(64) std::atomic<ReadyNode*> pushed_{nullptr};
  // Oldest first. Written under the lock; looked at without it.
  alignas(64) std::atomic<ReadyNode*> outgoing_{nullptr};
  // True while nodes are in neither: a worker that looks then must not take the queue for empty and sleep.
  std::atomic<bool> moving_{false};
  // Counts, orders nothing.
  std::atomic<size_t> size_{0};
  Mutex mutex_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_INJECTION_QUEUE_H_
