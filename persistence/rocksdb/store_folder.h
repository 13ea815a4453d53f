// StoreFolder: what is in the folder that a store is opened with, by the names of its files.
//
//   StoreFolder folder;
//   if (StoreFolder::Look(*env, "/var/lib/shop/journal", &folder).ok() && folder.kind == StoreFolder::Kind::kNew) {
//     ...   // a database may be made in it
//   }
//
// RocksDB makes a database wherever there is no file CURRENT, and takes what is there for rubbish of its own. An
// incomplete copy of a database, and somebody else's files, must be seen before.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FOLDER_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FOLDER_H_

#include <string>

#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace fraktor::inline v0 {

struct StoreFolder {
  enum class Kind {
    kMissing,
    kFile,
    // Empty, but for what the making of a database leaves that was interrupted before it was one.
    kNew,
    kDatabase,
    // Files of a database, without the one that says which of them count.
    kNoCurrent,
    // Something else.
    kForeign,
  };

  Kind kind = Kind::kMissing;
  bool has_logs = false;
  // Files with what is stored, apart from the log.
  bool has_tables = false;
  // As RocksDB makes it first. It has a log before it has another one.
  bool has_only_first_manifest = false;
  // Some of the names that make it kNoCurrent or kForeign: "data.txt, notes and 3 more".
  std::string names = {};

  // Not OK if the folder is there and cannot be looked at.
  static rocksdb::Status Look(rocksdb::Env& env, const std::string& path, StoreFolder* folder);
};

// The file by which a store looks whether there is room.
inline constexpr const char* kProbeName = "room.probe";

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_STORE_FOLDER_H_
