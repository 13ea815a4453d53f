#include "fraktor/cluster/memory/placement_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

void PlacementTable::Restore(uint64_t last_token, std::vector<std::pair<GrainKey, ActivationEntry>> activations) {
  last_token_ = last_token;
  for (auto& [key, entry] : activations) activations_.insert_or_assign(std::move(key), std::move(entry));
}

absl::StatusOr<PlacementLease> PlacementTable::TryAcquire(const GrainKey& key, const std::string& owner, Instant now) {
  const auto found = locks_.find(key);
  if (found != locks_.end() && now < found->second.expires_at) {
    return MakeLockError(absl::StatusCode::kUnavailable, PlacementLockError::kHeld, key,
                         absl::StrCat("\"", found->second.owner, "\" holds it for another ",
                                      absl::FormatDuration(found->second.expires_at - now)));
  }
  if (found == locks_.end() && locks_.size() >= options_.max_locks) {
    RemoveExpired(now);
    if (locks_.size() >= options_.max_locks) {
      return absl::ResourceExhaustedError(absl::StrCat(locks_.size(), " locks are held; try again later"));
    }
  }
  const Instant expires_at = now + options_.lease_ttl;
  locks_.insert_or_assign(key, Lock{.owner = owner, .token = ++last_token_, .expires_at = expires_at});
  return PlacementLease{.key = key, .owner = owner, .expires_at = expires_at, .token = last_token_};
}

absl::Status PlacementTable::Release(const PlacementLease& lease, Instant now) {
  const auto found = locks_.find(lease.key);
  if (found == locks_.end() || found->second.token != lease.token) {
    return MakeLockError(absl::StatusCode::kNotFound, PlacementLockError::kLost, lease.key,
                         absl::StrCat("token ", lease.token, " does not hold it any more"));
  }
  const bool was_over = now >= found->second.expires_at;
  locks_.erase(found);
  if (was_over) {
    return MakeLockError(absl::StatusCode::kNotFound, PlacementLockError::kLost, lease.key,
                         absl::StrCat("the lease of token ", lease.token, " was over"));
  }
  return absl::OkStatus();
}

std::optional<PlacementLease> PlacementTable::Held(const GrainKey& key, Instant now) const {
  const auto found = locks_.find(key);
  if (found == locks_.end() || now >= found->second.expires_at) return std::nullopt;
  return PlacementLease{
      .key = key, .owner = found->second.owner, .expires_at = found->second.expires_at, .token = found->second.token};
}

LoadedActivation PlacementTable::Load(const GrainKey& key) const {
  const auto found = activations_.find(key);
  if (found == activations_.end()) return {};
  return LoadedActivation{.exists = true, .entry = found->second};
}

absl::Status PlacementTable::CheckFencing(const GrainKey& key, const ActivationEntry& entry, uint64_t stored_token,
                                          uint64_t expected_token, Instant now) const {
  if (options_.is_unfenced_for_testing) return absl::OkStatus();
  const auto lock = locks_.find(key);
  if (lock == locks_.end() || lock->second.token != entry.token || now >= lock->second.expires_at) {
    return MakeStorageError(absl::StatusCode::kAborted, ActivationStorageError::kFenced, key,
                            absl::StrCat("token ", entry.token, " of \"", entry.owner, "\" does not hold the lock"));
  }
  if (stored_token != expected_token) {
    return MakeStorageError(absl::StatusCode::kAborted, ActivationStorageError::kConflict, key,
                            absl::StrCat("token ", stored_token, " is stored, not ", expected_token));
  }
  if (entry.token <= stored_token) {
    return MakeStorageError(absl::StatusCode::kAborted, ActivationStorageError::kFenced, key,
                            absl::StrCat("token ", entry.token, " is not above ", stored_token));
  }
  return absl::OkStatus();
}

absl::Status PlacementTable::Store(const GrainKey& key, ActivationEntry entry, uint64_t expected_token, Instant now) {
  const auto stored = activations_.find(key);
  const bool exists = stored != activations_.end();
  const uint64_t stored_token = exists ? stored->second.token : 0;
  if (exists && stored_token == entry.token && stored->second.owner == entry.owner) return absl::OkStatus();
  FRAKTOR_RETURN_IF_ERROR(CheckFencing(key, entry, stored_token, expected_token, now));
  if (!exists && activations_.size() >= options_.max_activations) {
    return absl::ResourceExhaustedError(absl::StrCat(activations_.size(), " activations are stored"));
  }
  if (exists) {
    stored->second = std::move(entry);
  } else {
    activations_.emplace(key, std::move(entry));
  }
  return absl::OkStatus();
}

void PlacementTable::Remove(const GrainKey& key, uint64_t token) {
  const auto found = activations_.find(key);
  if (found != activations_.end() && found->second.token == token) activations_.erase(found);
}

void PlacementTable::RemoveExpired(Instant now) {
  absl::erase_if(locks_, [now](const auto& lock) { return now >= lock.second.expires_at; });
}

}  // namespace fraktor::inline v0
