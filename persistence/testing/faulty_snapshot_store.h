// FaultySnapshotStore: a snapshot store over another one that fails, forgets to answer and delays, as its seed decides.
//
//   auto faulty = std::make_shared<FaultySnapshotStore>(*store, kit.toolbox(), *executor,
//                                                       SnapshotFaults{.fail_save = 0.1});
//   kit.system().Extension<PersistenceExtension>().AddSnapshotStore("faulty", {.storage = faulty});
//
// As FaultyJournal: requests go on at once and in order, answers may be late; what happens is drawn from the toolbox's
// stream.
//
// Thread safety: as SnapshotStorage. Everything that it is made of outlives it; it outlives its answers.
#ifndef FRAKTOR_PERSISTENCE_TESTING_FAULTY_SNAPSHOT_STORE_H_
#define FRAKTOR_PERSISTENCE_TESTING_FAULTY_SNAPSHOT_STORE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/testing/fault_dice.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// Probabilities, each from 0 to 1. With others, and with delays that are none, every request fails and says so.
struct SnapshotFaults {
  // The request fails (kIo), and nothing is announced, saved, loaded or deleted.
  double fail_open = 0;
  double fail_save = 0;
  double fail_load = 0;
  double fail_delete = 0;
  // It is announced, saved or deleted, but the answer is kIo. That of a save names the time of the
  // snapshot.
  double lose_answer = 0;
  // Whatever stores something fails with kDiskFull.
  bool disk_full = false;
  // How late answers are.
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();

  // InvalidArgument that names the field.
  absl::Status Validate() const;
};

class FaultySnapshotStore final : public SnapshotStorage {
 public:
  FaultySnapshotStore(SnapshotStorage& store, RuntimeToolbox& toolbox, Executor& executor, const SnapshotFaults& faults,
                      uint64_t random_stream = 2);

  // For requests from now on.
  void SetFaults(const SnapshotFaults& faults) { dice_.SetFaults(faults); }
  // How many requests have failed or lost their answer.
  uint64_t failed() const { return dice_.counts().failed + dice_.counts().answers_lost; }

  Future<void> OpenWriter(std::string persistence_id, uint64_t epoch) override;
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) override;
  Future<std::optional<Snapshot>> Load(std::string persistence_id, SnapshotSelectionCriteria criteria) override;
  Future<void> Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) override;
  Future<void> DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria, uint64_t epoch) override;
  Future<void> Close() override;
  const SnapshotLimits& limits() const override { return store_.limits(); }

 private:
  SnapshotStorage& store_;
  FaultDice<SnapshotFaults> dice_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_FAULTY_SNAPSHOT_STORE_H_
