// ReuseCount: a reference count of an object whose memory is reused but never freed.
//
// The owner fills the object and calls Open. A reader calls TryAcquire, uses the object, and calls
// Release. The owner calls Release when it is done. The thread whose Release returns true recycles
// the object.
//
// A thread may call TryAcquire with an old pointer, when the object already serves another owner.
// The call then succeeds, and the caller must check inside the object that it belongs to the owner
// that it wants.
//
// Thread safety: any thread; Open only by the thread that has the object for itself, after it was
// made or recycled.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_REUSE_COUNT_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_REUSE_COUNT_H_

#include <atomic>
#include <cstdint>

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::actor_internal {

template <typename Atomics = utils_internal::StdAtomics>
class BasicReuseCount {
 public:
  void Open() {
    // Release: pairs with the acquire of TryAcquire, so that a reader sees the filled object.
    count_.store(1, std::memory_order_release);
  }

  // False if the object has no owner.
  bool TryAcquire() {
    uint32_t count = count_.load(std::memory_order_relaxed);
    while (count != 0) {
      // Acquire: pairs with the release of Open, directly or through the increments since then.
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // True for the last one: it may change the object.
  // Acquire and release: pairs with itself. The last one sees that all others have finished
  // reading.
  bool Release() { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  // The owner counts as one. 0 means that the object is free.
  typename Atomics::template Atomic<uint32_t> count_{0};
};
using ReuseCount = BasicReuseCount<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_REUSE_COUNT_H_
