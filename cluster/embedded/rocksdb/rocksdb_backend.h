// RocksDbBackend: keeps what an EmbeddedStore knows in a folder.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto backend, RocksDbBackend::Open({.path = "/var/lib/shop/cluster"}));
//   FRAKTOR_RETURN_IF_ERROR(EmbeddedStore::Start(system, {.backend = backend}));
//
// One process at a time: RocksDB locks the folder. A folder whose write-ahead log is damaged,
// missing, or shorter than what was synced is refused, because fencing tokens could be given twice
// (Database, CommitMark). After an error the next call opens the folder again.
//
// Thread safety: as EmbeddedBackend.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_
#define FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/env.h"

#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/open_report.h"

namespace fraktor::inline v0 {

struct RocksDbBackendOptions {
  // The folder, which is made if it is missing. Its parent must be there.
  std::string path = {};
  // OnDamagedLog::kDropRest opens the folder without what is lost. Use it only when no node of the
  // cluster runs.
  OnDamagedLog on_damaged_log = OnDamagedLog::kRefuse;
  // Gets each line about what was dropped. Null: standard error.
  std::function<void(const std::string&)> on_warning = {};
  // For tests. Null: the default one.
  rocksdb::Env* env = nullptr;
};

class RocksDbBackend final : public EmbeddedBackend {
 public:
  // Makes the folder if there is none, its parents excepted. FailedPrecondition if a newer version
  // has written it, or if something else is there; DataLoss if it is damaged; NotFound without the
  // parent folder; Unavailable if it is in use or cannot be read. A folder that was refused is
  // unchanged.
  static absl::StatusOr<std::shared_ptr<RocksDbBackend>> Open(const RocksDbBackendOptions& options);
  ~RocksDbBackend() override;

  absl::StatusOr<EmbeddedState> Load() override;
  absl::Status Write(const EmbeddedChanges& changes) override;

 private:
  explicit RocksDbBackend(std::unique_ptr<Database> database);

  // Opens the folder again after an error.
  absl::Status GoOn();

  const std::unique_ptr<Database> database_;
  bool has_failed_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_
