// DeferredTarget: an actor that a worker schedules only when its current handler ends. Another
// thread steals it if the handler takes too long.
//
//   deferred.Put(&slot);                                  // the worker, which holds the mailbox
//   ActorSlot* mine = deferred.Take();                    // the worker, later; null: it was stolen
//   ActorSlot* stolen = deferred.Steal(deferred.Peek());  // any other thread
//
// Put and Take happen for nearly every message, Steal almost never. So the worker pays two stores
// and a load, and the thief pays for the order between them. It sets `wanted_`, has the kernel run
// a barrier on every core that runs a thread of this process (membarrier), and then reads the
// target. Either that read sees the worker's Take, or the worker sees `wanted_` and settles the
// matter under a lock. On a kernel without that barrier, both sides use exchanges.
//
// Called by: the outbox of a worker (Put, Take) and WorkerWatch (Steal).
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_DEFERRED_TARGET_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_DEFERRED_TARGET_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/queue/internal/atomics.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

class ActorSlot;

// How the two sides are ordered.
enum class DeferralOrder : bool {
  kExchange,  // By read-modify-writes of both sides.
  kBarrier,   // By a barrier that the thief runs on all cores.
};

// kBarrier if the kernel supports it.
DeferralOrder BestDeferralOrder();

// An asymmetric barrier: Light costs nothing, Heavy is expensive. A Light of one thread and a Heavy
// of another order memory as if both were full barriers.
class ProcessBarrier {
 public:
  // Keeps the compiler from moving accesses past it. Heavy keeps the processor from it.
  static void Light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  // Runs a full barrier on every core that runs a thread of this process. False if the kernel
  // refuses.
  static bool Heavy();
};

// `Lock` has the methods Lock and Unlock.
template <typename Atomics = utils_internal::StdAtomics, typename Lock = Mutex, typename Barrier = ProcessBarrier>
class BasicDeferredTarget {
 public:
  explicit BasicDeferredTarget(DeferralOrder order = BestDeferralOrder()) : order_(order) {}
  BasicDeferredTarget(const BasicDeferredTarget&) = delete;
  BasicDeferredTarget& operator=(const BasicDeferredTarget&) = delete;

  // Methods for the worker.

  bool empty() const { return mine() == nullptr; }
  // The target of the last Put, even if it was stolen meanwhile; null after Take.
  ActorSlot* mine() const { return mine_; }

  // Must be empty.
  void Put(ActorSlot* slot) {
    mine_ = slot;
    shown_.store(slot, std::memory_order_release);
  }

  // Returns the target; null if it was stolen, or there is none.
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

  // Methods for other threads.

  // The current target, or null. The caller may compare it and pass it to Steal, but must not
  // dereference it.
  ActorSlot* Peek() const { return shown_.load(std::memory_order_relaxed); }

  // Takes the target away if it is still `seen`: the caller holds its mailbox then. Null otherwise.
  ActorSlot* Steal(ActorSlot* seen);

 private:
  ActorSlot* StealLocked(ActorSlot* seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ActorSlot* Settle(ActorSlot* slot);

  const DeferralOrder order_;
  [[no_unique_address]] Barrier barrier_;
  typename Atomics::template Plain<ActorSlot*> mine_{nullptr};  // Used by the worker only.
  // The target, for other threads. The release of Put pairs with the acquire of Steal, which sees
  // what the worker has written to the slot as the holder of its mailbox. With kExchange, the
  // thread whose exchange removes the target has it; Take is relaxed, since it gets back only what
  // the worker itself has written. With kBarrier, the barrier orders Take and Steal.
  typename Atomics::template Atomic<ActorSlot*> shown_{nullptr};
  // Set by a thief: Take calls Settle while it is set. It stays set after a theft until the worker
  // has seen the theft. Relaxed: the barrier orders it.
  typename Atomics::template Atomic<bool> wanted_{false};
  Lock mutex_;
  typename Atomics::template Plain<ActorSlot*> stolen_ ABSL_GUARDED_BY(mutex_){nullptr};
};

using DeferredTarget = BasicDeferredTarget<>;

// Definitions only from here on.

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
  // The worker has not seen the last theft yet: `shown_` still is the stolen target.
  if (stolen_ != nullptr) return nullptr;
  wanted_.store(true, std::memory_order_relaxed);
  // Without the barrier the thief cannot know whether the worker has taken the target, so it takes
  // nothing.
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
  // If nothing was stolen, the thief came too late, or has yet to read `shown_` and will find null.
  const bool was_stolen = stolen_ != nullptr;
  if (was_stolen) {
    stolen_ = nullptr;
    wanted_.store(false, std::memory_order_relaxed);
  }
  mutex_.Unlock();
  return was_stolen ? nullptr : slot;
}

extern template class BasicDeferredTarget<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_DEFERRED_TARGET_H_
