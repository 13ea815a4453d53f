#include "fraktor/persistence/actor/replay_filter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// A journal has a gap where a write was rejected, so most have none.
constexpr size_t kMaxGaps = 100;

}  // namespace

ReplayFilter::Verdict ReplayFilter::JudgeAnother(const StoredEvent& event) {
  if (options_.mode == ReplayFilterMode::kOff) {
    last_sequence_nr_ = std::max(last_sequence_nr_, event.sequence_nr);
    return Verdict::kPass;
  }
  if (event.sequence_nr <= last_sequence_nr_) {
    return VerdictOf(WasSeen(event.sequence_nr) ? Fault::kRepeated : Fault::kOutOfOrder);
  }
  if (event.sequence_nr > last_sequence_nr_ + 1) {
    if (gaps_.size() < kMaxGaps) {
      gaps_.push_back({last_sequence_nr_ + 1, event.sequence_nr - 1});
    } else {
      has_more_gaps_ = true;
    }
  }
  last_sequence_nr_ = event.sequence_nr;
  return IsOfReplacedWriter(event) ? VerdictOf(Fault::kReplacedWriter) : Verdict::kPass;
}

bool ReplayFilter::IsOfReplacedWriter(const StoredEvent& event) {
  if (event.writer.is_none()) return false;
  const auto old = std::find(old_writers_.begin(), old_writers_.end(), event.writer);
  const bool has_opened = event.epoch > epoch_;
  epoch_ = std::max(epoch_, event.epoch);
  if (event.writer == current_) return false;
  if (old != old_writers_.end() && !has_opened) return true;
  // Another writer has taken over.
  if (old != old_writers_.end()) old_writers_.erase(old);
  if (!current_.is_none()) {
    old_writers_.push_back(current_);
    if (old_writers_.size() > options_.max_old_writers) old_writers_.erase(old_writers_.begin());
  }
  current_ = event.writer;
  return false;
}

bool ReplayFilter::WasSeen(uint64_t sequence_nr) const {
  if (has_more_gaps_) return false;
  return std::none_of(gaps_.begin(), gaps_.end(),
                      [&](const Gap& gap) { return gap.first <= sequence_nr && sequence_nr <= gap.last; });
}

ReplayFilter::Verdict ReplayFilter::VerdictOf(Fault fault) {
  fault_ = fault;
  switch (options_.mode) {
    case ReplayFilterMode::kRepairByDiscardOld:
      return fault == Fault::kOutOfOrder ? Verdict::kFail : Verdict::kDiscard;
    case ReplayFilterMode::kFail:
      return Verdict::kFail;
    case ReplayFilterMode::kWarn:
      return Verdict::kPassWithWarning;
    case ReplayFilterMode::kOff:
      break;
  }
  return Verdict::kPass;
}

std::string ReplayFilter::WhatIsWrong(const StoredEvent& event) const {
  switch (fault_) {
    case Fault::kRepeated:
      return absl::StrCat("came twice, or before the beginning of the replay: the last one was ", last_sequence_nr_,
                          ". The storage is at fault");
    case Fault::kOutOfOrder:
      return absl::StrCat("came after event ", last_sequence_nr_,
                          ". The storage is at fault: it must replay the events "
                          "of an id in the order of their numbers");
    case Fault::kReplacedWriter:
      break;
  }
  return absl::StrCat("was written by ", event.writer.ToString(), " after ", current_.ToString(),
                      " had taken its place: two actors have written to one persistence id");
}

std::string ReplayFilter::Describe(const StoredEvent& event) const {
  return absl::StrCat("event ", event.sequence_nr, " of \"", ToAbsl(event.persistence_id), "\" ", WhatIsWrong(event));
}

absl::Status ReplayFilter::ErrorOf(const StoredEvent& event) const {
  return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kCorrupt, event.persistence_id,
                    event.sequence_nr,
                    absl::StrCat("it ", WhatIsWrong(event),
                                 fault_ == Fault::kReplacedWriter ? "; find out who else writes to this id, or choose "
                                                                    "ReplayFilterMode::kRepairByDiscardOld"
                                                                  : ""));
}

}  // namespace fraktor::inline v0
