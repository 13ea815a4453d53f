// SurveyLogs: reads the write-ahead logs of a database, and says where they are damaged.
//
// A crash may tear the end of a log: what was written last is not whole, and nothing follows. RocksDB drops that without
// a word, as it should. Damage that good records follow is something else: they were written after the damaged one, so
// with sync on that one was acknowledged. RocksDB drops it, and all behind it, in the same way.
//
// The rest of a record that is in pieces is no good record: the pieces of one record may reach the disk in any order.
//
// The survey reads logs by itself (log_format.h), and does not use the reader of RocksDB.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_LOG_SURVEY_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_LOG_SURVEY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rocksdb/env.h"

#include "fraktor/persistence/rocksdb/commit_mark.h"

namespace fraktor::inline v0 {

struct LogSurvey {
  std::string path = {};
  // Of the file: later logs have greater ones.
  uint64_t number = 0;
  uint64_t bytes = 0;
  // Whether it has a whole record, with something in it, before the damage.
  bool has_records = false;
  // RocksDB numbers what is stored, one by one: the number of the first thing in those records, and the one that the
  // next log begins with. 0 if there are none.
  uint64_t first_sequence = 0;
  uint64_t next_sequence = 0;
  // Where the first thing begins that is not a whole record.
  std::optional<uint64_t> damaged_at = {};
  // Where the first record begins behind that.
  std::optional<uint64_t> good_behind = {};
};

// In the order in which they were written. Those that cannot be opened are left out: RocksDB has something to say of
// them itself.
std::vector<LogSurvey> SurveyLogs(rocksdb::Env& env, const std::string& path);

// What the list of files of a database (MANIFEST), which has the same format, says of its logs.
struct LogsNeeded {
  // The greatest number from which on a column family needs logs: that log, or a later one, is there unless it was lost. A
  // later one that no family has begun to need is not named in the list. 0 if there is none.
  uint64_t newest = 0;
  // The number from which on logs count; those below are waste that was not taken away. Either that is a log, or, after
  // the database was opened, the first one behind it that RocksDB has made. Not there: nobody knows.
  std::optional<uint64_t> first = {};
  // What had been stored when that became the first one. A log that was made by then begins with the next number, or
  // with one before.
  uint64_t sequence = 0;
  // It is a log, and so it is there unless it was lost: it was made since the database was opened.
  bool first_is_log = false;
};
LogsNeeded SurveyNeed(rocksdb::Env& env, const std::string& path);

// What is missing before the first log that counts, or between two: where, as a text. None if nothing is. Not of logs
// that are damaged: those are to be judged first.
std::optional<std::string> MissingLog(const LogsNeeded& needed, const std::vector<LogSurvey>& logs);

// The first log that ends before its place in the mark, or the newest log of the mark if it is
// missing: a text that says so. None if nothing is lost. Logs that no longer count are left out,
// and so are other logs that are missing: MissingLog finds those.
std::optional<std::string> LostBeforeMark(const std::vector<LogPosition>& mark, const LogsNeeded& needed,
                                          const std::vector<LogSurvey>& logs);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_LOG_SURVEY_H_
