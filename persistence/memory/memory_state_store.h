// MemoryStateStore: durable states in memory, for tests, for simulations, and for state that need
// not survive the process.
//
//   std::unique_ptr<MemoryStateStore> store = MemoryStateStore::Open({}).value();
//
// Futures are ready when they are returned.
//
// Thread safety: as StateStorage.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_MEMORY_STATE_STORE_H_
#define FRAKTOR_PERSISTENCE_MEMORY_MEMORY_STATE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

struct MemoryStateStoreOptions {
  StateLimits limits = {};
};

class MemoryStateStore final : public StateStorage {
 public:
  // InvalidArgument for a bad option.
  static absl::StatusOr<std::unique_ptr<MemoryStateStore>> Open(const MemoryStateStoreOptions& options);

  Future<StoredState> Load(std::string persistence_id) override;
  Future<void> OpenWriter(std::string persistence_id, uint64_t token) override;
  Future<void> Upsert(DurableState state, uint64_t token) override;
  Future<void> Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) override;
  Future<void> Close() override;
  const StateLimits& limits() const override { return limits_; }

 private:
  explicit MemoryStateStore(const MemoryStateStoreOptions& options) : limits_(options.limits) {}

  absl::StatusOr<StoredState> LoadNow(const std::string& persistence_id);
  absl::Status OpenNow(const std::string& persistence_id, uint64_t token);
  absl::Status ChangeNow(StoredState change, uint64_t token);
  // An error if the token is fenced. Remembers it otherwise.
  absl::Status Claim(const std::string& persistence_id, uint64_t token) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StateLimits limits_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, StoredState> states_ ABSL_GUARDED_BY(mutex_);
  // The highest that each id was announced with; without those of no token.
  absl::flat_hash_map<std::string, uint64_t> tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_MEMORY_STATE_STORE_H_
