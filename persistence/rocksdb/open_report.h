// RocksDbOpenReport: what a store found when it was opened. OnDamagedLog: what it does if its log is damaged.
//
//   for (const std::string& line : journal->open_report().dropped) Log(line);
//
// After a crash, the end of the write-ahead log may be torn. Everything that was acknowledged with
// sync on is before that end. The store drops the torn end, and says so here and to `on_warning` of
// its options. The mark beside the database (CommitMark) says how far the log was synced: an end
// that is torn or missing before that place is damage. Without a mark, and for the last second
// before a loss of power, nobody can tell from the file: `journal verify` names the end before a
// store drops it.
//
// Damage that good records follow is not what a crash leaves: what was acknowledged is behind it.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fraktor::inline v0 {

// If the write-ahead log is missing, damaged before its end, or ends before what was synced.
enum class OnDamagedLog {
  // Open fails with kCorrupt, and changes nothing.
  kRefuse,
  // Opens with what is before the damage. All behind it is dropped for good. Where sync is off, a loss of power may ask
  // for this.
  kDropRest,
  // Leaves out what is damaged and goes on behind it, so that ids may have gaps. Also opens if other files are damaged,
  // as far as that can be done. Only to look: needs read_only.
  kSkip,
};

struct RocksDbOpenReport {
  // How often the database has been opened for writing, this time included. If the database does
  // not count that: how often it was opened in this process.
  uint64_t open_count = 0;
  // One line for each place where something unreadable was dropped from the write-ahead log: the file, how many bytes
  // and why. At most 100.
  std::vector<std::string> dropped = {};
  // What OnDamagedLog has let pass: one line for each log, with its file and where the damage is.
  std::vector<std::string> damaged = {};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_OPEN_REPORT_H_
