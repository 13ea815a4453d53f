#include "fraktor/persistence/memory/memory_state_store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

absl::StatusOr<std::unique_ptr<MemoryStateStore>> MemoryStateStore::Open(const MemoryStateStoreOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckStateLimits(options.limits));
  return absl::WrapUnique(new MemoryStateStore(options));
}

Future<StoredState> MemoryStateStore::Load(std::string persistence_id) {
  return MakeReadyFuture<StoredState>(LoadNow(persistence_id));
}

absl::StatusOr<StoredState> MemoryStateStore::LoadNow(const std::string& persistence_id) {
  FRAKTOR_RETURN_IF_ERROR(CheckStateId(limits_, persistence_id));
  MutexLock lock(mutex_);
  if (closed_) return ClosedError("the state store in memory", persistence_id);
  const auto found = states_.find(persistence_id);
  if (found != states_.end()) return found->second;
  return StoredState{.state = {.persistence_id = persistence_id}};
}

absl::Status MemoryStateStore::Claim(const std::string& persistence_id, uint64_t token) {
  const auto found = tokens_.find(persistence_id);
  const uint64_t known = found == tokens_.end() ? kNoEpoch : found->second;
  FRAKTOR_RETURN_IF_ERROR(CheckNotFenced(persistence_id, known, token));
  if (token > known) tokens_.insert_or_assign(persistence_id, token);
  return absl::OkStatus();
}

Future<void> MemoryStateStore::OpenWriter(std::string persistence_id, uint64_t token) {
  return MakeReadyFuture<void>(OpenNow(persistence_id, token));
}

absl::Status MemoryStateStore::OpenNow(const std::string& persistence_id, uint64_t token) {
  FRAKTOR_RETURN_IF_ERROR(CheckStateId(limits_, persistence_id));
  FRAKTOR_RETURN_IF_ERROR(CheckOwnerEpoch(persistence_id, token));
  MutexLock lock(mutex_);
  if (closed_) return ClosedError("the state store in memory", persistence_id);
  return Claim(persistence_id, token);
}

Future<void> MemoryStateStore::Upsert(DurableState state, uint64_t token) {
  return MakeReadyFuture<void>(ChangeNow({.exists = true, .state = std::move(state)}, token));
}

Future<void> MemoryStateStore::Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) {
  return MakeReadyFuture<void>(ChangeNow(
      {.exists = false, .state = {.persistence_id = std::move(persistence_id), .revision = revision, .writer = writer}},
      token));
}

absl::Status MemoryStateStore::ChangeNow(StoredState change, uint64_t token) {
  FRAKTOR_RETURN_IF_ERROR(CheckState(limits_, change.state));
  MutexLock lock(mutex_);
  if (closed_) return ClosedError("the state store in memory", change.state.persistence_id);
  FRAKTOR_RETURN_IF_ERROR(Claim(change.state.persistence_id, token));
  const auto found = states_.find(change.state.persistence_id);
  const uint64_t stored = found == states_.end() ? 0 : found->second.state.revision;
  const bool is_stored =
      found != states_.end() && found->second.exists == change.exists && found->second.state == change.state;
  FRAKTOR_RETURN_IF_ERROR(CheckRevision(change.state.persistence_id, stored, change.state.revision, is_stored));
  if (is_stored) return absl::OkStatus();
  std::string id = change.state.persistence_id;
  states_.insert_or_assign(std::move(id), std::move(change));
  return absl::OkStatus();
}

Future<void> MemoryStateStore::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  return MakeReadyFuture();
}

}  // namespace fraktor::inline v0
