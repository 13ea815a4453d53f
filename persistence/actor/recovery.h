// Recovery: what a persistent actor is brought back from.
//
//   Recovery RecoverFrom() const override { return {.to_sequence_nr = 457}; }       // as it was then
//   Recovery RecoverFrom() const override { return Recovery::None(); }              // not at all
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_H_
#define FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_H_

#include <cstdint>
#include <limits>

#include "fraktor/persistence/snapshot/snapshot_metadata.h"

namespace fraktor::inline v0 {

struct Recovery {
  // The newest of these that is not above to_sequence_nr; then the events after it.
  SnapshotSelectionCriteria from_snapshot = SnapshotSelectionCriteria::Latest();
  // Included.
  uint64_t to_sequence_nr = std::numeric_limits<uint64_t>::max();
  // So many events at most.
  uint64_t replay_max = std::numeric_limits<uint64_t>::max();

  // Nothing is read; new events are numbered behind what is stored.
  static Recovery None() { return {SnapshotSelectionCriteria::None(), 0, 0}; }
  bool is_none() const { return to_sequence_nr == 0; }

  friend bool operator==(const Recovery&, const Recovery&) = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_H_
