// CoreHandle, Section and Visit: how everything that comes from outside gets at a node's RemotingCore, which may have
// ended.
//
//   Section section(handle);                           // locks
//   if (section.core() == nullptr) return;             // the system has ended
//   section.core()->Tick(section);                     // may add what is to be done later: section.Later([...] { ... });
//   // the end of the section unlocks, and then does that: frames, events, dead letters, deliveries
//
//   Visit visit(handle);                               // locks nothing; the system does not end meanwhile
//   if (visit.node() == nullptr) return;
//   visit.node()->codecs ...
//
// References to remote actors, streams and timers hold the handle, which lives as long as the process; the core lives as
// long as its system. Nothing of a user runs with the lock: codecs run during a Visit, listeners and log sinks after a
// Section, so whatever they do cannot come back to the lock.
//
// Thread safety: any thread.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_

#include <atomic>
#include <condition_variable>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"

#include "fraktor/remote/transport/transport.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class RemotingCore;
struct LocalNode;

struct CoreHandle {
  Mutex mutex;
  RemotingCore* core ABSL_GUARDED_BY(mutex) ABSL_PT_GUARDED_BY(mutex) = nullptr;
  // Sections that have unlocked and are still busy with what was to be done later; the core waits for them.
  int busy ABSL_GUARDED_BY(mutex) = 0;
  std::condition_variable_any idle;

  // Null when the system has ended. Pairs with `visitors`: who visits counts itself and then looks at the node, who ends
  // it takes the node away and then looks at the count, all sequentially consistent, so one of them sees the other.
  std::atomic<const LocalNode*> node{nullptr};
  std::atomic<int> visitors{0};
};

class Visit {
 public:
  explicit Visit(CoreHandle& handle) : handle_(handle) {
    handle_.visitors.fetch_add(1, std::memory_order_seq_cst);
    node_ = handle_.node.load(std::memory_order_seq_cst);
  }
  ~Visit() {
    if (handle_.visitors.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
    if (handle_.node.load(std::memory_order_seq_cst) != nullptr) return;
    // Who waits for it may be between its look and its sleep: the lock makes sure that it sleeps.
    const MutexLock lock(handle_.mutex);
    handle_.idle.notify_all();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Null if the system has ended.
  const LocalNode* node() const { return node_; }

 private:
  CoreHandle& handle_;
  const LocalNode* node_;
};

class ABSL_SCOPED_LOCKABLE Section {
 public:
  explicit Section(CoreHandle& handle) ABSL_EXCLUSIVE_LOCK_FUNCTION(handle.mutex) : handle_(handle) {
    handle_.mutex.Lock();
  }
  ~Section() ABSL_UNLOCK_FUNCTION() {
    if (later_.empty() && writes_.empty()) {
      handle_.mutex.Unlock();
      return;
    }
    Enter();
    handle_.mutex.Unlock();
    WriteFrames();
    RunLater();
    Leave();
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  // Null if the system has ended.
  RemotingCore* core() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return handle_.core; }

  // Without the lock, in order. A mailbox that is full does not hold it up, and what it throws is caught: a listener of a
  // user's must not end a thread of the transport's.
  void Later(absl::AnyInvocable<void() &&> task) { later_.push_back(std::move(task)); }

  // Writes a frame without the lock, before all that is done later: a transport may write at once, and who sends meanwhile
  // would wait for a system call. The caller sees to it that nobody else writes to the stream until it has been written.
  void Write(std::shared_ptr<OutboundStream> stream, std::string frame) {
    writes_.push_back({std::move(stream), std::move(frame)});
  }

 private:
  struct FrameToWrite {
    std::shared_ptr<OutboundStream> stream;
    std::string frame;
  };

  void WriteFrames();
  void RunLater();
  void Enter() ABSL_NO_THREAD_SAFETY_ANALYSIS { ++handle_.busy; }
  void Leave() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    handle_.mutex.Lock();
    --handle_.busy;
    handle_.mutex.Unlock();
    handle_.idle.notify_all();
  }

  CoreHandle& handle_;
  absl::InlinedVector<absl::AnyInvocable<void() &&>, 2> later_;
  absl::InlinedVector<FrameToWrite, 1> writes_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_CORE_HANDLE_H_
