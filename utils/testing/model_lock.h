// ModelLock: a lock under the model checker, for code that is a template over its lock.
//
//   template <typename Atomics, typename Lock>
//   class BasicCounter {
//    public:
//     void Add(int n) {
//       lock_.Lock();
//       sum_ = sum_ + n;
//       lock_.Unlock();
//     }
//
//    private:
//     Lock lock_;
//     typename Atomics::template Plain<int> sum_{0};
//   };
//   using Counter = BasicCounter<StdAtomics, Mutex>;
//   using ModelCounter = BasicCounter<ModelAtomics, ModelLock>;       // only inside CheckInterleavings
//
// Thread safety: the model threads of one CheckInterleavings use it.
#ifndef FRAKTOR_UTILS_TESTING_MODEL_LOCK_H_
#define FRAKTOR_UTILS_TESTING_MODEL_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_atomic.h"

namespace fraktor::inline v0 {

// Has the interface of Mutex.
class ABSL_LOCKABLE ModelLock {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    while (!TryLock()) ModelYield();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    bool locked = false;
    return locked_.compare_exchange_strong(locked, true, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() { locked_.store(false, std::memory_order_release); }

 private:
  ModelAtomic<bool> locked_{false};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_MODEL_LOCK_H_
