// RocksDbStateStore: durable states in a folder, on RocksDB.
//
//   auto store = RocksDbStateStore::Open(*toolbox, {.path = "/var/lib/shop/states"}).value();
//
// With sync on, which is the default, what was answered with success survives a loss of power. What is said of crashes,
// full disks, locks and reading only in rocksdb_journal.h holds here too.
//
// Layout, of schema 1. Column family "states": id -> record with a version byte and a checksum. A deleted state leaves a
// record with its revision. Records of version 1, which do not say who wrote them, are read as those of no writer.
// The default column family has the tokens of owners (owner_epochs.h), which older programs ignore.
//
// Thread safety: as StateStorage; the destructor as RocksDbJournal's.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_STATE_STORE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_STATE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/state/state_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fraktor::inline v0 {

struct RocksDbStateStoreOptions {
  // The folder, which is made if it is missing. Its parent must be there. Not that of another store.
  std::string path = {};
  // Whether each commit waits for the disk.
  bool sync = true;
  bool create_if_missing = true;
  // Only look; what would change something gets kReadOnly.
  bool read_only = false;
  // If the write-ahead log is missing, or damaged before its end.
  OnDamagedLog on_damaged_log = OnDamagedLog::kRefuse;
  // Hears, while it is opened for writing, of each line of open_report(). Null: a line on standard error.
  std::function<void(const std::string&)> on_warning = {};
  StateLimits limits = {};
  // Requests that change something and wait, in number and in bytes. A request is refused
  // (kOverloaded) if those before it have reached a limit.
  size_t max_waiting_requests = 65'536;
  size_t max_waiting_bytes = size_t{256} << 20;
  // From 1 to 64.
  int reader_threads = 2;
  size_t block_cache_bytes = size_t{32} << 20;
  size_t write_buffer_bytes = size_t{32} << 20;
  // States from this size on go to blob files.
  size_t min_blob_bytes = size_t{4} << 10;
  // Another world of files, for tests. Outlives the store.
  rocksdb::Env* env = nullptr;
};

class RocksDbStateStore final : public StateStorage {
 public:
  // As RocksDbJournal::Open.
  static absl::StatusOr<std::unique_ptr<RocksDbStateStore>> Open(RuntimeToolbox& toolbox,
                                                                 const RocksDbStateStoreOptions& options);
  ~RocksDbStateStore() override;

  Future<StoredState> Load(std::string persistence_id) override;
  Future<void> OpenWriter(std::string persistence_id, uint64_t token) override;
  Future<void> Upsert(DurableState state, uint64_t token) override;
  Future<void> Delete(std::string persistence_id, uint64_t revision, WriterId writer, uint64_t token) override;
  Future<void> Close() override;
  StoreIdentity identity() const override;
  Future<void> RememberPartner(std::string role, std::string id) override;
  const StateLimits& limits() const override;

  const RocksDbOpenReport& open_report() const;

 private:
  class Core;

  explicit RocksDbStateStore(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_STATE_STORE_H_
