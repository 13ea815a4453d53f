// ReplayCursor: asks a journal for a replay, page by page, and keeps count.
//
//   ReplayCursor cursor({.persistence_id = "account-7", .max_events = 500});
//   while (!cursor.done()) {
//     Future<EventBatch> reading = storage.Replay(cursor.NextPage({.max_events = 100}));
//     absl::StatusOr<EventBatch> batch = co_await reading;
//     if (!batch.ok()) co_return batch.status();
//     cursor.Advance(*batch);
//     ...
//   }
//
// It has no storage and no future of its own, so it may live in an actor.
//
// Thread safety: a value with one owner.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_REPLAY_CURSOR_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_REPLAY_CURSOR_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"

namespace fraktor::inline v0 {

struct ReplayRange {
  std::string persistence_id = {};
  uint64_t from_sequence_nr = 1;
  uint64_t to_sequence_nr = std::numeric_limits<uint64_t>::max();  // included
  // 0: none. The default: all.
  uint64_t max_events = std::numeric_limits<uint64_t>::max();
};

class ReplayCursor {
 public:
  explicit ReplayCursor(ReplayRange range) : range_(std::move(range)) {}

  // Whether everything has been seen: then nothing needs to be asked for.
  bool done() const;

  // The page to ask for now. Unless done().
  ReplayPage NextPage(PageLimits limits) const;

  // Takes note of the answer to NextPage.
  void Advance(const EventBatch& batch);

  const ReplayRange& rest() const { return range_; }

 private:
  ReplayRange range_;
  bool at_end_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_REPLAY_CURSOR_H_
