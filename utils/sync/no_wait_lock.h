// A lock that nobody waits for: who does not get it at once does something else.
//
//   if (lock.TryLock()) {
//     ... what it guards ...
//     lock.Unlock();
//   }
//
// Half the price of a Mutex, since nobody has to be woken: one read-modify-write for both calls. Understood by clang's
// thread safety analysis and by ThreadSanitizer.
//
// Thread safety: TryLock from any thread, Unlock by who has the lock.
#ifndef FRAKTOR_UTILS_SYNC_NO_WAIT_LOCK_H_
#define FRAKTOR_UTILS_SYNC_NO_WAIT_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

namespace fraktor::inline v0 {

class ABSL_LOCKABLE NoWaitLock {
 public:
  // True: the caller has the lock.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return !locked_.exchange(true, std::memory_order_acquire); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { locked_.store(false, std::memory_order_release); }

 private:
  // The release of Unlock pairs with the acquire of the next TryLock.
  std::atomic<bool> locked_{false};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_SYNC_NO_WAIT_LOCK_H_
