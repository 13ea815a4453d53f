#include "fraktor/persistence/snapshot/snapshot_storage.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

absl::Status CheckSnapshotLimits(const SnapshotLimits& limits) {
  if (limits.max_persistence_id_bytes < 1 || limits.max_persistence_id_bytes > UINT16_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("SnapshotLimits::max_persistence_id_bytes is ",
                                                   limits.max_persistence_id_bytes, "; it must be from 1 to 65535"));
  }
  // RocksDB's own limit of a value is 4 GiB.
  constexpr size_t kHighest = size_t{2} << 30;
  if (limits.max_snapshot_bytes < 1 || limits.max_snapshot_bytes > kHighest) {
    return absl::InvalidArgumentError(absl::StrCat("SnapshotLimits::max_snapshot_bytes is ", limits.max_snapshot_bytes,
                                                   "; it must be from 1 to ", kHighest));
  }
  return absl::OkStatus();
}

absl::Status CheckSnapshotId(const SnapshotLimits& limits, std::string_view persistence_id) {
  JournalLimits journal;
  journal.max_persistence_id_bytes = limits.max_persistence_id_bytes;
  return CheckPersistenceId(journal, persistence_id);
}

absl::Status CheckSnapshot(const SnapshotLimits& limits, const Snapshot& snapshot) {
  const SnapshotMetadata& metadata = snapshot.metadata;
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotId(limits, metadata.persistence_id));
  const size_t bytes = snapshot.payload.size() + snapshot.manifest.size() + metadata.metadata.size();
  if (bytes <= limits.max_snapshot_bytes) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kTooLarge,
                   absl::StrCat("snapshot ", metadata.sequence_nr, " of \"", metadata.persistence_id, "\" has ", bytes,
                                " bytes; the limit, SnapshotLimits::max_snapshot_bytes, is ", limits.max_snapshot_bytes,
                                ". Keep large values elsewhere, or raise it"),
                   {{"id", metadata.persistence_id}, {"nr", metadata.sequence_nr}});
}

}  // namespace fraktor::inline v0
