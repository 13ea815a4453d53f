#include "fraktor/persistence/snapshot/snapshot_metadata.h"

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

SnapshotSelectionCriteria SnapshotSelectionCriteria::None() {
  return {.max_sequence_nr = 0, .max_timestamp = absl::InfinitePast(), .min_sequence_nr = 1};
}

bool SnapshotSelectionCriteria::Matches(uint64_t sequence_nr, absl::Time timestamp) const {
  return sequence_nr >= min_sequence_nr && sequence_nr <= max_sequence_nr && timestamp >= min_timestamp &&
         timestamp <= max_timestamp;
}

SnapshotSelectionCriteria SnapshotSelectionCriteria::Limit(uint64_t to_sequence_nr) const {
  SnapshotSelectionCriteria limited = *this;
  limited.max_sequence_nr = std::min(max_sequence_nr, to_sequence_nr);
  return limited;
}

}  // namespace fraktor::inline v0
