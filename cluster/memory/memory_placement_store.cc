#include "fraktor/cluster/memory/memory_placement_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fraktor::inline v0 {

MemoryPlacementStore::MemoryPlacementStore(const RuntimeToolbox& toolbox, const PlacementTableOptions& options)
    : toolbox_(toolbox) {
  const PlacementTableOptions of_part{.lease_ttl = options.lease_ttl,
                                      .max_locks = (options.max_locks + kParts - 1) / kParts,
                                      .max_activations = (options.max_activations + kParts - 1) / kParts};
  const auto first = static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(toolbox.WallNow())));
  for (std::unique_ptr<Part>& part : parts_) {
    part = std::make_unique<Part>(of_part);
    MutexLock lock(part->mutex);
    part->table.Restore(first, {});
  }
}

Future<PlacementLease> MemoryPlacementStore::TryAcquire(GrainKey key, std::string owner, Instant /*now*/) {
  Part& part = PartOf(key);
  MutexLock lock(part.mutex);
  return MakeReadyFuture<PlacementLease>(part.table.TryAcquire(key, owner, toolbox_.Now()));
}

Future<void> MemoryPlacementStore::Release(PlacementLease lease) {
  Part& part = PartOf(lease.key);
  MutexLock lock(part.mutex);
  return MakeReadyFuture<void>(part.table.Release(lease, toolbox_.Now()));
}

Future<LoadedActivation> MemoryPlacementStore::Load(GrainKey key) {
  Part& part = PartOf(key);
  MutexLock lock(part.mutex);
  return MakeReadyFuture<LoadedActivation>(part.table.Load(key));
}

Future<void> MemoryPlacementStore::Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) {
  Part& part = PartOf(key);
  MutexLock lock(part.mutex);
  return MakeReadyFuture<void>(part.table.Store(key, std::move(entry), expected_token, toolbox_.Now()));
}

Future<void> MemoryPlacementStore::Remove(GrainKey key, uint64_t token) {
  Part& part = PartOf(key);
  MutexLock lock(part.mutex);
  part.table.Remove(key, token);
  return MakeReadyFuture();
}

size_t MemoryPlacementStore::locks() const {
  size_t sum = 0;
  for (const std::unique_ptr<Part>& part : parts_) {
    MutexLock lock(part->mutex);
    sum += part->table.locks();
  }
  return sum;
}

size_t MemoryPlacementStore::activations() const {
  size_t sum = 0;
  for (const std::unique_ptr<Part>& part : parts_) {
    MutexLock lock(part->mutex);
    sum += part->table.activations();
  }
  return sum;
}

}  // namespace fraktor::inline v0
