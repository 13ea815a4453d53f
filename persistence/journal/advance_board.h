// AdvanceBoard: where a store says that something has come, and live queries wait for it.
//
//   Future<uint64_t> advance = board.Wait(JournalSubject::OfTag("red"), after);   // first
//   board.Publish(JournalSubject::OfTag("red"), HighestStored("red"));            // then what may have come before
//   ...
//   if (board.HasWaiters()) board.Publish(subject, number);                      // after each commit
//
// Waiting first and looking second leaves no gap: whatever is committed after the look is published
// to the waiter.
//
// Thread safety: all methods may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_ADVANCE_BOARD_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_ADVANCE_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class AdvanceBoard {
 public:
  explicit AdvanceBoard(size_t max_waiters = 65'536) : max_waiters_(max_waiters) {}

  // Completes with the first number above `after` that is published for the subject. kOverloaded if
  // max_waiters wait, those not counted that have given up; kClosed after Close.
  Future<uint64_t> Wait(const JournalSubject& subject, uint64_t after);

  // Whether a Publish could reach somebody. After the commit: see waiters_.
  bool HasWaiters() { return waiters_.fetch_add(0, std::memory_order_acq_rel) > 0; }
  // The same, cheaper, for who commits under the lock under which those who wait look: either the
  // look comes later and sees the commit, or it came before, and the waiter with it. Relaxed, since
  // the lock orders it.
  bool MayHaveWaiters() const { return waiters_.load(std::memory_order_relaxed) > 0; }

  void Publish(const JournalSubject& subject, uint64_t number);

  // Completes all with `reason`, and those that come later too.
  void Close(absl::Status reason);

 private:
  using Key = std::pair<JournalSubject::Kind, std::string>;
  struct Waiter {
    uint64_t after;
    Promise<uint64_t> promise;
  };

  void DropCancelled() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_waiters_;
  // Written under the lock, and by HasWaiters, which changes nothing: all are read-modify-writes
  // and therefore in one order. Either the committer's comes later and sees the waiter, or the
  // waiter's in Wait comes later, reads from the committer's, and the look that follows sees the
  // commit.
  std::atomic<size_t> waiters_ = 0;
  Mutex mutex_;
  // Ordered, so that a simulation repeats.
  std::map<Key, std::vector<Waiter>> subjects_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_ADVANCE_BOARD_H_
