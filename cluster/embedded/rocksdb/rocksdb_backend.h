// RocksDbBackend: keeps what an EmbeddedStore knows in a folder.
//
//   FRAKTOR_ASSIGN_OR_RETURN(std::shared_ptr<RocksDbBackend> backend, RocksDbBackend::Open("/var/lib/shop/cluster"));
//   FRAKTOR_RETURN_IF_ERROR(EmbeddedStore::Start(system, {.backend = backend}));
//
// One process at a time: RocksDB locks the folder.
//
// Thread safety: as EmbeddedBackend.
#ifndef FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_
#define FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/embedded/embedded_backend.h"

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace fraktor::inline v0 {

class RocksDbBackend final : public EmbeddedBackend {
 public:
  // Makes the folder if there is none, its parents excepted. FailedPrecondition if a newer version has written it,
  // Unavailable if RocksDB cannot open it.
  static absl::StatusOr<std::shared_ptr<RocksDbBackend>> Open(const std::string& folder);
  ~RocksDbBackend() override;

  absl::StatusOr<EmbeddedState> Load() override;
  absl::Status Write(const EmbeddedChanges& changes) override;

 private:
  RocksDbBackend(std::string folder, std::unique_ptr<rocksdb::DB> db);

  const std::string folder_;
  const std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_EMBEDDED_ROCKSDB_ROCKSDB_BACKEND_H_
