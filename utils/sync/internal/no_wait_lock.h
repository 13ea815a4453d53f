// NoWaitLock: a lock that no thread waits for. A thread that does not get it does something else.
//
//   NoWaitLock lock;
//   if (lock.TryLock()) {
//     Trim(pool);            // one thread at a time; the others skip it
//     lock.Unlock();
//   }
//
// It costs half as much as a Mutex, since there is no waiter to wake: TryLock and Unlock together
// are one read-modify-write. Clang's thread safety analysis and ThreadSanitizer understand it.
//
// Thread safety: any thread may call TryLock. Only the thread that holds the lock may call Unlock.
#ifndef FRAKTOR_UTILS_SYNC_INTERNAL_NO_WAIT_LOCK_H_
#define FRAKTOR_UTILS_SYNC_INTERNAL_NO_WAIT_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"

namespace fraktor::inline v0::utils_internal {

class ABSL_LOCKABLE NoWaitLock {
 public:
  // Returns true if the caller holds the lock now.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return !locked_.exchange(true, std::memory_order_acquire); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { locked_.store(false, std::memory_order_release); }

 private:
  // The release of Unlock pairs with the acquire of the next TryLock.
  std::atomic<bool> locked_{false};
};

}  // namespace fraktor::inline v0::utils_internal

#endif  // FRAKTOR_UTILS_SYNC_INTERNAL_NO_WAIT_LOCK_H_
