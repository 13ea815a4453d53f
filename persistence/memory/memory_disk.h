// MemoryDisk: a file in memory that loses, in a crash, what was not synced.
//
//   auto disk = std::make_shared<MemoryDisk>();
//   auto journal = MemoryJournal::Open({.disk = disk, .sync = false}).value();
//   ...
//   journal.reset();
//   disk->Crash({.kept_unsynced_bytes = 10});         // half of a record stays: torn
//   auto again = MemoryJournal::Open({.disk = disk}).value();
//
// Thread safety: all methods may be called from any thread.
#ifndef FRAKTOR_PERSISTENCE_MEMORY_MEMORY_DISK_H_
#define FRAKTOR_PERSISTENCE_MEMORY_MEMORY_DISK_H_

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class MemoryDisk {
 public:
  struct CrashOptions {
    // How much of what was not synced survives all the same. A number in the middle of a record
    // tears it.
    size_t kept_unsynced_bytes = 0;
  };

  // kDiskFull, and nothing is written, if it does not fit.
  absl::Status Append(std::string_view bytes);
  void Sync();

  // Forgets what was not synced.
  void Crash(CrashOptions options);
  void Crash() { Crash(CrashOptions{}); }

  // Cuts everything from `size` on: what a journal does with the torn end that it finds.
  void Truncate(size_t size);
  // Turns the bits of one byte around.
  void Damage(size_t position);
  // Bytes that it can hold.
  void set_capacity(size_t bytes);

  // Whether so many bytes can be appended.
  bool HasRoom(size_t bytes) const;
  std::string contents() const;
  size_t size() const;
  size_t synced_size() const;

 private:
  mutable Mutex mutex_;
  std::string bytes_ ABSL_GUARDED_BY(mutex_);
  size_t synced_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t capacity_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<size_t>::max();
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_MEMORY_MEMORY_DISK_H_
