// ForgetfulDisk: files for RocksDB that forget, when the power goes, everything that was not synced.
//
//   ForgetfulDisk disk;
//   auto journal = RocksDbJournal::Open(*toolbox, {.path = path, .env = disk.env()}).value();
//   ...
//   disk.PowerOff();          // from now on nothing reaches the disk; what is asked for fails
//   journal.reset();
//   disk.PowerOn({});         // the files are what a disk would show after a loss of power
//   journal = RocksDbJournal::Open(...)
//
// Killing a process cannot show that a sync is missing, because the system keeps what the process wrote. Here a file
// that was appended to and not synced is cut back, one whose folder was not synced since it was made is gone, and one
// that was renamed since then has its old content back. A file that was written in place has the
// content of its last sync. Deletions last at once.
//
// Files are real ones, below the paths that RocksDB asks for.
//
// Thread safety: all methods may be called from any thread; PowerOn when nothing has files open.
#ifndef FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_FORGETFUL_DISK_H_
#define FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_FORGETFUL_DISK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "rocksdb/env.h"

namespace fraktor::inline v0 {

class ForgetfulDisk {
 public:
  struct PowerOnOptions {
    // How much of what was not synced each file keeps all the same. A few bytes make a torn record.
    // If it is not 0, files that were written in place keep everything.
    size_t kept_unsynced_bytes = 0;
  };

  ForgetfulDisk();
  ~ForgetfulDisk();

  rocksdb::Env* env() { return env_.get(); }

  void PowerOff();
  // When the next file is synced, instead of that: what was appended to it is lost.
  void PowerOffAtNextSync();
  void PowerOn(const PowerOnOptions& options);

  // Whether there is room: without it, whatever makes a file longer fails.
  void SetFull(bool is_full);

  // How often a file was synced.
  uint64_t sync_count() const;
  // Bytes that PowerOn has taken back, in all.
  uint64_t forgotten_bytes() const;

 private:
  class Files;

  const std::shared_ptr<Files> files_;
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_FORGETFUL_DISK_H_
