// SnapshotMetadata: which snapshot. SnapshotSelectionCriteria: which ones are wanted.
//
//   SnapshotSelectionCriteria wanted = {.max_sequence_nr = 100};     // at most 100, of any age
//   if (wanted.Matches(metadata)) ...
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_METADATA_H_
#define FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_METADATA_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

struct SnapshotMetadata {
  std::string persistence_id = {};
  // The number of the last event that the snapshot has in it.
  uint64_t sequence_nr = 0;
  // When it was saved, in whole nanoseconds. Set by the store.
  absl::Time timestamp = absl::UnixEpoch();
  // Bytes that go with the snapshot and are not part of it.
  std::string metadata = {};

  // Id, number and time say which snapshot it is; the rest does not count.
  friend bool operator==(const SnapshotMetadata& a, const SnapshotMetadata& b) {
    return a.sequence_nr == b.sequence_nr && a.timestamp == b.timestamp && a.persistence_id == b.persistence_id;
  }
};

struct Snapshot {
  SnapshotMetadata metadata = {};
  // The type of the payload: an explicit, stable name and its version.
  std::string manifest = {};
  uint32_t manifest_version = 0;
  std::string payload = {};
};

// All bounds are included.
struct SnapshotSelectionCriteria {
  uint64_t max_sequence_nr = std::numeric_limits<uint64_t>::max();
  absl::Time max_timestamp = absl::InfiniteFuture();
  uint64_t min_sequence_nr = 0;
  absl::Time min_timestamp = absl::InfinitePast();

  // Every snapshot, so that the newest is found.
  static SnapshotSelectionCriteria Latest() { return {}; }
  // No snapshot at all.
  static SnapshotSelectionCriteria None();

  bool Matches(const SnapshotMetadata& metadata) const { return Matches(metadata.sequence_nr, metadata.timestamp); }
  bool Matches(uint64_t sequence_nr, absl::Time timestamp) const;

  // The same, and not above `to_sequence_nr`.
  SnapshotSelectionCriteria Limit(uint64_t to_sequence_nr) const;

  // Whether nothing can match.
  bool MatchesNothing() const { return min_sequence_nr > max_sequence_nr || min_timestamp > max_timestamp; }

  friend bool operator==(const SnapshotSelectionCriteria&, const SnapshotSelectionCriteria&) = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_METADATA_H_
