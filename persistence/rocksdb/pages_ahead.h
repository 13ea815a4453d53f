// PagesAhead: pages of replays that are read before they are asked for. Whoever has asked for one page of a long history
// asks for the next one soon, and the reader need not wait for that.
//
//   // A request.
//   if (std::optional<Future<EventBatch>> coming = pages.Await(request)) return *std::move(coming);
//   std::shared_ptr<PageAhead> page = pages.Take(request);              // null: it has to be read
//   // A reader, which has answered the page before.
//   if (std::shared_ptr<PageAhead> next = pages.Begin(next_request)) {
//     next->events = Read(next->request);
//     std::optional<Promise<EventBatch>> asked = pages.Finish(*next);   // none: it stays until it is asked for
//   }
//
// What has changed since a page was read, its user has to find out. So many pages are kept; a new one takes the place of
// the oldest that nobody has asked for.
//
// Thread safety: all methods may be called from any thread. A page belongs to its reader between Begin and Finish.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_PAGES_AHEAD_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_PAGES_AHEAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

struct PageAhead {
  explicit PageAhead(ReplayPage its_request) : request(std::move(its_request)) {}

  const ReplayPage request;
  absl::StatusOr<EventBatch> events = absl::UnknownError("not read");
  // What the database was when it was read: its number of changes, and up to where the id's events were deleted.
  uint64_t changes = 0;
  uint64_t deleted_to = 0;

 private:
  friend class PagesAhead;

  // Under the lock of the list.
  bool is_read_ = false;
  std::optional<Promise<EventBatch>> asked_;
};

class PagesAhead {
 public:
  explicit PagesAhead(size_t max_pages) : max_pages_(max_pages) {}

  // The page, if it is being read and nobody else has asked for it.
  std::optional<Future<EventBatch>> Await(const ReplayPage& request) {
    MutexLock lock(mutex_);
    const auto found = Find(request);
    if (found == pages_.end() || (*found)->is_read_ || (*found)->asked_.has_value()) return std::nullopt;
    auto [promise, future] = MakePromise<EventBatch>();
    (*found)->asked_ = std::move(promise);
    return std::move(future);
  }

  // The page, if it has been read.
  std::shared_ptr<PageAhead> Take(const ReplayPage& request) {
    MutexLock lock(mutex_);
    const auto found = Find(request);
    if (found == pages_.end() || !(*found)->is_read_) return nullptr;
    std::shared_ptr<PageAhead> taken = std::move(*found);
    pages_.erase(found);
    return taken;
  }

  // A page to be read. Null: there is one already, or no room.
  std::shared_ptr<PageAhead> Begin(ReplayPage request) {
    MutexLock lock(mutex_);
    if (Find(request) != pages_.end()) return nullptr;
    if (pages_.size() >= max_pages_) {
      const auto oldest = std::find_if(pages_.begin(), pages_.end(), [](const auto& page) { return page->is_read_; });
      if (oldest == pages_.end()) return nullptr;
      pages_.erase(oldest);
    }
    pages_.push_back(std::make_shared<PageAhead>(std::move(request)));
    return pages_.back();
  }

  // It has been read. If somebody has asked for it, it leaves the list.
  std::optional<Promise<EventBatch>> Finish(PageAhead& page) {
    MutexLock lock(mutex_);
    page.is_read_ = true;
    if (page.asked_.has_value() || !page.events.ok()) {
      pages_.erase(std::find_if(pages_.begin(), pages_.end(), [&](const auto& one) { return one.get() == &page; }));
    }
    return std::exchange(page.asked_, std::nullopt);
  }

 private:
  using Pages = std::vector<std::shared_ptr<PageAhead>>;

  Pages::iterator Find(const ReplayPage& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::find_if(pages_.begin(), pages_.end(), [&](const auto& page) {
      const ReplayPage& other = page->request;
      return other.from_sequence_nr == request.from_sequence_nr && other.to_sequence_nr == request.to_sequence_nr &&
             other.limits.max_events == request.limits.max_events &&
             other.limits.max_bytes == request.limits.max_bytes && other.persistence_id == request.persistence_id;
    });
  }

  const size_t max_pages_;
  Mutex mutex_;
  Pages pages_ ABSL_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_PAGES_AHEAD_H_
