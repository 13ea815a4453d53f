#include "fraktor/persistence/rocksdb/owner_epochs.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/write_batch.h"

#include "fraktor/persistence/journal/crc32c.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/journal/writer_rules.h"
#include "fraktor/persistence/rocksdb/database.h"
#include "fraktor/persistence/rocksdb/mutation.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {
namespace {

std::string OwnerKey(std::string_view persistence_id) { return absl::StrCat("owner ", std::string(persistence_id)); }

}  // namespace

absl::StatusOr<uint64_t> OwnerEpochs::Read(Database& database, const std::string& persistence_id) const {
  const auto claimed = in_group_.find(persistence_id);
  if (claimed != in_group_.end()) return claimed->second;
  const std::string key = OwnerKey(persistence_id);
  rocksdb::PinnableSlice record;
  const rocksdb::Status found =
      database.db().Get(rocksdb::ReadOptions(), database.default_column_family(), key, &record);
  if (found.IsNotFound()) return kNoEpoch;
  if (!found.ok())
    return database.ToStatus(found, absl::StrCat("read the epoch of the owner of \"", persistence_id, "\""));
  if (record.size() != 12 ||
      ExtendCrc32c(ExtendCrc32c(0, key), std::string_view(record.data(), 8)) != LoadFixed32(record.data() + 8)) {
    return IdError(absl::StatusCode::kDataLoss, JournalErrorKind::kCorrupt, persistence_id,
                   "the record of the epoch of its owner has a wrong checksum. Restore it from a backup");
  }
  return LoadFixed64(record.data());
}

absl::Status OwnerEpochs::Claim(Database& database, rocksdb::WriteBatch& batch, const std::string& persistence_id,
                                uint64_t epoch) {
  FRAKTOR_ASSIGN_OR_RETURN(const uint64_t known, Read(database, persistence_id));
  if (!IsMutated("snapshot_without_epoch")) FRAKTOR_RETURN_IF_ERROR(CheckNotFenced(persistence_id, known, epoch));
  if (epoch == known) return absl::OkStatus();
  const std::string key = OwnerKey(persistence_id);
  std::string record;
  AppendFixed64(record, epoch);
  AppendFixed32(record, ExtendCrc32c(ExtendCrc32c(0, key), record));
  batch.Put(database.default_column_family(), key, record);
  in_group_.insert_or_assign(persistence_id, epoch);
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
