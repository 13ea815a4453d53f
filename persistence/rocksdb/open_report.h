// RocksDbOpenReport: what a store found when it was opened.
//
//   for (const std::string& line : journal->open_report().dropped) Log(line);
//
// After a crash, the end of the write-ahead log may be torn. What was acknowledged with sync on is before that end. The
// rest is dropped, and said here.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fraktor::inline v0 {

struct RocksDbOpenReport {
  // How often the database has been opened for writing, this time included.
  uint64_t open_count = 0;
  // One line for each place where something unreadable was dropped from the write-ahead log: the file, how many bytes
  // and why. At most 100.
  std::vector<std::string> dropped = {};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_
