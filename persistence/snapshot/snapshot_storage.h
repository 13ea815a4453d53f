// SnapshotStorage: the interface of stores of snapshots. The snapshot actor and tools use it.
//
//   Snapshot snapshot{.metadata = {.persistence_id = "account-7", .sequence_nr = 100}, .payload = bytes};
//   absl::Status announced = storage.OpenWriter("account-7", epoch).Wait();         // in main() and tests only
//   SnapshotMetadata saved = storage.Save(snapshot, epoch).Wait().value();
//   std::optional<Snapshot> newest = storage.Load("account-7", SnapshotSelectionCriteria::Latest()).Wait().value();
//
// Every call returns at once and answers by a future. Order, durability and limits are as in
// JournalStorage: requests of one id take effect in the order in which they were made, and what was
// answered with success survives.
//
// Owners. The journal decides who owns a persistence id, and gives the owner its epoch
// (JournalStorage::OpenWriter). A snapshot store is another database and does not ask the journal.
// It hears of epochs in two ways: a recovering owner announces its own before it loads
// (OpenWriter), and every save and every deletion names the epoch of its owner. The store keeps the
// highest epoch that it has heard of for each id, as durably as the snapshots, and longer than
// those. It refuses saves and deletions of a lower epoch (kFenced). So a former owner changes
// nothing from the moment at which its successor is announced. A higher epoch is accepted, and the
// store remembers it.
//
// kNoEpoch stands for no owner: such a request comes from a program that uses the store without a
// journal, or from a node of an older version, which does not send the epoch. It is carried out for
// an id of which the store has heard no epoch, and refused (kFenced) for all others.
//
// A journal that is lost, or restored from a backup without its snapshot store, gives lower epochs
// than the store has heard of. The owner then recovers, but saves and deletes no snapshots until
// the journal has given as many epochs again: restore both from one backup.
//
// Thread safety: all methods may be called from any thread. The store must outlive its calls, not
// its futures.
#ifndef FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_STORAGE_H_
#define FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

struct SnapshotLimits {
  // Bytes of a persistence id, at most 65535.
  size_t max_persistence_id_bytes = 1024;
  // Bytes of one snapshot: manifest, payload and metadata. It is in memory as a whole.
  size_t max_snapshot_bytes = size_t{256} << 20;
};

// InvalidArgument, naming the limit, unless they make sense.
absl::Status CheckSnapshotLimits(const SnapshotLimits& limits);
// kInvalid for an empty id, kTooLarge for what is above a limit; names the id and the number.
absl::Status CheckSnapshotId(const SnapshotLimits& limits, std::string_view persistence_id);
absl::Status CheckSnapshot(const SnapshotLimits& limits, const Snapshot& snapshot);

// For stores: `error` is that of a save that may be stored all the same, and `timestamp` the time
// that the store gave the snapshot. The error carries the time, so that exactly that snapshot can
// be deleted.
absl::Status WithSnapshotTime(absl::Status error, absl::Time timestamp);
// The time that the error of a save carries, and the error without it. None: the save has stored
// nothing.
std::optional<absl::Time> SnapshotTimeOf(const absl::Status& error);
absl::Status WithoutSnapshotTime(absl::Status error);

class SnapshotStorage : public IdentifiedStore {
 public:
  // Announces the owner of the id: from now on the store refuses what lower epochs want to change.
  // kFenced if a higher epoch is known; the same epoch may come again. kNoEpoch is kInvalid.
  virtual Future<void> OpenWriter(std::string persistence_id, uint64_t epoch) = 0;

  // Saves, and answers the metadata with the time that the store has given it. Times of one store
  // never fall, and those of two snapshots of one number differ. A save that fails stores nothing,
  // unless its error carries a time (WithSnapshotTime): then the snapshot of that time may be
  // there, as a whole.
  virtual Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) = 0;

  // The newest that matches: the one with the highest number, and of these the youngest. None if
  // there is none. kCorrupt, naming the number, if it cannot be read: an older one is found by
  // asking below that number.
  virtual Future<std::optional<Snapshot>> Load(std::string persistence_id, SnapshotSelectionCriteria criteria) = 0;

  // Deletes all snapshots of that number, of any time. No snapshot is a success.
  virtual Future<void> Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) = 0;

  // Deletes all that match. None is a success.
  virtual Future<void> DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria,
                                      uint64_t epoch) = 0;

  // As JournalStorage::Close.
  virtual Future<void> Close() = 0;

  virtual const SnapshotLimits& limits() const = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_SNAPSHOT_SNAPSHOT_STORAGE_H_
