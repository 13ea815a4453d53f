#include "fraktor/persistence/memory/memory_snapshot_store.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/delayed.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

absl::StatusOr<std::unique_ptr<MemorySnapshotStore>> MemorySnapshotStore::Open(
    const MemorySnapshotStoreOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotLimits(options.limits));
  if (options.toolbox == nullptr) {
    return absl::InvalidArgumentError("MemorySnapshotStoreOptions::toolbox is missing; it gives the time");
  }
  if (options.min_delay < absl::ZeroDuration() || options.max_delay < options.min_delay) {
    return absl::InvalidArgumentError("MemorySnapshotStoreOptions: min_delay must not be negative nor above max_delay");
  }
  return absl::WrapUnique(new MemorySnapshotStore(options));
}

MemorySnapshotStore::MemorySnapshotStore(const MemorySnapshotStoreOptions& options)
    : options_(options), random_(options.toolbox->MakeRandom(options.random_stream)) {}

template <class T>
Future<T> MemorySnapshotStore::Answer(FutureResult<T> result) {
  absl::Duration delay;
  {
    MutexLock lock(mutex_);
    delay = random_.UniformDuration(options_.min_delay, options_.max_delay);
  }
  return ReadyAfter<T>(options_.toolbox, delay, std::move(result));
}

absl::Status MemorySnapshotStore::CheckOpen() const {
  return closed_ ? ClosedError("the snapshot store in memory") : absl::OkStatus();
}

absl::Status MemorySnapshotStore::Claim(const std::string& persistence_id, uint64_t epoch) {
  const auto found = epochs_.find(persistence_id);
  const uint64_t known = found == epochs_.end() ? kNoEpoch : found->second;
  FRAKTOR_RETURN_IF_ERROR(CheckNotFenced(persistence_id, known, epoch));
  if (epoch > known) epochs_.insert_or_assign(persistence_id, epoch);
  return absl::OkStatus();
}

Future<void> MemorySnapshotStore::OpenWriter(std::string persistence_id, uint64_t epoch) {
  return Answer<void>(OpenNow(persistence_id, epoch));
}

absl::Status MemorySnapshotStore::OpenNow(const std::string& persistence_id, uint64_t epoch) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotId(options_.limits, persistence_id));
  FRAKTOR_RETURN_IF_ERROR(CheckOwnerEpoch(persistence_id, epoch));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  return Claim(persistence_id, epoch);
}

Future<SnapshotMetadata> MemorySnapshotStore::Save(Snapshot snapshot, uint64_t epoch) {
  return Answer<SnapshotMetadata>(SaveNow(std::move(snapshot), epoch));
}

absl::StatusOr<SnapshotMetadata> MemorySnapshotStore::SaveNow(Snapshot snapshot, uint64_t epoch) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshot(options_.limits, snapshot));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  FRAKTOR_RETURN_IF_ERROR(Claim(snapshot.metadata.persistence_id, epoch));
  // In whole nanoseconds, and never twice.
  last_ = std::max(absl::FromUnixNanos(absl::ToUnixNanos(options_.toolbox->WallNow())), last_ + absl::Nanoseconds(1));
  snapshot.metadata.timestamp = last_;
  SnapshotMetadata saved = snapshot.metadata;
  ids_[saved.persistence_id].emplace(std::pair(saved.sequence_nr, saved.timestamp), std::move(snapshot));
  return saved;
}

Future<std::optional<Snapshot>> MemorySnapshotStore::Load(std::string persistence_id,
                                                          SnapshotSelectionCriteria criteria) {
  return Answer<std::optional<Snapshot>>(LoadNow(persistence_id, criteria));
}

absl::StatusOr<std::optional<Snapshot>> MemorySnapshotStore::LoadNow(const std::string& persistence_id,
                                                                     const SnapshotSelectionCriteria& criteria) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotId(options_.limits, persistence_id));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  const auto found = ids_.find(persistence_id);
  if (found == ids_.end()) return std::nullopt;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    if (criteria.Matches(it->second.metadata)) return it->second;
  }
  return std::nullopt;
}

Future<void> MemorySnapshotStore::Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) {
  return DeleteMatching(std::move(persistence_id), {.max_sequence_nr = sequence_nr, .min_sequence_nr = sequence_nr},
                        epoch);
}

Future<void> MemorySnapshotStore::DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria,
                                                 uint64_t epoch) {
  return Answer<void>(DeleteNow(persistence_id, criteria, epoch));
}

absl::Status MemorySnapshotStore::DeleteNow(const std::string& persistence_id,
                                            const SnapshotSelectionCriteria& criteria, uint64_t epoch) {
  FRAKTOR_RETURN_IF_ERROR(CheckSnapshotId(options_.limits, persistence_id));
  MutexLock lock(mutex_);
  FRAKTOR_RETURN_IF_ERROR(CheckOpen());
  FRAKTOR_RETURN_IF_ERROR(Claim(persistence_id, epoch));
  const auto found = ids_.find(persistence_id);
  if (found == ids_.end()) return absl::OkStatus();
  Snapshots& snapshots = found->second;
  for (auto it = snapshots.begin(); it != snapshots.end();) {
    it = criteria.Matches(it->second.metadata) ? snapshots.erase(it) : std::next(it);
  }
  if (snapshots.empty()) ids_.erase(found);
  return absl::OkStatus();
}

Future<void> MemorySnapshotStore::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  return MakeReadyFuture();
}

}  // namespace fraktor::inline v0
