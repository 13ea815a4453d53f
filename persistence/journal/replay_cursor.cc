#include "fraktor/persistence/journal/replay_cursor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"

namespace fraktor::inline v0 {

bool ReplayCursor::done() const {
  return at_end_ || range_.max_events == 0 || range_.from_sequence_nr > range_.to_sequence_nr ||
         range_.to_sequence_nr == 0;
}

ReplayPage ReplayCursor::NextPage(PageLimits limits) const {
  limits.max_events = static_cast<size_t>(std::min<uint64_t>(limits.max_events, range_.max_events));
  return {.persistence_id = range_.persistence_id,
          .from_sequence_nr = range_.from_sequence_nr,
          .to_sequence_nr = range_.to_sequence_nr,
          .limits = limits};
}

void ReplayCursor::Advance(const EventBatch& batch) {
  range_.max_events -= std::min<uint64_t>(batch.size(), range_.max_events);
  range_.from_sequence_nr = batch.resume_at();
  at_end_ = batch.at_end();
}

}  // namespace fraktor::inline v0
