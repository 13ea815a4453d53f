#include "fraktor/persistence/memory/memory_disk.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

absl::Status MemoryDisk::Append(std::string_view bytes) {
  MutexLock lock(mutex_);
  if (bytes_.size() > capacity_ || bytes.size() > capacity_ - bytes_.size()) {
    return MakeError(absl::StatusCode::kResourceExhausted, JournalErrorKind::kDiskFull,
                     absl::StrCat("the memory disk of ", capacity_, " bytes is full; raise its capacity"));
  }
  bytes_.append(bytes);
  return absl::OkStatus();
}

void MemoryDisk::Sync() {
  MutexLock lock(mutex_);
  synced_ = bytes_.size();
}

void MemoryDisk::Crash(CrashOptions options) {
  MutexLock lock(mutex_);
  bytes_.resize(std::min(bytes_.size(), synced_ + std::min(options.kept_unsynced_bytes, bytes_.size() - synced_)));
  synced_ = bytes_.size();
}

void MemoryDisk::Truncate(size_t size) {
  MutexLock lock(mutex_);
  bytes_.resize(std::min(bytes_.size(), size));
  synced_ = std::min(synced_, bytes_.size());
}

void MemoryDisk::Damage(size_t position) {
  MutexLock lock(mutex_);
  if (position < bytes_.size()) bytes_[position] = static_cast<char>(~bytes_[position]);
}

void MemoryDisk::set_capacity(size_t bytes) {
  MutexLock lock(mutex_);
  capacity_ = bytes;
}

bool MemoryDisk::HasRoom(size_t bytes) const {
  MutexLock lock(mutex_);
  return bytes_.size() <= capacity_ && bytes <= capacity_ - bytes_.size();
}

std::string MemoryDisk::contents() const {
  MutexLock lock(mutex_);
  return bytes_;
}

size_t MemoryDisk::size() const {
  MutexLock lock(mutex_);
  return bytes_.size();
}

size_t MemoryDisk::synced_size() const {
  MutexLock lock(mutex_);
  return synced_;
}

}  // namespace fraktor::inline v0
