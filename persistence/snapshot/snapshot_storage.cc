#include "fraktor/persistence/snapshot/snapshot_storage.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_limits.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kSnapshotTimeUrl = "fraktor.dev/snapshot_time";

}  // namespace

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

absl::Status WithSnapshotTime(absl::Status error, absl::Time timestamp) {
  if (!error.ok()) {
    error.SetPayload(ToAbsl(kSnapshotTimeUrl), absl::Cord(absl::StrCat(absl::ToUnixNanos(timestamp))));
  }
  return error;
}

std::optional<absl::Time> SnapshotTimeOf(const absl::Status& error) {
  const auto payload = error.GetPayload(ToAbsl(kSnapshotTimeUrl));
  int64_t nanoseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &nanoseconds)) return std::nullopt;
  return absl::FromUnixNanos(nanoseconds);
}

absl::Status WithoutSnapshotTime(absl::Status error) {
  error.ErasePayload(ToAbsl(kSnapshotTimeUrl));
  return error;
}

}  // namespace fraktor::inline v0
