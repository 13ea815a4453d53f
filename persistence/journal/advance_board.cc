#include "fraktor/persistence/journal/advance_board.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

Future<uint64_t> AdvanceBoard::Wait(const JournalSubject& subject, uint64_t after) {
  MutexLock lock(mutex_);
  if (!closed_.ok()) return MakeReadyFuture<uint64_t>(closed_);
  if (waiters_.load(std::memory_order_relaxed) >= max_waiters_) DropCancelled();
  if (waiters_.load(std::memory_order_relaxed) >= max_waiters_) {
    return MakeReadyFuture<uint64_t>(MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kOverloaded,
                                               absl::StrCat(max_waiters_,
                                                            " live queries wait already; end some, or raise the "
                                                            "journal's max_live_queries")));
  }
  auto [promise, future] = MakePromise<uint64_t>();
  subjects_[Key(subject.kind, subject.name)].push_back({after, std::move(promise)});
  waiters_.fetch_add(1, std::memory_order_acq_rel);
  return std::move(future);
}

void AdvanceBoard::Publish(const JournalSubject& subject, uint64_t number) {
  std::vector<Waiter> reached;
  {
    MutexLock lock(mutex_);
    const auto found = subjects_.find(Key(subject.kind, subject.name));
    if (found == subjects_.end()) return;
    std::vector<Waiter>& waiters = found->second;
    const auto others = std::stable_partition(waiters.begin(), waiters.end(),
                                              [number](const Waiter& waiter) { return waiter.after >= number; });
    reached.assign(std::move_iterator(others), std::move_iterator(waiters.end()));
    waiters.erase(others, waiters.end());
    if (waiters.empty()) subjects_.erase(found);
    waiters_.fetch_sub(reached.size(), std::memory_order_acq_rel);
  }
  for (Waiter& waiter : reached) waiter.promise.Set(number);
}

void AdvanceBoard::Close(absl::Status reason) {
  std::map<Key, std::vector<Waiter>> left;
  {
    MutexLock lock(mutex_);
    closed_ = reason;
    left.swap(subjects_);
    waiters_.exchange(0, std::memory_order_acq_rel);
  }
  for (auto& [key, waiters] : left) {
    for (Waiter& waiter : waiters) waiter.promise.Set(reason);
  }
}

void AdvanceBoard::DropCancelled() {
  size_t left = 0;
  for (auto it = subjects_.begin(); it != subjects_.end();) {
    std::vector<Waiter>& waiters = it->second;
    waiters.erase(std::remove_if(waiters.begin(), waiters.end(),
                                 [](const Waiter& waiter) { return waiter.promise.IsCancelled(); }),
                  waiters.end());
    left += waiters.size();
    it = waiters.empty() ? subjects_.erase(it) : std::next(it);
  }
  waiters_.exchange(left, std::memory_order_acq_rel);
}

}  // namespace fraktor::inline v0
