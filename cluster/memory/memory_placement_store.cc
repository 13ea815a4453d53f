#include "fraktor/cluster/memory/memory_placement_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

MemoryPlacementStore::MemoryPlacementStore(const RuntimeToolbox& toolbox, const PlacementTableOptions& options)
    : toolbox_(toolbox), table_(options) {
  MutexLock lock(mutex_);
  table_.Restore(static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(toolbox.WallNow()))), {});
}

Future<PlacementLease> MemoryPlacementStore::TryAcquire(GrainKey key, std::string owner, Instant /*now*/) {
  MutexLock lock(mutex_);
  return MakeReadyFuture<PlacementLease>(table_.TryAcquire(key, owner, toolbox_.Now()));
}

Future<void> MemoryPlacementStore::Release(PlacementLease lease) {
  MutexLock lock(mutex_);
  return MakeReadyFuture<void>(table_.Release(lease, toolbox_.Now()));
}

Future<LoadedActivation> MemoryPlacementStore::Load(GrainKey key) {
  MutexLock lock(mutex_);
  return MakeReadyFuture<LoadedActivation>(table_.Load(key));
}

Future<void> MemoryPlacementStore::Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) {
  MutexLock lock(mutex_);
  return MakeReadyFuture<void>(table_.Store(key, entry, expected_token, toolbox_.Now()));
}

Future<void> MemoryPlacementStore::Remove(GrainKey key, uint64_t token) {
  MutexLock lock(mutex_);
  table_.Remove(key, token);
  return MakeReadyFuture();
}

size_t MemoryPlacementStore::locks() const {
  MutexLock lock(mutex_);
  return table_.locks();
}

size_t MemoryPlacementStore::activations() const {
  MutexLock lock(mutex_);
  return table_.activations();
}

}  // namespace fraktor::inline v0
