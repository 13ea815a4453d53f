// A mutex that clang's thread safety analysis and ThreadSanitizer both understand.
//
//   class Counter {
//    public:
//     void Add(int n) {
//       MutexLock lock(mutex_);
//       sum_ += n;
//       changed_.notify_all();
//     }
//     void WaitFor(int n) {
//       MutexLock lock(mutex_);
//       changed_.wait(lock, [&] { mutex_.AssertHeld(); return sum_ >= n; });
//     }
//
//    private:
//     Mutex mutex_;
//     std::condition_variable_any changed_;        // from <condition_variable>
//     int sum_ ABSL_GUARDED_BY(mutex_) = 0;
//   };
//
// Why not absl::Mutex: an installed Abseil is not instrumented, and ThreadSanitizer then reports races in code that has
// none. std::mutex is intercepted by name, so it is right in every build.
#ifndef FRAKTOR_UTILS_SYNC_MUTEX_H_
#define FRAKTOR_UTILS_SYNC_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace fraktor::inline v0 {

// std::mutex with the annotations that make ABSL_GUARDED_BY checked under clang. Not recursive. All methods may be
// called from any thread.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // Tells the analysis, in a lambda that it cannot see through, that the caller holds the lock. Does nothing when the
  // program runs.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  std::mutex mutex_;
};

// Holds a Mutex for as long as it lives.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // What std::condition_variable_any calls while it waits. The lock is held again when wait() returns.
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }      // NOLINT(readability-identifier-naming)
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }  // NOLINT(readability-identifier-naming)

 private:
  Mutex& mutex_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_SYNC_MUTEX_H_
