// RocksDbSnapshotStore: snapshots in a folder, on RocksDB.
//
//   auto store = RocksDbSnapshotStore::Open(*toolbox, {.path = "/var/lib/shop/snapshots"}).value();
//
// A database of its own, beside the journal's, so that a large snapshot does not hold up the commit of an event. Large
// ones go to RocksDB's blob files and are not copied by its compactions.
//
// With sync on, which is the default, what was answered with success survives a loss of power. What is said of crashes,
// full disks, locks and reading only in rocksdb_journal.h holds here too.
//
// Layout, of schema 1. Column family "index": be16(length) | id | be64(number) | be64(time) -> size of the record;
// "records": the same key -> record with a version byte and a checksum. Searching reads the index only.
// The default column family has the epochs of owners (owner_epochs.h), which older programs ignore.
//
// Thread safety: as SnapshotStorage; the destructor as RocksDbJournal's.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_SNAPSHOT_STORE_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_SNAPSHOT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "fraktor/persistence/journal/store_identity.h"
#include "fraktor/persistence/rocksdb/open_report.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fraktor::inline v0 {

struct RocksDbSnapshotStoreOptions {
  // The folder, which is made if it is missing. Its parent must be there. Not the journal's.
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
  SnapshotLimits limits = {};
  // Requests that change something and wait, in number and in bytes. A request is refused
  // (kOverloaded) if those before it have reached a limit.
  size_t max_waiting_requests = 65'536;
  size_t max_waiting_bytes = size_t{512} << 20;
  // From 1 to 64.
  int reader_threads = 2;
  size_t block_cache_bytes = size_t{8} << 20;
  size_t write_buffer_bytes = size_t{32} << 20;
  // Snapshots from this size on go to blob files.
  size_t min_blob_bytes = size_t{4} << 10;
  // Another world of files, for tests. Outlives the store.
  rocksdb::Env* env = nullptr;
};

class RocksDbSnapshotStore final : public SnapshotStorage {
 public:
  // As RocksDbJournal::Open.
  static absl::StatusOr<std::unique_ptr<RocksDbSnapshotStore>> Open(RuntimeToolbox& toolbox,
                                                                    const RocksDbSnapshotStoreOptions& options);
  ~RocksDbSnapshotStore() override;

  Future<void> OpenWriter(std::string persistence_id, uint64_t epoch) override;
  Future<SnapshotMetadata> Save(Snapshot snapshot, uint64_t epoch) override;
  Future<std::optional<Snapshot>> Load(std::string persistence_id, SnapshotSelectionCriteria criteria) override;
  Future<void> Delete(std::string persistence_id, uint64_t sequence_nr, uint64_t epoch) override;
  Future<void> DeleteMatching(std::string persistence_id, SnapshotSelectionCriteria criteria, uint64_t epoch) override;
  Future<void> Close() override;
  StoreIdentity identity() const override;
  Future<void> RememberPartner(std::string role, std::string id) override;
  const SnapshotLimits& limits() const override;

  const RocksDbOpenReport& open_report() const;

 private:
  class Core;

  explicit RocksDbSnapshotStore(std::unique_ptr<Core> core);

  const std::unique_ptr<Core> core_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_SNAPSHOT_STORE_H_
