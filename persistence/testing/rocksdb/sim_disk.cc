#include "fraktor/persistence/testing/rocksdb/sim_disk.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/slice.h"
#include "rocksdb/status.h"
#include "rocksdb/system_clock.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr size_t kSectorBytes = 512;
// The year 2100: a thread of RocksDB that waits for a moment of this clock waits until it is
// called.
constexpr uint64_t kFirstMicros = uint64_t{4'102'444'800} * 1'000'000;
constexpr int kMaxJobs = 8;
constexpr uint64_t kFreeBytes = uint64_t{1} << 40;

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// "/journal/" and "/journal//x" mean what "/journal" and "/journal/x" do.
std::string Clean(const std::string& path) {
  std::string clean;
  for (const char c : path) {
    if (c != '/' || clean.empty() || clean.back() != '/') clean.push_back(c);
  }
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  return clean;
}

class NoLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
  size_t GetLogFileSize() const override { return 0; }
};

}  // namespace

class SimDisk::Files final : public rocksdb::FileSystemWrapper, public std::enable_shared_from_this<SimDisk::Files> {
 public:
  explicit Files(uint64_t seed)
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()),
        fault_random_(Random(seed).Fork(1)),
        crash_random_(Random(seed).Fork(2)) {}

  const char* Name() const override { return "SimDisk"; }

  IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* debug) override;
  IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* debug) override;
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override;
  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override;
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override;
  IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* debug) override;
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) override;
  IOStatus NewLogger(const std::string& /*path*/, const IOOptions& /*options*/,
                     std::shared_ptr<rocksdb::Logger>* result, IODebugContext* /*debug*/) override {
    *result = std::make_shared<NoLogger>();
    return IOStatus::OK();
  }

  IOStatus FileExists(const std::string& path, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    return files_.contains(Clean(path)) || folders_.contains(Clean(path)) ? IOStatus::OK() : IOStatus::NotFound(path);
  }
  IOStatus GetChildren(const std::string& path, const IOOptions& /*options*/, std::vector<std::string>* names,
                       IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    names->clear();
    if (is_off_) return Off();
    const std::string folder = Clean(path);
    if (!folders_.contains(folder)) return IOStatus::NotFound(path);
    for (const auto& [name, file] : files_) {
      if (FolderOf(name) == folder) names->push_back(name.substr(folder.size() + 1));
    }
    for (const std::string& name : folders_) {
      if (name != folder && FolderOf(name) == folder) names->push_back(name.substr(folder.size() + 1));
    }
    return IOStatus::OK();
  }
  IOStatus GetChildrenFileAttributes(const std::string& path, const IOOptions& options,
                                     std::vector<rocksdb::FileAttributes>* result, IODebugContext* debug) override {
    return rocksdb::FileSystem::GetChildrenFileAttributes(path, options, result, debug);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) override;
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override;
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* debug) override;
  IOStatus CreateDir(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    MutexLock lock(mutex_);
    if (folders_.contains(Clean(path))) return IOStatus::IOError("File exists", path);
    return MakeFolder(path, options, debug);
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    MutexLock lock(mutex_);
    return MakeFolder(path, options, debug);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    return folders_.erase(Clean(path)) > 0 ? IOStatus::OK() : Missing(path);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& /*options*/, uint64_t* size,
                       IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    const auto found = files_.find(Clean(path));
    if (found == files_.end()) return Missing(path);
    *size = found->second->bytes.size();
    return IOStatus::OK();
  }
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions& /*options*/, uint64_t* time,
                                   IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    if (!files_.contains(Clean(path))) return Missing(path);
    *time = kFirstMicros / 1'000'000;
    return IOStatus::OK();
  }
  IOStatus LinkFile(const std::string& /*from*/, const std::string& /*to*/, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("this disk has no links");
  }
  IOStatus NumFileLinks(const std::string& /*path*/, const IOOptions& /*options*/, uint64_t* count,
                        IODebugContext* /*debug*/) override {
    *count = 1;
    return IOStatus::OK();
  }
  IOStatus AreFilesSame(const std::string& a, const std::string& b, const IOOptions& /*options*/, bool* same,
                        IODebugContext* /*debug*/) override {
    *same = Clean(a) == Clean(b);
    return IOStatus::OK();
  }
  IOStatus LockFile(const std::string& path, const IOOptions& /*options*/, rocksdb::FileLock** lock,
                    IODebugContext* /*debug*/) override;
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/, IODebugContext* /*debug*/) override;
  IOStatus GetTestDirectory(const IOOptions& /*options*/, std::string* path, IODebugContext* /*debug*/) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions& /*options*/, std::string* absolute,
                           IODebugContext* /*debug*/) override {
    *absolute = path;
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string& /*path*/, const IOOptions& /*options*/, uint64_t* bytes,
                        IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    *bytes = is_full_ ? 0 : kFreeBytes;
    return is_off_ ? Off() : IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions& /*options*/, bool* is_directory,
                       IODebugContext* /*debug*/) override {
    MutexLock lock(mutex_);
    *is_directory = folders_.contains(Clean(path));
    return *is_directory || files_.contains(Clean(path)) ? IOStatus::OK() : Missing(path);
  }

  void set_faults(const Faults& faults) {
    MutexLock lock(mutex_);
    faults_ = faults;
  }
  void SetFull(bool is_full) {
    MutexLock lock(mutex_);
    is_full_ = is_full;
  }
  void PowerOff() {
    MutexLock lock(mutex_);
    is_off_ = true;
  }
  void CrashAtPoint(uint64_t n) {
    MutexLock lock(mutex_);
    crash_at_ = n == 0 ? 0 : points_ + n;
  }
  bool is_off() const {
    MutexLock lock(mutex_);
    return is_off_;
  }
  uint64_t points() const {
    MutexLock lock(mutex_);
    return points_;
  }
  uint64_t fault_count() const {
    MutexLock lock(mutex_);
    return fault_count_;
  }
  void set_listener(std::function<void(const std::string&)> listener) {
    MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  void PowerOn();
  uint64_t NowMicros() const { return kFirstMicros + micros_.load(std::memory_order_relaxed); }

 private:
  struct File {
    std::string bytes = {};
    // All before this is synced.
    size_t synced = 0;
    // The content at the last sync, if the file was written in place since.
    std::optional<std::string> before = {};
    // Pairs of begin and end that the disk has forgotten, although it says that they are synced.
    std::vector<std::pair<size_t, size_t>> forgotten = {};
  };
  using FilePtr = std::shared_ptr<File>;
  // A change of names that may be lost. A renaming has both, and a deletion has only `from`.
  struct NameChange {
    std::string from = {};
    std::string to = {};
    FilePtr file = {};
  };
  class SequentialFile;
  class RandomAccessFile;
  class WritableFile;
  class RandomFile;
  class Folder;

  static IOStatus Off() { return IOStatus::IOError("the power is off"); }
  static IOStatus Missing(const std::string& path) { return IOStatus::PathNotFound("No such file or directory", path); }
  static IOStatus Full() { return IOStatus::IOError("No space left on device"); }

  void Say(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (listener_ != nullptr) listener_(what);
  }
  // Not OK if the power is off, or goes now.
  IOStatus PassPoint(std::string_view what, const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_off_) return Off();
    ++points_;
    if (points_ == crash_at_) {
      is_off_ = true;
      Say(absl::StrCat("crash instead of ", std::string(what), " ", path));
      return Off();
    }
    return IOStatus::OK();
  }
  bool Happens(double probability, std::string_view what, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (probability <= 0 || !fault_random_.Bernoulli(probability)) return false;
    ++fault_count_;
    Say(absl::StrCat("fault: ", std::string(what), " ", path));
    return true;
  }
  IOStatus MakeFolder(const std::string& path, const IOOptions& /*options*/, IODebugContext* /*debug*/)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_off_) return Off();
    folders_.insert(Clean(path));
    return IOStatus::OK();
  }
  IOStatus MakeFile(const std::string& path, FilePtr& file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  IOStatus Find(const std::string& path, FilePtr& file) {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    const auto found = files_.find(Clean(path));
    if (found == files_.end()) return Missing(path);
    file = found->second;
    return IOStatus::OK();
  }

  // The operations of open files.
  IOStatus Append(const std::string& path, File& file, const rocksdb::Slice& data);
  IOStatus WriteInPlace(File& file, uint64_t offset, const rocksdb::Slice& data);
  IOStatus Resize(File& file, uint64_t size);
  IOStatus SyncFile(const std::string& path, File& file);
  IOStatus SyncFolder(const std::string& path);
  IOStatus ReadAt(const File& file, uint64_t offset, size_t n, rocksdb::Slice* result, char* scratch) const {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    const size_t begin = std::min<uint64_t>(offset, file.bytes.size());
    const size_t count = std::min(n, file.bytes.size() - begin);
    std::memcpy(scratch, file.bytes.data() + begin, count);
    *result = rocksdb::Slice(scratch, count);
    return IOStatus::OK();
  }

  static void Apply(const NameChange& change, std::map<std::string, FilePtr>& names) {
    if (!change.from.empty()) names.erase(change.from);
    if (change.file != nullptr) names[change.to] = change.file;
  }
  // `is_prefix`: what is not synced is only shorter.
  void CrashFile(File& file, bool is_prefix) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Random fault_random_ ABSL_GUARDED_BY(mutex_);
  Random crash_random_ ABSL_GUARDED_BY(mutex_);
  Faults faults_ ABSL_GUARDED_BY(mutex_);
  bool is_off_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_full_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t points_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t crash_at_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t fault_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void(const std::string&)> listener_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, FilePtr> files_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> folders_ ABSL_GUARDED_BY(mutex_) = {"/"};
  std::set<std::string> locked_ ABSL_GUARDED_BY(mutex_);
  // The names that a crash keeps in any case, and the changes since, by folder and in order.
  std::map<std::string, FilePtr> durable_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<NameChange>> changes_ ABSL_GUARDED_BY(mutex_);
  // Relaxed: a count that orders nothing.
  std::atomic<uint64_t> micros_ = 0;
};

class SimDisk::Files::SequentialFile final : public rocksdb::FSSequentialFile {
 public:
  SequentialFile(std::shared_ptr<Files> files, FilePtr file) : files_(std::move(files)), file_(std::move(file)) {}

  IOStatus Read(size_t n, const IOOptions& /*options*/, rocksdb::Slice* result, char* scratch,
                IODebugContext* /*debug*/) override {
    const IOStatus status = files_->ReadAt(*file_, at_, n, result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    at_ += n;
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<Files> files_;
  const FilePtr file_;
  uint64_t at_ = 0;
};

class SimDisk::Files::RandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  RandomAccessFile(std::shared_ptr<Files> files, FilePtr file) : files_(std::move(files)), file_(std::move(file)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/, rocksdb::Slice* result, char* scratch,
                IODebugContext* /*debug*/) const override {
    return files_->ReadAt(*file_, offset, n, result, scratch);
  }

 private:
  const std::shared_ptr<Files> files_;
  const FilePtr file_;
};

class SimDisk::Files::WritableFile final : public rocksdb::FSWritableFile {
 public:
  WritableFile(std::shared_ptr<Files> files, std::string path, FilePtr file)
      : files_(std::move(files)), path_(std::move(path)), file_(std::move(file)) {}

  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    const IOStatus status = files_->Append(path_, *file_, data);
    if (status.ok()) size_ += data.size();
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& /*info*/,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    size_ = size;
    return files_->Resize(*file_, size);
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return files_->SyncFile(path_, *file_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return size_; }

 private:
  const std::shared_ptr<Files> files_;
  const std::string path_;
  const FilePtr file_;
  uint64_t size_ = file_->bytes.size();
};

class SimDisk::Files::RandomFile final : public rocksdb::FSRandomRWFile {
 public:
  RandomFile(std::shared_ptr<Files> files, std::string path, FilePtr file)
      : files_(std::move(files)), path_(std::move(path)), file_(std::move(file)) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& /*options*/,
                 IODebugContext* /*debug*/) override {
    return files_->WriteInPlace(*file_, offset, data);
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/, rocksdb::Slice* result, char* scratch,
                IODebugContext* /*debug*/) const override {
    return files_->ReadAt(*file_, offset, n, result, scratch);
  }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return files_->SyncFile(path_, *file_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }

 private:
  const std::shared_ptr<Files> files_;
  const std::string path_;
  const FilePtr file_;
};

class SimDisk::Files::Folder final : public rocksdb::FSDirectory {
 public:
  Folder(std::shared_ptr<Files> files, std::string path) : files_(std::move(files)), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return files_->SyncFolder(path_); }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }

 private:
  const std::shared_ptr<Files> files_;
  const std::string path_;
};

IOStatus SimDisk::Files::NewSequentialFile(const std::string& path, const rocksdb::FileOptions& /*options*/,
                                           std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                           IODebugContext* /*debug*/) {
  FilePtr file;
  const IOStatus status = Find(path, file);
  if (status.ok()) *result = std::make_unique<SequentialFile>(shared_from_this(), std::move(file));
  return status;
}

IOStatus SimDisk::Files::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& /*options*/,
                                             std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                             IODebugContext* /*debug*/) {
  FilePtr file;
  const IOStatus status = Find(path, file);
  if (status.ok()) *result = std::make_unique<RandomAccessFile>(shared_from_this(), std::move(file));
  return status;
}

IOStatus SimDisk::Files::MakeFile(const std::string& path, FilePtr& file) {
  const IOStatus status = PassPoint("make", path);
  if (!status.ok()) return status;
  if (is_full_) return Full();
  if (Happens(faults_.fail_making, "cannot make", path)) return IOStatus::IOError("Input/output error", path);
  if (!folders_.contains(FolderOf(path))) return Missing(path);
  file = std::make_shared<File>();
  const NameChange change{.to = path, .file = file};
  Apply(change, files_);
  changes_[FolderOf(path)].push_back(change);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::NewWritableFile(const std::string& path, const rocksdb::FileOptions& /*options*/,
                                         std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* /*debug*/) {
  const std::string clean = Clean(path);
  FilePtr file;
  MutexLock lock(mutex_);
  const IOStatus status = MakeFile(clean, file);
  if (status.ok()) *result = std::make_unique<WritableFile>(shared_from_this(), clean, std::move(file));
  return status;
}

IOStatus SimDisk::Files::ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  FilePtr file;
  if (!Find(path, file).ok()) return NewWritableFile(path, options, result, debug);
  *result = std::make_unique<WritableFile>(shared_from_this(), Clean(path), std::move(file));
  return IOStatus::OK();
}

IOStatus SimDisk::Files::ReuseWritableFile(const std::string& path, const std::string& old_path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) {
  const IOStatus renamed = RenameFile(old_path, path, IOOptions(), debug);
  return renamed.ok() ? NewWritableFile(path, options, result, debug) : renamed;
}

IOStatus SimDisk::Files::NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& /*options*/,
                                         std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* /*debug*/) {
  FilePtr file;
  const IOStatus status = Find(path, file);
  if (status.ok()) *result = std::make_unique<RandomFile>(shared_from_this(), Clean(path), std::move(file));
  return status;
}

IOStatus SimDisk::Files::NewDirectory(const std::string& path, const IOOptions& /*options*/,
                                      std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* /*debug*/) {
  MutexLock lock(mutex_);
  if (is_off_) return Off();
  if (!folders_.contains(Clean(path))) return Missing(path);
  *result = std::make_unique<Folder>(shared_from_this(), Clean(path));
  return IOStatus::OK();
}

IOStatus SimDisk::Files::DeleteFile(const std::string& path, const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  const std::string clean = Clean(path);
  MutexLock lock(mutex_);
  const IOStatus status = PassPoint("delete", clean);
  if (!status.ok()) return status;
  if (!files_.contains(clean)) return Missing(path);
  const NameChange change{.from = clean};
  Apply(change, files_);
  changes_[FolderOf(clean)].push_back(change);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::RenameFile(const std::string& from, const std::string& to, const IOOptions& /*options*/,
                                    IODebugContext* /*debug*/) {
  const std::string old_name = Clean(from);
  const std::string new_name = Clean(to);
  MutexLock lock(mutex_);
  const IOStatus status = PassPoint("rename to", new_name);
  if (!status.ok()) return status;
  if (Happens(faults_.fail_rename, "cannot rename to", new_name)) return IOStatus::IOError("Input/output error", to);
  const auto found = files_.find(old_name);
  if (found == files_.end()) return Missing(from);
  const NameChange change{.from = old_name, .to = new_name, .file = found->second};
  Apply(change, files_);
  changes_[FolderOf(new_name)].push_back(change);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::Truncate(const std::string& path, size_t size, const IOOptions& /*options*/,
                                  IODebugContext* /*debug*/) {
  FilePtr file;
  const IOStatus status = Find(path, file);
  return status.ok() ? Resize(*file, size) : status;
}

namespace {
class HeldLock final : public rocksdb::FileLock {
 public:
  explicit HeldLock(std::string its_path) : path(std::move(its_path)) {}
  const std::string path;
};
}  // namespace

IOStatus SimDisk::Files::LockFile(const std::string& path, const IOOptions& /*options*/, rocksdb::FileLock** lock,
                                  IODebugContext* /*debug*/) {
  const std::string clean = Clean(path);
  MutexLock hold(mutex_);
  *lock = nullptr;
  if (is_off_) return Off();
  if (!locked_.insert(clean).second) return IOStatus::IOError("lock hold by current process", path);
  if (!files_.contains(clean)) {
    const NameChange change{.to = clean, .file = std::make_shared<File>()};
    Apply(change, files_);
    changes_[FolderOf(clean)].push_back(change);
  }
  *lock = new HeldLock(clean);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  const std::unique_ptr<HeldLock> held(static_cast<HeldLock*>(lock));
  MutexLock hold(mutex_);
  locked_.erase(held->path);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::Append(const std::string& path, File& file, const rocksdb::Slice& data) {
  MutexLock lock(mutex_);
  if (is_off_) return Off();
  const bool fails = Happens(faults_.fail_append, "a short append to", path);
  if (is_full_ || fails) {
    // A part of it is written.
    file.bytes.append(data.data(), fault_random_.Uniform(data.size() + 1));
    return is_full_ ? Full() : IOStatus::IOError("Input/output error", path);
  }
  file.bytes.append(data.data(), data.size());
  return IOStatus::OK();
}

IOStatus SimDisk::Files::WriteInPlace(File& file, uint64_t offset, const rocksdb::Slice& data) {
  MutexLock lock(mutex_);
  if (is_off_) return Off();
  if (offset + data.size() > file.bytes.size() && is_full_) return Full();
  if (!file.before.has_value()) file.before = file.bytes;
  if (offset + data.size() > file.bytes.size()) file.bytes.resize(offset + data.size(), '\0');
  std::memcpy(file.bytes.data() + offset, data.data(), data.size());
  return IOStatus::OK();
}

IOStatus SimDisk::Files::Resize(File& file, uint64_t size) {
  MutexLock lock(mutex_);
  if (is_off_) return Off();
  file.bytes.resize(size, '\0');
  file.synced = std::min<size_t>(file.synced, size);
  return IOStatus::OK();
}

IOStatus SimDisk::Files::SyncFile(const std::string& path, File& file) {
  MutexLock lock(mutex_);
  const IOStatus status = PassPoint("sync", path);
  if (!status.ok()) return status;
  micros_.fetch_add(1 + fault_random_.Uniform(faults_.max_sync_micros), std::memory_order_relaxed);
  if (Happens(faults_.fail_sync, "cannot sync", path)) {
    if (file.synced < file.bytes.size() && fault_random_.Bernoulli(faults_.forget)) {
      file.forgotten.emplace_back(file.synced, file.bytes.size());
    }
    return IOStatus::IOError("Input/output error", path);
  }
  Say(absl::StrCat("sync ", path, " ", file.synced, "..", file.bytes.size()));
  file.synced = file.bytes.size();
  file.before.reset();
  return IOStatus::OK();
}

IOStatus SimDisk::Files::SyncFolder(const std::string& path) {
  MutexLock lock(mutex_);
  const IOStatus status = PassPoint("sync", path);
  if (!status.ok()) return status;
  if (Happens(faults_.fail_sync, "cannot sync", path)) return IOStatus::IOError("Input/output error", path);
  std::vector<NameChange>& changes = changes_[path];
  Say(absl::StrCat("sync ", path, " with ", changes.size(), " names"));
  for (const NameChange& change : changes) Apply(change, durable_);
  changes.clear();
  return IOStatus::OK();
}

void SimDisk::Files::CrashFile(File& file, bool is_prefix) {
  if (file.before.has_value()) {
    std::string mixed = *file.before;
    mixed.resize(file.bytes.size(), '\0');
    for (size_t at = 0; at < mixed.size(); at += kSectorBytes) {
      if (!crash_random_.Bernoulli(0.5)) continue;
      const size_t count = std::min(kSectorBytes, mixed.size() - at);
      std::memcpy(mixed.data() + at, file.bytes.data() + at, count);
    }
    file.bytes = std::move(mixed);
    file.before.reset();
  } else if (file.synced < file.bytes.size()) {
    const size_t unsynced = file.bytes.size() - file.synced;
    // Nothing, everything, or a part.
    const uint64_t how = crash_random_.Uniform(4);
    const size_t kept = how == 0 ? 0 : how == 1 ? unsynced : crash_random_.Uniform(unsynced + 1);
    file.bytes.resize(file.synced + kept);
    if (!is_prefix && kept > 0 && crash_random_.Bernoulli(0.3)) {
      // The last bytes are something else.
      const bool is_zero = crash_random_.Bernoulli(0.5);
      const size_t torn = 1 + crash_random_.Uniform(std::min(kept, kSectorBytes));
      for (size_t i = file.bytes.size() - torn; i < file.bytes.size(); ++i) {
        file.bytes[i] = is_zero ? '\0' : static_cast<char>(crash_random_.Next());
      }
    }
    if (!is_prefix && kept > 2 * kSectorBytes && crash_random_.Bernoulli(0.3)) {
      // Sectors that the disk has not written, although it has written later ones.
      size_t at = file.synced + crash_random_.Uniform(kept);
      at = std::max(file.synced, at / kSectorBytes * kSectorBytes);
      const size_t end = std::min(file.bytes.size(), (at / kSectorBytes + 1 + crash_random_.Uniform(8)) * kSectorBytes);
      std::fill(file.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                file.bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    }
  }
  for (const auto& [begin, end] : file.forgotten) {
    for (size_t i = begin; i < std::min(end, file.bytes.size()); ++i) file.bytes[i] = '\0';
  }
  file.forgotten.clear();
  file.synced = file.bytes.size();
}

void SimDisk::Files::PowerOn() {
  MutexLock lock(mutex_);
  for (auto& [folder, changes] : changes_) {
    const size_t kept = crash_random_.Uniform(changes.size() + 1);
    for (size_t i = 0; i < kept; ++i) Apply(changes[i], durable_);
    changes.clear();
  }
  files_ = durable_;
  std::set<const File*> crashed;
  for (auto& [path, file] : files_) {
    if (!crashed.insert(file.get()).second) continue;
    const size_t before = file->bytes.size();
    const size_t synced = file->synced;
    CrashFile(*file, /*is_prefix=*/path.find("/MANIFEST-") != std::string::npos);
    if (synced < before)
      Say(absl::StrCat("after the crash: ", path, " has ", file->bytes.size(), " of ", before, " bytes; synced were ",
                       synced));
  }
  is_off_ = false;
  is_full_ = false;
  faults_ = Faults();
  crash_at_ = 0;
}

class SimDisk::Clock final : public rocksdb::SystemClockWrapper {
 public:
  explicit Clock(std::shared_ptr<Files> files)
      : rocksdb::SystemClockWrapper(rocksdb::SystemClock::Default()), files_(std::move(files)) {}
  const char* Name() const override { return "SimDiskClock"; }
  uint64_t NowMicros() override { return files_->NowMicros(); }
  uint64_t NowNanos() override { return files_->NowMicros() * 1000; }
  void SleepForMicroseconds(int /*micros*/) override {}
  rocksdb::Status GetCurrentTime(int64_t* seconds) override {
    *seconds = static_cast<int64_t>(files_->NowMicros() / 1'000'000);
    return rocksdb::Status::OK();
  }

 private:
  const std::shared_ptr<Files> files_;
};

class SimDisk::Environment final : public rocksdb::EnvWrapper {
 public:
  explicit Environment(std::shared_ptr<Files> files)
      : rocksdb::EnvWrapper(rocksdb::NewCompositeEnv(files)), files_(std::move(files)) {
    file_system_ = files_;
    system_clock_ = std::make_shared<Clock>(files_);
  }
  const char* Name() const override { return "SimDisk"; }

  uint64_t NowMicros() override { return files_->NowMicros(); }
  uint64_t NowNanos() override { return files_->NowMicros() * 1000; }
  void SleepForMicroseconds(int /*micros*/) override {}

  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    MutexLock lock(mutex_);
    jobs_.push_back({function, argument, priority, tag, unschedule});
  }
  int UnSchedule(void* tag, Priority priority) override {
    std::vector<Job> dropped;
    {
      MutexLock lock(mutex_);
      for (auto job = jobs_.begin(); job != jobs_.end();) {
        if (job->priority != priority || (job->tag != tag && !(job->tag == nullptr && job->argument == tag))) {
          ++job;
          continue;
        }
        dropped.push_back(*job);
        job = jobs_.erase(job);
      }
    }
    int count = 0;
    for (const Job& job : dropped) {
      if (job.tag == nullptr) {
        // A job without a tag cannot be taken back: the database that is closing waits for it.
        rocksdb::Env::Default()->Schedule(job.function, job.argument, priority);
        continue;
      }
      ++count;
      if (job.unschedule != nullptr) job.unschedule(job.argument);
    }
    return count;
  }
  unsigned int GetThreadPoolQueueLen(Priority /*priority*/) const override {
    MutexLock lock(mutex_);
    return static_cast<unsigned int>(jobs_.size());
  }

  void RunJobs() {
    // One that fails may come again at once.
    for (int left = kMaxJobs; left > 0; --left) {
      Job job;
      {
        MutexLock lock(mutex_);
        if (jobs_.empty()) return;
        job = jobs_.front();
        jobs_.pop_front();
      }
      job.function(job.argument);
    }
  }

 private:
  struct Job {
    void (*function)(void*) = nullptr;
    void* argument = nullptr;
    Priority priority = LOW;
    void* tag = nullptr;
    void (*unschedule)(void*) = nullptr;
  };

  const std::shared_ptr<Files> files_;
  mutable Mutex mutex_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

SimDisk::SimDisk(uint64_t seed) : files_(std::make_shared<Files>(seed)), env_(std::make_unique<Environment>(files_)) {}
SimDisk::~SimDisk() = default;

rocksdb::Env* SimDisk::env() { return env_.get(); }
void SimDisk::set_faults(const Faults& faults) { files_->set_faults(faults); }
void SimDisk::SetFull(bool is_full) { files_->SetFull(is_full); }
void SimDisk::PowerOff() { files_->PowerOff(); }
void SimDisk::CrashAtPoint(uint64_t n) { files_->CrashAtPoint(n); }
bool SimDisk::is_off() const { return files_->is_off(); }
void SimDisk::PowerOn() { files_->PowerOn(); }
uint64_t SimDisk::points() const { return files_->points(); }
uint64_t SimDisk::fault_count() const { return files_->fault_count(); }
void SimDisk::RunJobs() { env_->RunJobs(); }
void SimDisk::set_listener(std::function<void(const std::string&)> listener) {
  files_->set_listener(std::move(listener));
}

}  // namespace fraktor::inline v0
