// CoreHandle and Section: how everything that comes from outside gets at a node's RemotingCore, which may have ended.
//
//   Section section(handle);                           // locks
//   if (section.core() == nullptr) return;             // the system has ended
//   section.core()->Send(...);                         // may add what is to be done later: section.Later([...] { ... });
//   // the end of the section unlocks, and then does that: events, dead letters, deliveries
//
// References to remote actors, streams and timers hold the handle, which lives as long as the process; the core lives as
// long as its system. Nothing of a user runs with the lock, so whatever it does cannot come back to it.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_

#include <condition_variable>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class RemotingCore;

struct CoreHandle {
  Mutex mutex;
  RemotingCore* core ABSL_GUARDED_BY(mutex) ABSL_PT_GUARDED_BY(mutex) = nullptr;
  // Sections that have unlocked and are still busy with what was to be done later; the core waits for them.
  int busy ABSL_GUARDED_BY(mutex) = 0;
  std::condition_variable_any idle;
};

class ABSL_SCOPED_LOCKABLE Section {
 public:
  explicit Section(CoreHandle& handle) ABSL_EXCLUSIVE_LOCK_FUNCTION(handle.mutex) : handle_(handle) {
    handle_.mutex.Lock();
  }
  ~Section() ABSL_UNLOCK_FUNCTION() {
    if (later_.empty()) {
      handle_.mutex.Unlock();
      return;
    }
    Enter();
    handle_.mutex.Unlock();
    for (auto& task : later_) std::move(task)();
    Leave();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  // Null if the system has ended.
  RemotingCore* core() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return handle_.core; }

  // Without the lock, in order.
  void Later(absl::AnyInvocable<void() &&> task) { later_.push_back(std::move(task)); }

 private:
  void Enter() ABSL_NO_THREAD_SAFETY_ANALYSIS { ++handle_.busy; }
  void Leave() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    handle_.mutex.Lock();
    --handle_.busy;
    handle_.mutex.Unlock();
    handle_.idle.notify_all();
  }

  CoreHandle& handle_;
  absl::InlinedVector<absl::AnyInvocable<void() &&>, 2> later_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_
