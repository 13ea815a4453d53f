#include "fraktor/persistence/query/journal_query.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {
namespace {

// AwaitAdvance waits for something above.
uint64_t Below(uint64_t position) { return position == 0 ? 0 : position - 1; }

}  // namespace

absl::Status EventQuery::CheckSubject() const {
  if (subject_.kind == JournalSubject::Kind::kAllIds) {
    return absl::InvalidArgumentError("an EventQuery is by an id or by a tag; use IdQuery for all ids");
  }
  if (!subject_.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      subject_.kind == JournalSubject::Kind::kTag
          ? "an EventQuery by the tag \"\" finds nothing: no event has it; tag events with a name"
          : "an EventQuery by the id \"\" finds nothing: no persistence id is empty");
}

Future<EventBatch> EventQuery::ReadPage() {
  if (subject_.kind == JournalSubject::Kind::kId) {
    return storage_.Replay({.persistence_id = subject_.name,
                            .from_sequence_nr = std::max<uint64_t>(1, position_),
                            .to_sequence_nr = options_.to,
                            .limits = options_.page});
  }
  return storage_.EventsByTag(
      {.tag = subject_.name, .from_offset = position_, .to_offset = options_.to, .limits = options_.page});
}

Task<EventBatch> EventQuery::Next() {
  const absl::Status checked = CheckSubject();
  if (!checked.ok()) co_return checked;
  // The storage knew of something up to here before the page was read.
  uint64_t known_before = 0;
  while (position_ <= options_.to && !is_done_) {
    Future<EventBatch> reading = ReadPage();
    absl::StatusOr<EventBatch> batch = co_await reading;
    if (!batch.ok()) co_return batch.status();
    position_ = std::max(position_, batch->resume_at());
    // Nothing of that is there: it is deleted.
    if (batch->empty() && batch->at_end() && known_before >= position_) position_ = known_before + 1;
    if (batch->at_end() && !options_.live) is_done_ = true;
    if (!batch->empty()) {
      if (position_ > options_.to) is_done_ = true;
      co_return std::move(batch);
    }
    if (!batch->at_end() || is_done_) continue;
    Future<uint64_t> waiting = storage_.AwaitAdvance(subject_, Below(position_));
    absl::StatusOr<uint64_t> advanced = co_await waiting;
    if (!advanced.ok()) co_return advanced.status();
    known_before = *advanced;
    if (*advanced > options_.to) {
      // What is wanted has come or will never come: one more look is the last.
      Future<EventBatch> last_reading = ReadPage();
      absl::StatusOr<EventBatch> last = co_await last_reading;
      if (!last.ok()) co_return last.status();
      position_ = std::max(position_, last->resume_at());
      is_done_ = last->at_end();
      if (!last->empty()) co_return std::move(last);
    }
  }
  is_done_ = true;
  co_return EventBatch();
}

Task<IdBatch> IdQuery::Next() {
  while (!is_done_) {
    Future<IdBatch> reading = storage_.PersistenceIds({.from_offset = position_, .max_ids = options_.page.max_events});
    absl::StatusOr<IdBatch> batch = co_await reading;
    if (!batch.ok()) co_return batch.status();
    position_ = std::max(position_, batch->resume_at);
    if (batch->at_end && !options_.live) is_done_ = true;
    if (!batch->ids.empty()) co_return std::move(batch);
    if (!batch->at_end || is_done_) continue;
    Future<uint64_t> waiting = storage_.AwaitAdvance(JournalSubject::OfAllIds(), Below(position_));
    absl::StatusOr<uint64_t> advanced = co_await waiting;
    if (!advanced.ok()) co_return advanced.status();
  }
  co_return IdBatch();
}

}  // namespace fraktor::inline v0
