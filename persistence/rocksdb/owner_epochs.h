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

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/rocksdb/commit_queue.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

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

// Announces an owner. A Core is the inside of a store: it has engine(), owners(), and
// BeginPrepare(batch), which every Prepare calls first. `of_what` has static storage: "snapshots".
template <class Core>
class ClaimOperation final : public CommitQueue::Operation {
 public:
  ClaimOperation(Core& core, std::string persistence_id, uint64_t epoch, std::string_view of_what,
                 Promise<void> promise)
      : core_(core),
        persistence_id_(std::move(persistence_id)),
        epoch_(epoch),
        of_what_(of_what),
        promise_(std::move(promise)) {}

  Outcome Prepare(rocksdb::WriteBatch& batch) override {
    core_.BeginPrepare(batch);
    result_ = core_.owners().Claim(core_.engine().database(), batch, persistence_id_, epoch_);
    return Outcome::kReady;
  }
  void Complete(const absl::Status& committed) override {
    promise_.Set(committed.ok() ? result_
                                : Annotate(committed, absl::StrCat("announce the owner of ", ToAbsl(of_what_), " of \"",
                                                                   persistence_id_, "\"")));
    core_.engine().Leave();
  }
  size_t byte_size() const override { return persistence_id_.size() + 64; }

 private:
  Core& core_;
  const std::string persistence_id_;
  const uint64_t epoch_;
  const std::string_view of_what_;
  Promise<void> promise_;
  absl::Status result_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_OWNER_EPOCHS_H_
