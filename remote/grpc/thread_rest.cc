#include "fraktor/remote/grpc/thread_rest.h"

namespace fraktor::inline v0 {

bool ThreadRest::Try() {
  if (is_taken_.exchange(true, std::memory_order_relaxed)) return false;
  MutexLock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(longest_), [this] {
    mutex_.AssertHeld();
    return has_ended_;
  });
  has_ended_ = false;
  // With the lock, as End looks again: one that comes late ends nothing, and not the next rest.
  is_taken_.store(false, std::memory_order_relaxed);
  return true;
}

void ThreadRest::End() {
  if (!is_taken()) return;
  MutexLock lock(mutex_);
  if (!is_taken()) return;
  has_ended_ = true;
  changed_.notify_all();
}

}  // namespace fraktor::inline v0
