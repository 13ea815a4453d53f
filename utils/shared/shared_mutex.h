// SharedMutex: a lock for many readers or one writer that clang's thread safety analysis and
// ThreadSanitizer both understand.
//
//   SharedMutex mutex;
//   Table table ABSL_GUARDED_BY(mutex);
//
//   { WriterMutexLock lock(mutex); table.Insert(key, value); }
//   { ReaderMutexLock lock(mutex); table.Find(key); }
//
// Not recursive, in any combination. Any thread may call all methods. For a single value,
// SharedAccess is safer: the value cannot be reached without the lock. If the work under the lock
// is short, the Mutex of utils/sync is faster even for readers.
#ifndef FRAKTOR_UTILS_SHARED_SHARED_MUTEX_H_
#define FRAKTOR_UTILS_SHARED_SHARED_MUTEX_H_

#include <shared_mutex>

#include "absl/base/thread_annotations.h"

namespace fraktor::inline v0 {

class ABSL_LOCKABLE SharedMutex {
 public:
  void WriterLock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void WriterUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mutex_.lock_shared(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds a SharedMutex as one of many readers for as long as it lives.
class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(SharedMutex& mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.ReaderLock(); }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Holds a SharedMutex as its only user for as long as it lives.
class ABSL_SCOPED_LOCKABLE WriterMutexLock {
 public:
  explicit WriterMutexLock(SharedMutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.WriterLock();
  }
  ~WriterMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.WriterUnlock(); }
  WriterMutexLock(const WriterMutexLock&) = delete;
  WriterMutexLock& operator=(const WriterMutexLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_SHARED_SHARED_MUTEX_H_
