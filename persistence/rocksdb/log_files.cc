#include "fraktor/persistence/rocksdb/log_files.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "fraktor/persistence/rocksdb/commit_mark.h"
#include "fraktor/persistence/rocksdb/log_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// RocksDB takes its files from the file system of an environment, and threads from the environment.
class EnvOfFiles final : public rocksdb::EnvWrapper {
 public:
  EnvOfFiles(rocksdb::Env& base, std::shared_ptr<rocksdb::FileSystem> files) : rocksdb::EnvWrapper(&base) {
    file_system_ = std::move(files);
    system_clock_ = base.GetSystemClock();
  }
  const char* Name() const override { return "fraktor::EnvOfFiles"; }
  // RocksDB asks the environment to delete logs, and the file system for everything else.
  rocksdb::Status DeleteFile(const std::string& path) override {
    return file_system_->DeleteFile(path, IOOptions(), /*dbg=*/nullptr);
  }
};

// RocksDB answers its own error of a full disk with a thread. As soon as there is room it goes on
// behind the torn end of the log: families become files one by one then. A crash meanwhile leaves
// some that are ahead of that log, and RocksDB refuses to open them. After any other error it waits
// until the database is opened again.
IOStatus AsPlainError(const IOStatus& status) {
  if (!status.IsNoSpace()) return status;
  const char* const what = status.getState();
  return IOStatus::IOError("No space left on device", what == nullptr ? "" : what);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::optional<uint64_t> LogNumberOf(const std::string& path) {
  const std::string name = NameOf(path);
  uint64_t number = 0;
  if (!absl::EndsWith(name, ".log") || !absl::SimpleAtoi(name.substr(0, name.size() - 4), &number)) {
    return std::nullopt;
  }
  return number;
}

class LogFiles::WatchedLog final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedLog(std::shared_ptr<LogFiles> files, uint64_t number, std::unique_ptr<rocksdb::FSWritableFile> file)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), files_(std::move(files)), number_(number) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = target()->Append(data, options, debug);
    if (status.ok()) bytes_ += data.size();
    return AsPlainError(status);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* debug) override {
    const IOStatus status = target()->Append(data, options, info, debug);
    if (status.ok()) bytes_ += data.size();
    return AsPlainError(status);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    // Bytes that are appended meanwhile may not be synced.
    const LogPosition position{.log = number_, .bytes = bytes_};
    const IOStatus status = target()->Sync(options, debug);
    if (status.ok()) files_->NoteSynced(position);
    return AsPlainError(status);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const LogPosition position{.log = number_, .bytes = bytes_};
    const IOStatus status = target()->Fsync(options, debug);
    if (status.ok()) files_->NoteSynced(position);
    return AsPlainError(status);
  }

 private:
  const std::shared_ptr<LogFiles> files_;
  const uint64_t number_;
  // A log is written by one thread and may be synced by another.
  std::atomic<uint64_t> bytes_ = 0;
};

std::unique_ptr<rocksdb::Env> LogFiles::MakeEnv(rocksdb::Env& base) {
  return std::make_unique<EnvOfFiles>(base, shared_from_this());
}

std::vector<LogPosition> LogFiles::synced() const {
  MutexLock lock(mutex_);
  std::vector<LogPosition> logs;
  logs.reserve(synced_.size());
  for (const auto& [log, bytes] : synced_) logs.push_back({.log = log, .bytes = bytes});
  return logs;
}

std::optional<uint64_t> LogFiles::first_read() const {
  MutexLock lock(mutex_);
  return first_read_;
}

void LogFiles::NoteSynced(const LogPosition& position) {
  MutexLock lock(mutex_);
  uint64_t& bytes = synced_[position.log];
  bytes = std::max(bytes, position.bytes);
}

IOStatus LogFiles::NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* debug) {
  const std::optional<uint64_t> number = LogNumberOf(path);
  const bool is_manifest = absl::StartsWith(NameOf(path), "MANIFEST-");
  if (!number.has_value() && !is_manifest) return target()->NewSequentialFile(path, options, result, debug);
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  const IOStatus opened = target()->NewSequentialFile(path, options, &file, debug);
  if (!opened.ok()) return opened;
  if (number.has_value()) {
    MutexLock lock(mutex_);
    first_read_ = std::min(first_read_.value_or(*number), *number);
  }
  *result = is_manifest ? MakeManifestView(std::move(file)) : MakeLogView(reading_, *number, std::move(file));
  return opened;
}

IOStatus LogFiles::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                   std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  const std::optional<uint64_t> number = LogNumberOf(path);
  if (!number.has_value()) return target()->NewWritableFile(path, options, result, debug);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const IOStatus made = target()->NewWritableFile(path, options, &file, debug);
  if (made.ok()) *result = std::make_unique<WatchedLog>(shared_from_this(), *number, std::move(file));
  return made;
}

IOStatus LogFiles::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) {
  if (const std::optional<uint64_t> number = LogNumberOf(path); number.has_value()) {
    MutexLock lock(mutex_);
    synced_.erase(*number);
  }
  return target()->DeleteFile(path, options, debug);
}

}  // namespace fraktor::inline v0
