// Mutex: a lock that clang's thread safety analysis and ThreadSanitizer both understand.
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
// Why not absl::Mutex: an installed Abseil is not instrumented, so ThreadSanitizer reports races in
// code that has none. ThreadSanitizer intercepts std::mutex by name, in every build.
#ifndef FRAKTOR_UTILS_SYNC_MUTEX_H_
#define FRAKTOR_UTILS_SYNC_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace fraktor::inline v0 {

// A std::mutex with the annotations that let clang check ABSL_GUARDED_BY. Not recursive. Any thread
// may call all methods.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // Tells the analysis that the caller holds the lock, in a lambda that the analysis cannot see
  // through. Does nothing at run time.
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

  // std::condition_variable_any calls these while it waits. The lock is held again when wait()
  // returns.
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }      // NOLINT(readability-identifier-naming)
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }  // NOLINT(readability-identifier-naming)

 private:
  Mutex& mutex_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_SYNC_MUTEX_H_
