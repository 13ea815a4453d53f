// An actor that a worker has to make ready and puts off until its handler ends, and how others take it away from a
// worker that does not come to the end.
//
//   deferred.Put(&slot);                            // the worker
//   ...                                             // the rest of the handler
//   if (ActorSlot* slot = deferred.Take()) ...      // null: somebody else has made it ready
//
//   if (ActorSlot* slot = deferred.Steal(seen)) ... // any other thread, which has seen it there for too long
//
// Put and Take happen for nearly every message, Steal almost never. So the worker pays two stores and a load, and the
// thief pays for the order between them: it says that it wants something, has the kernel run a barrier on every core
// that runs a thread of this process (membarrier), and then looks. Either the worker's Take is seen by that look, or
// the worker sees the wish and settles it under a lock. Where the kernel does not do that, both exchange.
#ifndef FRAKTOR_ACTOR_TURN_DEFERRED_TARGET_H_
#define FRAKTOR_ACTOR_TURN_DEFERRED_TARGET_H_

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class ActorSlot;

// How the two sides are ordered.
enum class DeferralOrder : bool {
  kExchange,  // By read-modify-writes of both.
  kBarrier,   // By a barrier that the thief makes everybody run.
};

// kBarrier if this kernel can.
DeferralOrder BestDeferralOrder();

class DeferredTarget {
 public:
  explicit DeferredTarget(DeferralOrder order = BestDeferralOrder()) : order_(order) {}
  DeferredTarget(const DeferredTarget&) = delete;
  DeferredTarget& operator=(const DeferredTarget&) = delete;

  // For the worker.

  bool empty() const { return mine_ == nullptr; }

  // Only while it is empty.
  void Put(ActorSlot* slot) {
    mine_ = slot;
    shown_.store(slot, std::memory_order_release);
  }

  // Null if it was stolen, or empty.
  ActorSlot* Take() {
    ActorSlot* const slot = std::exchange(mine_, nullptr);
    if (order_ == DeferralOrder::kExchange) [[unlikely]] {
      return slot == nullptr ? nullptr : shown_.exchange(nullptr, std::memory_order_acquire);
    }
    shown_.store(nullptr, std::memory_order_relaxed);
    // Keeps the compiler from moving the load up; the processor is kept from it by the thief's barrier.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (wanted_.load(std::memory_order_relaxed)) [[unlikely]]
      return Settle(slot);
    return slot;
  }

  // For others.

  // What the worker has put off at this moment, or null: to be compared with what Steal is given, not to be touched.
  ActorSlot* Peek() const { return shown_.load(std::memory_order_relaxed); }

  // Takes `seen` away if it is still there. The caller holds its mailbox then.
  ActorSlot* Steal(ActorSlot* seen);

 private:
  ActorSlot* Settle(ActorSlot* slot);

  const DeferralOrder order_;
  ActorSlot* mine_ = nullptr;  // The worker's.
  // What the worker has put off. The release of Put pairs with the acquire of Steal: what the worker wrote to the slot
  // as the holder of its mailbox.
  std::atomic<ActorSlot*> shown_{nullptr};
  // Set by a thief; from then on Take goes to Settle. Stays set after a theft until the worker has seen it.
  std::atomic<bool> wanted_{false};
  Mutex mutex_;
  ActorSlot* stolen_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_DEFERRED_TARGET_H_
