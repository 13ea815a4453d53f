// A lock for code that is a template over its lock, under the model checker:
//
//   BasicInjectionQueue<ModelAtomics, ModelLock> queue;
//
// Thread safety: called by the model threads of one CheckInterleavings.
#ifndef FRAKTOR_UTILS_TESTING_MODEL_LOCK_H_
#define FRAKTOR_UTILS_TESTING_MODEL_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

#include "fraktor/utils/testing/interleaving.h"
#include "fraktor/utils/testing/model_atomic.h"

namespace fraktor::inline v0 {

// As Mutex.
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
