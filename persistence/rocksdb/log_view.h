// LogView: a write-ahead log as RocksDB may read it: only pieces that our own reader can read.
//
// RocksDB 7.8 to 9.11 loops without end where a piece has the type of a file that is used again:
// the garbage at the end of a torn log may look so, and one flipped bit makes such a piece.
//
// Thread safety: as rocksdb::FSSequentialFile.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_LOG_VIEW_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_LOG_VIEW_H_

#include <cstdint>
#include <memory>

#include "rocksdb/file_system.h"

namespace fraktor::inline v0 {

enum class LogReading {
  // The file up to the first piece that cannot be read, and then one byte. All versions of RocksDB
  // take that for the torn end of a log, and do what they are told to do about one.
  kUpToDamage,
  // All records of the file that can be read, in order, as a log of their own without any damage.
  kGoodRecords,
};

std::unique_ptr<rocksdb::FSSequentialFile> MakeLogView(LogReading reading, uint64_t log_number,
                                                       std::unique_ptr<rocksdb::FSSequentialFile> file);

// The list of files of a database (MANIFEST), which RocksDB reads with the same reader, and judges
// by itself. Reading a piece that would make it loop, or that it would take for the end, fails with
// Corruption: the list has no such pieces.
std::unique_ptr<rocksdb::FSSequentialFile> MakeManifestView(std::unique_ptr<rocksdb::FSSequentialFile> file);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_LOG_VIEW_H_
