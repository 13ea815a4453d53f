#include "fraktor/persistence/testing/faulty_snapshot_store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/testing/fault_dice.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

absl::Status SnapshotFaults::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("SnapshotFaults::fail_open", fail_open));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("SnapshotFaults::fail_save", fail_save));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("SnapshotFaults::fail_load", fail_load));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("SnapshotFaults::fail_delete", fail_delete));
  FRAKTOR_RETURN_IF_ERROR(CheckProbability("SnapshotFaults::lose_answer", lose_answer));
  return CheckDelays("SnapshotFaults", min_delay, max_delay);
}

FaultySnapshotStore::FaultySnapshotStore(SnapshotStorage& store, RuntimeToolbox& toolbox, Executor& executor,
                                         const SnapshotFaults& faults, uint64_t random_stream)
    : store_(store), dice_("faulty snapshot store", toolbox, executor, faults, random_stream) {}

Future<void> FaultySnapshotStore::OpenWriter(std::string persistence_id, uint64_t epoch) {
  const auto fate = dice_.Draw(&SnapshotFaults::fail_open, true,
                               absl::StrCat("announcement of the owner of \"", persistence_id, "\""));
  return dice_.Answer<void>(fate, [&] { return store_.OpenWriter(std::move(persistence_id), epoch); });
}

Future<SnapshotMetadata> FaultySnapshotStore::Save(Snapshot snapshot, uint64_t epoch) {
  const auto fate = dice_.Draw(&SnapshotFaults::fail_save, true,
                               absl::StrCat("save of snapshot ", snapshot.metadata.sequence_nr, " of \"",
                                            snapshot.metadata.persistence_id, "\""));
  return dice_.Answer<SnapshotMetadata>(
      fate, [&] { return store_.Save(std::move(snapshot), epoch); },
      [](absl::Status lost, const FutureResult<SnapshotMetadata>& saved) {
        return saved.ok() ? WithSnapshotTime(std::move(lost), saved->timestamp) : lost;
      });
}

Future<std::optional<Snapshot>> FaultySnapshotStore::Load(std::string persistence_id,
                                                          SnapshotSelectionCriteria criteria) {
  const auto fate =
      dice_.Draw(&SnapshotFaults::fail_load, false, absl::StrCat("load of a snapshot of \"", persistence_id, "\""));
  return dice_.Answer<std::optional<Snapshot>>(fate, [&] { return store_.Load(std::move(persistence_id), criteria); });
}

Future<void> FaultySnapshotStore::Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) {
  const auto fate = dice_.Draw(&SnapshotFaults::fail_delete, true,
                               absl::StrCat("deletion of snapshot ", sequence_nr, " of \"", persistence_id, "\""));
  return dice_.Answer<void>(fate, [&] { return store_.Delete(std::move(persistence_id), sequence_nr, epoch); });
}

Future<void> FaultySnapshotStore::DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria,
                                                 uint64_t epoch) {
  const auto fate =
      dice_.Draw(&SnapshotFaults::fail_delete, true, absl::StrCat("deletion of snapshots of \"", persistence_id, "\""));
  return dice_.Answer<void>(fate, [&] { return store_.DeleteMatching(std::move(persistence_id), criteria, epoch); });
}

Future<void> FaultySnapshotStore::Close() { return store_.Close(); }

}  // namespace fraktor::inline v0
