#include "fraktor/persistence/actor/replay_filter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

ReplayFilter::Verdict ReplayFilter::JudgeAnother(const StoredEvent& event) {
  if (event.writer.is_none()) return Verdict::kPass;
  const auto old = std::find(old_writers_.begin(), old_writers_.end(), event.writer);
  const bool has_opened = event.epoch > epoch_;
  epoch_ = std::max(epoch_, event.epoch);
  if (event.writer == current_) return Verdict::kPass;
  if (old == old_writers_.end() || has_opened) {
    // Somebody has taken over.
    if (old != old_writers_.end()) old_writers_.erase(old);
    if (!current_.is_none()) {
      old_writers_.push_back(current_);
      if (old_writers_.size() > options_.max_old_writers) old_writers_.erase(old_writers_.begin());
    }
    current_ = event.writer;
    return Verdict::kPass;
  }
  switch (options_.mode) {
    case ReplayFilterMode::kRepairByDiscardOld:
      return Verdict::kDiscard;
    case ReplayFilterMode::kFail:
      return Verdict::kFail;
    case ReplayFilterMode::kWarn:
      return Verdict::kPassWithWarning;
    case ReplayFilterMode::kOff:
      break;
  }
  return Verdict::kPass;
}

std::string ReplayFilter::Describe(const StoredEvent& event) const {
  return absl::StrCat("event ", event.sequence_nr, " of \"", ToAbsl(event.persistence_id), "\" was written by ",
                      event.writer.ToString(), " after ", current_.ToString(),
                      " had taken its place: two actors have written to one persistence id");
}

absl::Status ReplayFilter::ErrorOf(const StoredEvent& event) const {
  return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kCorrupt, event.persistence_id,
                    event.sequence_nr,
                    absl::StrCat("written by ", event.writer.ToString(), " after ", current_.ToString(),
                                 " had taken its place; find out who else writes to this id, or choose "
                                 "ReplayFilterMode::kRepairByDiscardOld"));
}

}  // namespace fraktor::inline v0
