// MemorySnapshotStore: snapshots in memory, for tests, for simulations, and for state that need not
// survive the process.
//
//   auto toolbox = StdToolbox::Make({}).value();                                          // in a test: kit.toolbox()
//   auto store = MemorySnapshotStore::Open({.toolbox = toolbox.get()}).value();
//   system.Extension<PersistenceExtension>().AddSnapshotStore("memory", {.storage = std::move(store)});
//
// The toolbox outlives the store, which asks it for the time. That of a system will do only for a
// store that ends with the system: one that is kept, for a second system, needs a toolbox of its
// own.
//
// Futures are ready when they are returned, unless a delay is asked for.
//
// Thread safety: as SnapshotStorage.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_MEMORY_SNAPSHOT_STORE_H_
#define FRAKTOR_PERSISTENCE_MEMORY_MEMORY_SNAPSHOT_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct MemorySnapshotStoreOptions {
  // Gives the time. Needed, and outlives the store.
  RuntimeToolbox* toolbox = nullptr;
  SnapshotLimits limits = {};
  // Answers take from min_delay to max_delay, drawn from the toolbox's stream.
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();
  uint64_t random_stream = 0;
};

class MemorySnapshotStore final : public SnapshotStorage {
 public:
  // InvalidArgument for a bad option.
  static absl::StatusOr<std::unique_ptr<MemorySnapshotStore>> Open(const MemorySnapshotStoreOptions& options);

  Future<void> OpenWriter(std::string persistence_id, uint64_t epoch) override;
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) override;
  Future<std::optional<Snapshot>> Load(std::string persistence_id, SnapshotSelectionCriteria criteria) override;
  Future<void> Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) override;
  Future<void> DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria, uint64_t epoch) override;
  Future<void> Close() override;
  const SnapshotLimits& limits() const override { return options_.limits; }

 private:
  // By number and time.
  using Snapshots = std::map<std::pair<uint64_t, absl::Time>, Snapshot>;

  explicit MemorySnapshotStore(const MemorySnapshotStoreOptions& options);

  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An error if the epoch is fenced. Remembers it otherwise.
  absl::Status Claim(const std::string& persistence_id, uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OpenNow(const std::string& persistence_id, uint64_t epoch);
  absl::StatusOr<SnapshotMetadata> SaveNow(Snapshot snapshot, uint64_t epoch);
  absl::StatusOr<std::optional<Snapshot>> LoadNow(const std::string& persistence_id,
                                                  const SnapshotSelectionCriteria& criteria);
  absl::Status DeleteNow(const std::string& persistence_id, const SnapshotSelectionCriteria& criteria, uint64_t epoch);
  template <class T>
  Future<T> Answer(FutureResult<T> result);

  const MemorySnapshotStoreOptions options_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Random random_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, Snapshots> ids_ ABSL_GUARDED_BY(mutex_);
  // The highest that each id was announced with; without those of no epoch.
  std::map<std::string, uint64_t> epochs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_MEMORY_SNAPSHOT_STORE_H_
