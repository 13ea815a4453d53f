// LogFiles: the files of a database as RocksDB sees them. It shows only the parts of logs that can
// be read (LogView), and watches how far logs are synced.
//
// Thread safety: all methods may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FILES_H_
#define FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FILES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"

#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/log_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// The number of a write-ahead log, from its path: 12 for "/var/lib/shop/journal/000012.log". None
// for other files.
std::optional<uint64_t> LogNumberOf(const std::string& path);

class LogFiles final : public rocksdb::FileSystemWrapper, public std::enable_shared_from_this<LogFiles> {
 public:
  LogFiles(std::shared_ptr<rocksdb::FileSystem> target, LogReading reading)
      : rocksdb::FileSystemWrapper(std::move(target)), reading_(reading) {}

  // An environment with these files, and everything else of `base`.
  std::unique_ptr<rocksdb::Env> MakeEnv(rocksdb::Env& base);

  // The logs of which something was synced, and which are not deleted yet, in the order of their
  // numbers.
  std::vector<LogPosition> synced() const;

  // The lowest number of a log that was opened for reading. None if none was.
  std::optional<uint64_t> first_read() const;

  const char* Name() const override { return "fraktor::LogFiles"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  class WatchedLog;

  void NoteSynced(const LogPosition& position);

  const LogReading reading_;
  mutable Mutex mutex_;
  // Bytes by the number of the log.
  std::map<uint64_t, uint64_t> synced_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> first_read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ROCKSDB_LOG_FILES_H_
