#include "fraktor/persistence/state/state_storage.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

absl::Status StateError(absl::StatusCode code, JournalErrorKind kind, std::string_view persistence_id,
                        uint64_t revision, std::string_view what) {
  return MakeError(code, kind,
                   absl::StrCat("revision ", revision, " of \"", ToAbsl(persistence_id), "\": ", ToAbsl(what)),
                   {{"id", persistence_id}, {"nr", revision}});
}

}  // namespace

absl::Status CheckStateLimits(const StateLimits& limits) {
  if (limits.max_persistence_id_bytes < 1 || limits.max_persistence_id_bytes > UINT16_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("StateLimits::max_persistence_id_bytes is ",
                                                   limits.max_persistence_id_bytes, "; it must be from 1 to 65535"));
  }
  // RocksDB's own limit of a value is 4 GiB.
  constexpr size_t kHighest = size_t{2} << 30;
  if (limits.max_state_bytes < 1 || limits.max_state_bytes > kHighest) {
    return absl::InvalidArgumentError(
        absl::StrCat("StateLimits::max_state_bytes is ", limits.max_state_bytes, "; it must be from 1 to ", kHighest));
  }
  return absl::OkStatus();
}

absl::Status CheckStateId(const StateLimits& limits, std::string_view persistence_id) {
  JournalLimits journal;
  journal.max_persistence_id_bytes = limits.max_persistence_id_bytes;
  return CheckPersistenceId(journal, persistence_id);
}

absl::Status CheckState(const StateLimits& limits, const DurableState& state) {
  FRAKTOR_RETURN_IF_ERROR(CheckStateId(limits, state.persistence_id));
  const size_t bytes = state.payload.size() + state.manifest.size();
  if (bytes <= limits.max_state_bytes) return absl::OkStatus();
  return StateError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge, state.persistence_id,
                    state.revision,
                    absl::StrCat("it has ", bytes, " bytes; the limit, StateLimits::max_state_bytes, is ",
                                 limits.max_state_bytes, ". Keep large values elsewhere, or raise it"));
}

absl::Status CheckRevision(std::string_view persistence_id, uint64_t stored_revision, uint64_t revision,
                           bool is_stored) {
  if (revision == 0) {
    return StateError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, persistence_id, revision,
                      "revisions begin with 1");
  }
  if (revision == stored_revision + 1 || (revision == stored_revision && is_stored)) return absl::OkStatus();
  return StateError(
      absl::StatusCode::kAborted, JournalErrorKind::kSequenceMismatch, persistence_id, revision,
      absl::StrCat("the stored one is ", stored_revision, ", so that ", stored_revision + 1,
                   " would be the next: another writer has changed it, as a second actor with this id would, or "
                   "this one has missed a change. Load it again"));
}

}  // namespace fraktor::inline v0
