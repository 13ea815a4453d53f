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
#ifndef FRAKTOR_ACTOR_SEND_DEFERRED_TARGET_H_
#define FRAKTOR_ACTOR_SEND_DEFERRED_TARGET_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/queue/atomics.h"
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

// A barrier of which one side costs nothing: what a thread does before and after its Light is ordered, for a thread
// that has run Heavy, as if both had run a full one.
class ProcessBarrier {
 public:
  // Keeps the compiler from moving anything past it; the processor is kept from it by Heavy.
  static void Light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // Runs a full barrier on every core that runs a thread of this process. False if there was none.
  static bool Heavy();
};

// Lock has Lock and Unlock.
template <typename Atomics = StdAtomics, typename Lock = Mutex, typename Barrier = ProcessBarrier>
class BasicDeferredTarget {
 public:
  explicit BasicDeferredTarget(DeferralOrder order = BestDeferralOrder()) : order_(order) {}
  BasicDeferredTarget(const BasicDeferredTarget&) = delete;
  BasicDeferredTarget& operator=(const BasicDeferredTarget&) = delete;

  // For the worker.

  bool empty() const { return mine() == nullptr; }
  // What was put, whether it was stolen meanwhile or not; null if nothing was.
  ActorSlot* mine() const { return mine_; }

  // Only while it is empty.
  void Put(ActorSlot* slot) {
    mine_ = slot;
    shown_.store(slot, std::memory_order_release);
  }

  // Null if it was stolen, or empty.
  ActorSlot* Take() {
    ActorSlot* const slot = mine_;
    mine_ = nullptr;
    if (order_ == DeferralOrder::kExchange) [[unlikely]] {
      return slot == nullptr ? nullptr : shown_.exchange(nullptr, std::memory_order_relaxed);
    }
    shown_.store(nullptr, std::memory_order_relaxed);
    barrier_.Light();
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
  ActorSlot* StealLocked(ActorSlot* seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ActorSlot* Settle(ActorSlot* slot);

  const DeferralOrder order_;
  [[no_unique_address]] Barrier barrier_;
  typename Atomics::template Plain<ActorSlot*> mine_{nullptr};  // The worker's.
  // What the worker has put off. The release of Put pairs with the acquire of Steal: what the worker wrote to the slot
  // as the holder of its mailbox. With kExchange, who takes it out has it; Take gets back only what the worker has
  // written itself. With kBarrier, Take is ordered with Steal by the barrier.
  typename Atomics::template Atomic<ActorSlot*> shown_{nullptr};
  // Set by a thief; from then on Take goes to Settle. Stays set after a theft until the worker has seen it. Ordered by
  // the barrier.
  typename Atomics::template Atomic<bool> wanted_{false};
  Lock mutex_;
  typename Atomics::template Plain<ActorSlot*> stolen_ ABSL_GUARDED_BY(mutex_){nullptr};
};

using DeferredTarget = BasicDeferredTarget<>;

// Only definitions from here on.

template <typename Atomics, typename Lock, typename Barrier>
ActorSlot* BasicDeferredTarget<Atomics, Lock, Barrier>::Steal(ActorSlot* seen) {
  if (seen == nullptr) return nullptr;
  if (order_ == DeferralOrder::kExchange) {
    return shown_.compare_exchange_strong(seen, nullptr, std::memory_order_acquire, std::memory_order_relaxed)
               ? seen
               : nullptr;
  }
  mutex_.Lock();
  ActorSlot* const stolen = StealLocked(seen);
  mutex_.Unlock();
  return stolen;
}

template <typename Atomics, typename Lock, typename Barrier>
ActorSlot* BasicDeferredTarget<Atomics, Lock, Barrier>::StealLocked(ActorSlot* seen) {
  // The worker has not seen the last theft yet: what it shows is what was stolen then.
  if (stolen_ != nullptr) return nullptr;
  wanted_.store(true, std::memory_order_relaxed);
  // Without the barrier nobody knows whether the worker has taken it: it stays where it is.
  if (!barrier_.Heavy() || shown_.load(std::memory_order_acquire) != seen) {
    wanted_.store(false, std::memory_order_relaxed);
    return nullptr;
  }
  stolen_ = seen;
  return seen;
}

template <typename Atomics, typename Lock, typename Barrier>
ActorSlot* BasicDeferredTarget<Atomics, Lock, Barrier>::Settle(ActorSlot* slot) {
  mutex_.Lock();
  // If nothing was stolen, the thief came too late, or has not looked yet and will find nothing.
  const bool was_stolen = stolen_ != nullptr;
  if (was_stolen) {
    stolen_ = nullptr;
    wanted_.store(false, std::memory_order_relaxed);
  }
  mutex_.Unlock();
  return was_stolen ? nullptr : slot;
}

extern template class BasicDeferredTarget<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_DEFERRED_TARGET_H_
