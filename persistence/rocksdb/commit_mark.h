// CommitMark: a file beside a database that says how far its write-ahead log was synced.
//
// A log that is cut between two records, or to 0 bytes, looks whole. The mark tells that from a log
// that was never longer. The mark is synced when the log changes and once per second, so a loss of
// power may set it back: a mark behind the log is legal, a log behind the mark has lost what was
// acknowledged.
//
// A folder without a mark is legal: older versions wrote none, and backups made by RocksDB have
// none. A mark that cannot be read counts as none. An error while writing the mark is no error of
// the commit: the mark stays behind then, until the database is opened again.
//
// The format of the file COMMIT-MARK: two slots, at byte 0 and at byte 512, written in turn, so
// that one of them is whole at any time. The whole slot with the greater serial number counts.
// Numbers are little endian. A slot has "fraktorM", a serial number (8 bytes), how many logs follow
// (4 bytes), for each log its number (8 bytes) and how many bytes of it were synced (8 bytes), and
// the CRC-32C of all that (4 bytes). The rest of the file is 0.
//
// Thread safety: one thread.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_MARK_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_MARK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/status.h"

namespace fraktor::inline v0 {

// How much of a write-ahead log was synced.
struct LogPosition {
  // The number of the file.
  uint64_t log = 0;
  uint64_t bytes = 0;

  friend bool operator==(const LogPosition&, const LogPosition&) = default;
};

class CommitMark {
 public:
  static constexpr const char* kFileName = "COMMIT-MARK";

  // A mark has no more logs.
  static constexpr size_t kMaxLogs = 30;

  // The logs in the order of their numbers; none if there is no mark. Safe while a store has the
  // folder open and writes the mark.
  static std::vector<LogPosition> Read(rocksdb::Env& env, const std::string& folder);

  CommitMark(rocksdb::Env& env, const std::string& folder);
  ~CommitMark();
  CommitMark(const CommitMark&) = delete;
  CommitMark& operator=(const CommitMark&) = delete;

  // The logs are synced up to there. They come in the order of their numbers; the newest kMaxLogs
  // count. Makes the file if there is none.
  void Write(std::vector<LogPosition> logs);
  // Syncs what was written, and closes the file; Write opens it again.
  void Close();

 private:
  rocksdb::Status Open();
  rocksdb::Status WriteSlot(const std::vector<LogPosition>& logs);
  rocksdb::Status Sync();

  rocksdb::Env& env_;
  const std::string folder_;
  const std::string path_;
  std::unique_ptr<rocksdb::RandomRWFile> file_;
  // Whether writing has failed.
  bool has_failed_ = false;
  std::vector<LogPosition> written_;
  // Whether `written_` is not synced yet.
  bool is_dirty_ = false;
  uint64_t synced_log_ = 0;
  uint64_t synced_at_micros_ = 0;
  uint64_t serial_ = 0;
  size_t next_slot_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_COMMIT_MARK_H_
