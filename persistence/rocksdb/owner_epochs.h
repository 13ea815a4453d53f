// OwnerEpochs: the highest epoch that a store has heard of, for each persistence id. The stores of
// snapshots and of states fence former owners with it.
//
//   OwnerEpochs owners;
//   if (batch.Count() == 0) owners.BeginGroup();                               // in each Prepare
//   result_ = owners.Claim(database, batch, "account-7", epoch);               // kFenced: an older owner
//   if (result_.ok()) batch.Put(...);
//
// An epoch is a record of its own in the default column family, "owner " | id -> epoch | checksum.
// It is committed together with what the owner changes, and it stays when that is deleted.
//
// Thread safety: none; the worker of the commit queue owns it.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_OWNER_EPOCHS_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_OWNER_EPOCHS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/rocksdb/database.h"

namespace fraktor::inline v0 {

class OwnerEpochs {
 public:
  // A group of operations begins: all that the former groups have claimed is in the database.
  void BeginGroup() { in_group_.clear(); }

  // kFenced if a higher epoch is known. A higher one than is known goes into the batch.
  absl::Status Claim(Database& database, rocksdb::WriteBatch& batch, const std::string& persistence_id, uint64_t epoch);

 private:
  absl::StatusOr<uint64_t> Read(Database& database, const std::string& persistence_id) const;

  // The epochs that the open group claims. The database does not show them before the commit.
  absl::flat_hash_map<std::string, uint64_t> in_group_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_OWNER_EPOCHS_H_
