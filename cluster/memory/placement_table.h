// PlacementTable: the locks and activations of a cluster in one place, and the rules by which they change. Pure: what
// time it is comes in as an argument. Behind it may be memory, a disk or an actor that others talk to.
//
//   PlacementTable table({.lease_ttl = absl::Seconds(10)});
//   absl::StatusOr<PlacementLease> lease = table.TryAcquire(key, "a:1#7", now);
//   LoadedActivation loaded = table.Load(key);
//   ActivationEntry entry{.owner = "a:1#7", .record = {.pid = pid}, .token = lease->token};
//   absl::Status stored = table.Store(key, entry, loaded.entry.token, now);
//
// Since it knows the locks, it accepts an activation only from the token that holds the lock now.
//
// Thread safety: none; the owner locks.
#ifndef FRAKTOR_CLUSTER_MEMORY_PLACEMENT_TABLE_H_
#define FRAKTOR_CLUSTER_MEMORY_PLACEMENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct PlacementTableOptions {
  absl::Duration lease_ttl = absl::Seconds(10);
  // Locks that are held, and activations; one more of either is refused with ResourceExhausted.
  size_t max_locks = 1'000'000;
  size_t max_activations = 20'000'000;
  // Takes every activation, of whatever token: for tests that must notice that.
  bool is_unfenced_for_testing = false;
};

class PlacementTable {
 public:
  explicit PlacementTable(const PlacementTableOptions& options = {}) : options_(options) {}

  // What an earlier table had: its activations, and a token that is not below any that it has given. Locks are not among
  // it: who held one finds its token refused.
  void Restore(uint64_t last_token, std::vector<std::pair<GrainKey, ActivationEntry>> activations);

  // As PlacementLock. The lease ends at `now` + lease_ttl of this clock; its expires_at is of this clock too.
  absl::StatusOr<PlacementLease> TryAcquire(const GrainKey& key, const std::string& owner, Instant now);
  absl::Status Release(const PlacementLease& lease, Instant now);
  // Who has the lock; none if nobody has.
  std::optional<PlacementLease> Held(const GrainKey& key, Instant now) const;

  // As ActivationStorage.
  LoadedActivation Load(const GrainKey& key) const;
  absl::Status Store(const GrainKey& key, ActivationEntry entry, uint64_t expected_token, Instant now);
  void Remove(const GrainKey& key, uint64_t token);

  // Forgets locks that are over; TryAcquire does it when there are too many.
  void RemoveExpired(Instant now);

  size_t locks() const { return locks_.size(); }
  size_t activations() const { return activations_.size(); }
  // The last token that was given.
  uint64_t last_token() const { return last_token_; }

 private:
  struct Lock {
    std::string owner;
    uint64_t token = 0;
    Instant expires_at;
  };

  // Whether an activation may take the place of the one that is stored.
  absl::Status CheckFencing(const GrainKey& key, const ActivationEntry& entry, uint64_t stored_token,
                            uint64_t expected_token, Instant now) const;

  const PlacementTableOptions options_;
  // One counter for all keys: so it need not be remembered for those that nobody uses any more.
  uint64_t last_token_ = 0;
  absl::flat_hash_map<GrainKey, Lock> locks_;
  absl::flat_hash_map<GrainKey, ActivationEntry> activations_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_MEMORY_PLACEMENT_TABLE_H_
