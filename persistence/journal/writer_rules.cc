#include "fraktor/persistence/journal/writer_rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

namespace {

absl::Status EventsLost(const IdState& state, const AtomicWrite& write, uint64_t last_lost) {
  return EventError(
      absl::StatusCode::kDataLoss, JournalErrorKind::kEventsLost, write.persistence_id(), write.lowest_sequence_nr(),
      absl::StrCat("the writer knows that the events up to ", last_lost,
                   " were stored, but the highest number in the journal is ", state.highest_sequence_nr,
                   ": the journal has lost the events behind it (an older backup was restored, or the journal does not "
                   "sync and its machine crashed). Restore a newer backup, or start the writer again: it recovers "
                   "without them"));
}

}  // namespace

absl::StatusOr<uint64_t> NextEpoch(std::string_view persistence_id, uint64_t stored, std::optional<uint64_t> token) {
  if (!token.has_value()) return stored + 1;
  if (*token == 0) {
    return IdError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, persistence_id,
                   "a fencing token of 0; tokens begin at 1");
  }
  if (*token < stored) {
    return IdError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kFenced, persistence_id,
                   absl::StrCat("fencing token ", *token, " is of the past: epoch ", stored,
                                " has been opened since. This owner must stop"));
  }
  return *token;
}

absl::Status CheckWriter(const IdState& state, const AtomicWrite& write) {
  if (write.epoch() == state.epoch) {
    // A write that is sent again may be what the journal has lost: it is stored again.
    const uint64_t last_needed = std::min(write.known_stored(), write.lowest_sequence_nr() - 1);
    return state.highest_sequence_nr < last_needed ? EventsLost(state, write, last_needed) : absl::OkStatus();
  }
  if (write.epoch() < state.epoch) {
    return EventError(
        absl::StatusCode::kFailedPrecondition, JournalErrorKind::kFenced, write.persistence_id(),
        write.lowest_sequence_nr(),
        absl::StrCat("another actor has taken over this persistence id: this was written in epoch ", write.epoch(),
                     ", and another writer has opened epoch ", state.epoch,
                     " since. Two actors must not have the same id at the same time; this one must stop"));
  }
  return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNotOpen, write.persistence_id(),
                    write.lowest_sequence_nr(),
                    absl::StrCat("written in epoch ", write.epoch(), ", but the journal knows only ", state.epoch,
                                 ": it has lost the opening, or never had it. Open the writer again and recover"));
}

absl::Status SequenceMismatch(const IdState& state, const AtomicWrite& write) {
  return EventError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kSequenceMismatch, write.persistence_id(),
                    write.lowest_sequence_nr(),
                    absl::StrCat("the highest number stored is ", state.highest_sequence_nr,
                                 ", and what is stored there is not this write. Recover, and go on after it"));
}

absl::Status CheckNotFenced(std::string_view persistence_id, uint64_t known, uint64_t epoch) {
  if (epoch >= known) return absl::OkStatus();
  const std::string what =
      epoch == kNoEpoch
          ? absl::StrCat("the request names no epoch, and an owner of epoch ", known,
                         " is known. Nodes of older versions name none: upgrade them. A program that uses the store "
                         "directly has to open the writer and to name its epoch")
          : absl::StrCat("another actor has taken over this persistence id: the request is of epoch ", epoch,
                         ", and an owner of epoch ", known, " is known. This one must stop");
  return IdError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kFenced, persistence_id, what);
}

absl::Status CheckOwnerEpoch(std::string_view persistence_id, uint64_t epoch) {
  if (epoch != kNoEpoch) return absl::OkStatus();
  return IdError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, persistence_id,
                 "an owner is announced with epoch 0; epochs begin at 1");
}

absl::Status CheckDeletion(const IdState& state, std::string_view persistence_id, uint64_t epoch) {
  if (epoch <= state.epoch) return CheckNotFenced(persistence_id, state.epoch, epoch);
  return IdError(absl::StatusCode::kFailedPrecondition, JournalErrorKind::kNotOpen, persistence_id,
                 absl::StrCat("the deletion is of epoch ", epoch, ", but the journal knows only ", state.epoch,
                              ": it has lost the opening, or never had it. Open the writer again and recover"));
}

absl::Status ClosedError(std::string_view store, std::string_view persistence_id) {
  const std::string what = absl::StrCat(ToAbsl(store), " is closed; open it again");
  if (!persistence_id.empty()) {
    return IdError(absl::StatusCode::kUnavailable, JournalErrorKind::kClosed, persistence_id, what);
  }
  return MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kClosed, what);
}

}  // namespace fraktor::inline v0
