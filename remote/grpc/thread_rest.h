// ThreadRest: keeps one of several threads that poll for the same events away from them for a moment.
//
//   ThreadRest rest(absl::Milliseconds(5));
//   rest.Try();                                        // by a thread that is done, and would poll again
//   rest.End();                                        // by another one that could use help
//
// Of two threads that poll, the one that gets an event first wakes the other to poll in its place, and only then looks at
// what has come. For small messages that come one at a time the waking takes longer than all the rest. A single thread
// that polls has nobody to wake.
//
// One thread rests at a time, so that of two there is always one left. A rest is short: that is how long events may wait
// if the other thread is kept by something meanwhile. When nothing comes, nobody begins a rest, and no time is taken.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_GRPC_THREAD_REST_H_
#define FRAKTOR_REMOTE_GRPC_THREAD_REST_H_

#include <atomic>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class ThreadRest {
 public:
  explicit ThreadRest(absl::Duration longest) : longest_(longest) {}
  ThreadRest(const ThreadRest&) = delete;
  ThreadRest& operator=(const ThreadRest&) = delete;

  // Rests until End, and not longer than the longest. False, at once: another thread rests.
  bool Try();
  // Ends a rest that has begun. Takes no lock if there is none.
  void End();

  bool is_taken() const { return is_taken_.load(std::memory_order_relaxed); }

 private:
  const absl::Duration longest_;
  // Decides who rests, and orders nothing: an End that does not see a rest leaves it to its limit.
  std::atomic<bool> is_taken_{false};
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_THREAD_REST_H_
