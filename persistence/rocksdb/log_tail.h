// TornLogTails: which write-ahead logs of a database end in the middle of a record.
//
//   for (const std::string& line : TornLogTails(*env, path)) ...   // "/…/000012.log: dropping 57 bytes; …"
//
// RocksDB drops the torn end of a log without a word, since a crash leaves one as a matter of course. Reads the logs
// once, before the database is opened.
//
// The format, which has been the same since LevelDB: blocks of 32 KiB; records of a header (checksum, 2 bytes of
// length, 1 byte of type) and data, none across two blocks; what is longer is in pieces: first, middle, last.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_LOG_TAIL_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_LOG_TAIL_H_

#include <string>
#include <vector>

#include "rocksdb/env.h"

namespace fraktor::inline v0 {

std::vector<std::string> TornLogTails(rocksdb::Env& env, const std::string& path);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_LOG_TAIL_H_
