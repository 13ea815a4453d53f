#include "fraktor/persistence/testing/rocksdb/forgetful_disk.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/slice.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

std::string FolderOf(const std::string& path) { return std::filesystem::path(path).parent_path().string(); }

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

class ForgetfulDisk::Files final : public rocksdb::FileSystemWrapper,
                                   public std::enable_shared_from_this<ForgetfulDisk::Files> {
 public:
  Files() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "ForgetfulDisk"; }

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override;
  IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override;
  IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* debug) override;
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) override;

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* debug) override {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    File moved = states_.count(from) > 0 ? states_[from] : File{.size = 0, .synced = SIZE_MAX, .has_entry = true};
    moved.has_entry = false;
    moved.had_content = std::filesystem::exists(to);
    if (moved.had_content) moved.content = ReadAll(to);
    const IOStatus renamed = target()->RenameFile(from, to, options, debug);
    if (renamed.ok()) {
      states_.erase(from);
      states_[to] = std::move(moved);
    }
    return renamed;
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* debug) override {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    states_.erase(path);
    return target()->DeleteFile(path, options, debug);
  }

  IOStatus GetFreeSpace(const std::string& path, const IOOptions& options, uint64_t* bytes,
                        IODebugContext* debug) override {
    const IOStatus status = CheckRoom();
    if (status.IsNoSpace()) {
      *bytes = 0;
      return IOStatus::OK();
    }
    return status.ok() ? target()->GetFreeSpace(path, options, bytes, debug) : status;
  }

  void PowerOff() {
    MutexLock lock(mutex_);
    is_off_ = true;
  }

  void PowerOffAtNextSync() {
    MutexLock lock(mutex_);
    goes_off_at_sync_ = true;
  }

  void PowerOn(const PowerOnOptions& options) {
    MutexLock lock(mutex_);
    is_off_ = false;
    goes_off_at_sync_ = false;
    std::error_code ignored;
    for (const auto& [path, file] : states_) {
      if (!file.has_entry) {
        forgotten_bytes_ += file.size;
        std::filesystem::remove(path, ignored);
        if (file.had_content) std::ofstream(path, std::ios::binary) << file.content;
      } else if (file.overwritten.has_value() && options.kept_unsynced_bytes == 0) {
        ++forgotten_bytes_;
        std::ofstream(path, std::ios::binary) << *file.overwritten;
      } else if (file.synced < file.size) {
        const size_t kept = file.synced + std::min(options.kept_unsynced_bytes, file.size - file.synced);
        forgotten_bytes_ += file.size - kept;
        std::filesystem::resize_file(path, kept, ignored);
      }
    }
    states_.clear();
  }

  void SetFull(bool is_full) {
    MutexLock lock(mutex_);
    is_full_ = is_full;
  }

  uint64_t sync_count() const {
    MutexLock lock(mutex_);
    return sync_count_;
  }
  uint64_t forgotten_bytes() const {
    MutexLock lock(mutex_);
    return forgotten_bytes_;
  }

  // What the files and folders tell. Each is asked before, and told after, the real thing.
  IOStatus CheckPower() const {
    MutexLock lock(mutex_);
    return is_off_ ? Off() : IOStatus::OK();
  }
  IOStatus CheckRoom() const {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    return is_full_ ? IOStatus::NoSpace("No space left on device") : IOStatus::OK();
  }
  void NoteSize(const std::string& path, size_t size) {
    MutexLock lock(mutex_);
    File& file = states_[path];
    file.size = size;
    file.synced = std::min(file.synced, size);
  }
  // The power may have gone while the sync was under way; then it counts as not done.
  IOStatus NoteSync(const std::string& path, size_t size) {
    MutexLock lock(mutex_);
    is_off_ = is_off_ || goes_off_at_sync_;
    if (is_off_) return Off();
    ++sync_count_;
    states_[path].synced = size;
    return IOStatus::OK();
  }
  // Before something is written in place.
  void NoteOverwrite(const std::string& path) {
    MutexLock lock(mutex_);
    File& file = states_[path];
    if (!file.overwritten.has_value()) file.overwritten = ReadAll(path);
  }
  IOStatus NoteSyncInPlace(const std::string& path) {
    MutexLock lock(mutex_);
    is_off_ = is_off_ || goes_off_at_sync_;
    if (is_off_) return Off();
    ++sync_count_;
    states_[path].overwritten.reset();
    return IOStatus::OK();
  }
  IOStatus NoteFolderSync(const std::string& folder) {
    MutexLock lock(mutex_);
    if (is_off_) return Off();
    for (auto& [path, file] : states_) {
      if (FolderOf(path) != folder) continue;
      file.has_entry = true;
      file.content.clear();
      file.had_content = false;
    }
    return IOStatus::OK();
  }

 private:
  struct File {
    size_t size = 0;
    size_t synced = 0;
    // Whether the folder was synced since the file got its name.
    bool has_entry = false;
    // What had that name before.
    bool had_content = false;
    std::string content = {};
    // The content at its last sync, if it was written in place since.
    std::optional<std::string> overwritten = {};
  };

  static IOStatus Off() { return IOStatus::IOError("the power is off"); }

  mutable Mutex mutex_;
  bool is_off_ ABSL_GUARDED_BY(mutex_) = false;
  bool goes_off_at_sync_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_full_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t sync_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t forgotten_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, File> states_ ABSL_GUARDED_BY(mutex_);

  void NoteNewFile(const std::string& path) {
    MutexLock lock(mutex_);
    states_[path] = File{};
  }
  void NoteOldFile(const std::string& path, size_t size) {
    MutexLock lock(mutex_);
    if (states_.count(path) == 0) states_[path] = File{.size = size, .synced = size, .has_entry = true};
  }

  class WritableFile;
  class RandomFile;
  class Folder;
};

class ForgetfulDisk::Files::WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::shared_ptr<Files> files, std::string path, size_t size,
               std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), files_(std::move(files)), path_(std::move(path)), size_(size) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckRoom();
    if (status.ok()) status = target()->Append(data, options, debug);
    if (status.ok()) Grow(data.size());
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* debug) override {
    IOStatus status = files_->CheckRoom();
    if (status.ok()) status = target()->Append(data, options, info, debug);
    if (status.ok()) Grow(data.size());
    return status;
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = target()->Truncate(size, options, debug);
    if (status.ok()) {
      size_ = size;
      files_->NoteSize(path_, size_);
    }
    return status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = target()->Sync(options, debug);
    return status.ok() ? files_->NoteSync(path_, size_) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = target()->Fsync(options, debug);
    return status.ok() ? files_->NoteSync(path_, size_) : status;
  }
  IOStatus Allocate(uint64_t offset, uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = files_->CheckRoom();
    return status.ok() ? target()->Allocate(offset, size, options, debug) : status;
  }

 private:
  void Grow(size_t bytes) {
    size_ += bytes;
    files_->NoteSize(path_, size_);
  }

  const std::shared_ptr<Files> files_;
  const std::string path_;
  size_t size_;
};

class ForgetfulDisk::Files::RandomFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomFile(std::shared_ptr<Files> files, std::string path, std::unique_ptr<rocksdb::FSRandomRWFile> file)
      : FSRandomRWFileOwnerWrapper(std::move(file)), files_(std::move(files)), path_(std::move(path)) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    const IOStatus status = files_->CheckPower();
    if (!status.ok()) return status;
    files_->NoteOverwrite(path_);
    return FSRandomRWFileOwnerWrapper::Write(offset, data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = FSRandomRWFileOwnerWrapper::Sync(options, debug);
    return status.ok() ? files_->NoteSyncInPlace(path_) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override { return Sync(options, debug); }

 private:
  const std::shared_ptr<Files> files_;
  const std::string path_;
};

class ForgetfulDisk::Files::Folder final : public rocksdb::FSDirectory {
 public:
  Folder(std::shared_ptr<Files> files, std::string path, std::unique_ptr<rocksdb::FSDirectory> folder)
      : files_(std::move(files)), path_(std::move(path)), folder_(std::move(folder)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = folder_->Fsync(options, debug);
    return status.ok() ? files_->NoteFolderSync(path_) : status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& folder_options) override {
    IOStatus status = files_->CheckPower();
    if (status.ok()) status = folder_->FsyncWithDirOptions(options, debug, folder_options);
    return status.ok() ? files_->NoteFolderSync(path_) : status;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override { return folder_->Close(options, debug); }
  size_t GetUniqueId(char* id, size_t max_size) const override { return folder_->GetUniqueId(id, max_size); }

 private:
  const std::shared_ptr<Files> files_;
  const std::string path_;
  const std::unique_ptr<rocksdb::FSDirectory> folder_;
};

IOStatus ForgetfulDisk::Files::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* result,
                                               IODebugContext* debug) {
  IOStatus status = CheckRoom();
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (status.ok()) status = target()->NewWritableFile(path, options, &file, debug);
  if (!status.ok()) return status;
  NoteNewFile(path);
  *result = std::make_unique<WritableFile>(shared_from_this(), path, 0, std::move(file));
  return status;
}

IOStatus ForgetfulDisk::Files::ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                                  std::unique_ptr<rocksdb::FSWritableFile>* result,
                                                  IODebugContext* debug) {
  IOStatus status = CheckRoom();
  std::unique_ptr<rocksdb::FSWritableFile> file;
  std::error_code missing;
  const auto found = std::filesystem::file_size(path, missing);
  if (status.ok()) status = target()->ReopenWritableFile(path, options, &file, debug);
  if (!status.ok()) return status;
  const size_t size = missing ? 0 : static_cast<size_t>(found);
  if (missing) {
    NoteNewFile(path);
  } else {
    NoteOldFile(path, size);
  }
  *result = std::make_unique<WritableFile>(shared_from_this(), path, size, std::move(file));
  return status;
}

IOStatus ForgetfulDisk::Files::NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                               IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  IOStatus status = CheckPower();
  if (status.ok()) status = target()->NewRandomRWFile(path, options, &file, debug);
  if (!status.ok()) return status;
  const size_t size = static_cast<size_t>(std::filesystem::file_size(path));
  NoteOldFile(path, size);
  *result = std::make_unique<RandomFile>(shared_from_this(), path, std::move(file));
  return status;
}

IOStatus ForgetfulDisk::Files::NewDirectory(const std::string& path, const IOOptions& options,
                                            std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> folder;
  IOStatus status = target()->NewDirectory(path, options, &folder, debug);
  if (!status.ok()) return status;
  *result = std::make_unique<Folder>(shared_from_this(), path, std::move(folder));
  return status;
}

ForgetfulDisk::ForgetfulDisk() : files_(std::make_shared<Files>()), env_(rocksdb::NewCompositeEnv(files_)) {}
ForgetfulDisk::~ForgetfulDisk() = default;

void ForgetfulDisk::PowerOff() { files_->PowerOff(); }
void ForgetfulDisk::PowerOffAtNextSync() { files_->PowerOffAtNextSync(); }
void ForgetfulDisk::PowerOn(const PowerOnOptions& options) { files_->PowerOn(options); }
void ForgetfulDisk::SetFull(bool is_full) { files_->SetFull(is_full); }
uint64_t ForgetfulDisk::sync_count() const { return files_->sync_count(); }
uint64_t ForgetfulDisk::forgotten_bytes() const { return files_->forgotten_bytes(); }

}  // namespace fraktor::inline v0
