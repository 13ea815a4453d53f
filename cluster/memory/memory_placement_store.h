// MemoryPlacementStore: the lock and the storage of placement in memory: for tests, and for a cluster of one process.
// What is in it ends with it, and so do the grains.
//
//   auto store = std::make_shared<MemoryPlacementStore>(toolbox);
//   auto driver = PlacementCoordinatorDriver::Make({toolbox, executor, store, store, actors}, {}).value();
//
// Futures are ready when they are returned.
//
// Thread safety: any thread. Keys are spread over parts with a lock each, so nodes that activate at the same time seldom
// wait for each other.
#ifndef FRAKTOR_CLUSTER_MEMORY_MEMORY_PLACEMENT_STORE_H_
#define FRAKTOR_CLUSTER_MEMORY_MEMORY_PLACEMENT_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/memory/placement_table.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

class MemoryPlacementStore final : public PlacementLock, public ActivationStorage {
 public:
  // Its clock is the toolbox's, which must outlive it.
  // Tokens begin at the date, in microseconds: so they are above those of an earlier process, which a journal on a disk
  // remembers, unless the clock was set back. Each part has its share of the limits, rounded up.
  explicit MemoryPlacementStore(const RuntimeToolbox& toolbox, const PlacementTableOptions& options = {});

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override;
  Future<void> Release(PlacementLease lease) override;
  Future<LoadedActivation> Load(GrainKey key) override;
  Future<void> Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) override;
  Future<void> Remove(GrainKey key, uint64_t token) override;

  size_t locks() const;
  size_t activations() const;

 private:
  static constexpr size_t kParts = 16;

  struct Part {
    explicit Part(const PlacementTableOptions& options) : table(options) {}
    mutable Mutex mutex;
    PlacementTable table ABSL_GUARDED_BY(mutex);
  };

  // One key is always in one part, so its tokens grow.
  Part& PartOf(const GrainKey& key) { return *parts_[key.hash() % kParts]; }

  const RuntimeToolbox& toolbox_;
  std::array<std::unique_ptr<Part>, kParts> parts_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMORY_MEMORY_PLACEMENT_STORE_H_
