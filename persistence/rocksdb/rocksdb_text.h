// RocksDbText: what a status of RocksDB says, for the texts of errors.
//
//   return absl::DataLossError(absl::StrCat(path, ": cannot be read: ", RocksDbText(status)));
//
// RocksDB looks for a file of stored things under two names, and names a missing one as it would be called in LevelDB,
// which it tries last: 000012.ldb. Here it is 000012.sst, as it was, so that it can be looked for in a backup.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_TEXT_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_TEXT_H_

#include <string>

#include "rocksdb/status.h"

namespace fraktor::inline v0 {

std::string RocksDbText(const rocksdb::Status& status);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_ROCKSDB_TEXT_H_
