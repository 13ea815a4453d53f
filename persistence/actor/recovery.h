// Recovery: what a persistent actor is brought back from.
//
//   Recovery RecoverFrom() const override { return {.to_sequence_nr = 457}; }       // as it was then
//   Recovery RecoverFrom() const override { return Recovery::None(); }              // not at all
//   Recovery RecoverFrom() const override { return {.allow_deleted_events = true}; } // also one that has deleted itself
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
  // What if events are deleted that none of these snapshots covers: because the snapshots are lost, or the bounds leave
  // them out, or the actor has deleted all that it had, on purpose. By default the recovery fails, rather than to give a
  // wrong state. If this is set, the actor goes on without those events: from nothing, if there is no snapshot.
  bool allow_deleted_events = false;

  // Nothing is read; new events are numbered behind what is stored.
  static Recovery None() { return {SnapshotSelectionCriteria::None(), 0, 0, false}; }
  bool is_none() const { return to_sequence_nr == 0; }

  friend bool operator==(const Recovery&, const Recovery&) = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_RECOVERY_H_
