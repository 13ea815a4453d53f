#include "fraktor/persistence/testing/faulty_snapshot_store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/persistence/testing/late_answer.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using testing_internal::AnswerLate;
using testing_internal::AnswerLateStatus;

FaultySnapshotStore::FaultySnapshotStore(SnapshotStorage& store, RuntimeToolbox& toolbox, Executor& executor,
                                         const SnapshotFaults& faults, uint64_t random_stream)
    : store_(store),
      toolbox_(toolbox),
      executor_(executor),
      faults_(faults),
      random_(toolbox.MakeRandom(random_stream)) {}

void FaultySnapshotStore::SetFaults(const SnapshotFaults& faults) {
  MutexLock lock(mutex_);
  faults_ = faults;
}

uint64_t FaultySnapshotStore::failed() const {
  MutexLock lock(mutex_);
  return failed_;
}

FaultySnapshotStore::Fate FaultySnapshotStore::Draw(double SnapshotFaults::*failure, bool stores,
                                                    std::string_view what) {
  MutexLock lock(mutex_);
  Fate fate;
  const bool fails = random_.Bernoulli(faults_.*failure);
  const bool loses = random_.Bernoulli(faults_.lose_answer);
  fate.delay = random_.UniformDuration(faults_.min_delay, faults_.max_delay);
  if (stores && faults_.disk_full) {
    fate.failure = MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                             absl::StrCat(ToAbsl(what), ": the disk is full, says the faulty snapshot store"));
  } else if (fails) {
    fate.failure = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                             absl::StrCat(ToAbsl(what), ": the faulty snapshot store fails"));
  } else if (stores && loses) {
    fate.lost_answer = MakeError(absl::StatusCode::kUnavailable, JournalErrorKind::kIo,
                                 absl::StrCat(ToAbsl(what), ": the faulty snapshot store has lost the answer"));
  }
  if (!fate.failure.ok() || !fate.lost_answer.ok()) ++failed_;
  return fate;
}

Future<SnapshotMetadata> FaultySnapshotStore::Save(Snapshot snapshot) {
  const Fate fate = Draw(&SnapshotFaults::fail_save, true,
                         absl::StrCat("save of snapshot ", snapshot.metadata.sequence_nr, " of \"",
                                      snapshot.metadata.persistence_id, "\""));
  Future<SnapshotMetadata> answer =
      fate.failure.ok() ? store_.Save(std::move(snapshot)) : MakeReadyFuture<SnapshotMetadata>(fate.failure);
  return AnswerLate(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
}

Future<std::optional<Snapshot>> FaultySnapshotStore::Load(std::string persistence_id,
                                                          SnapshotSelectionCriteria criteria) {
  const Fate fate =
      Draw(&SnapshotFaults::fail_load, false, absl::StrCat("load of a snapshot of \"", persistence_id, "\""));
  Future<std::optional<Snapshot>> answer = fate.failure.ok() ? store_.Load(std::move(persistence_id), criteria)
                                                             : MakeReadyFuture<std::optional<Snapshot>>(fate.failure);
  return AnswerLate(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
}

Future<void> FaultySnapshotStore::Delete(std::string persistence_id, uint64_t sequence_nr) {
  const Fate fate = Draw(&SnapshotFaults::fail_delete, true,
                         absl::StrCat("deletion of snapshot ", sequence_nr, " of \"", persistence_id, "\""));
  Future<void> answer =
      fate.failure.ok() ? store_.Delete(std::move(persistence_id), sequence_nr) : MakeReadyFuture<void>(fate.failure);
  return AnswerLateStatus(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
}

Future<void> FaultySnapshotStore::DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria) {
  const Fate fate =
      Draw(&SnapshotFaults::fail_delete, true, absl::StrCat("deletion of snapshots of \"", persistence_id, "\""));
  Future<void> answer = fate.failure.ok() ? store_.DeleteMatching(std::move(persistence_id), criteria)
                                          : MakeReadyFuture<void>(fate.failure);
  return AnswerLateStatus(&toolbox_, std::move(answer), fate.delay, fate.lost_answer).Start(executor_);
}

Future<void> FaultySnapshotStore::Close() { return store_.Close(); }

}  // namespace fraktor::inline v0
