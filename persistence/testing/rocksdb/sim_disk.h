// SimDisk: a disk in memory for RocksDB. It fails as real disks fail, and a seed makes every
// choice.
//
// Crash. A file keeps all that was synced and a random part of the rest. The end of that part may
// be zeros or garbage, and sectors before its end may be zeros, since disks write in any order.
// A list of files (MANIFEST) is only shorter: RocksDB refuses one that ends with anything else.
// Each sector that was written in place is either old or new. Names that were made, changed or
// deleted since the last sync of the folder last up to a random one of them.
//
// Points. A point is a sync of a file or of a folder, and a making, renaming or deletion of a file.
// They are numbered, so that a test crashes at each of them.
//
// Faults. A sync may fail: then nothing is synced, and the disk may also forget the bytes, so that
// no later sync makes them last (fsyncgate). An append may fail with a part of the bytes written.
// A rename, or the making of a file, may fail. On a full disk nothing grows: a plain error says so,
// since RocksDB answers its own kind of error for a full disk with a thread that tries again.
//
// Jobs. RocksDB's background jobs run when RunJobs is called and on that thread. So a run on a
// toolbox without threads repeats exactly. A call of RocksDB that waits for a job would never end:
// call RunJobs after each step.
//
// Text files named LOG are not kept. The clock of the environment is virtual too: each sync takes a
// moment.
//
// Thread safety: all methods may be called from any thread; PowerOn when no store is open.
#ifndef FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_SIM_DISK_H_
#define FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_SIM_DISK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rocksdb/env.h"

namespace fraktor::inline v0 {

class SimDisk {
 public:
  // How likely each fault is, in each call.
  struct Faults {
    double fail_sync = 0;
    double fail_append = 0;
    double fail_rename = 0;
    double fail_making = 0;
    // The share of failed syncs whose bytes the disk forgets.
    double forget = 0.5;
    // How long a sync takes at most.
    uint64_t max_sync_micros = 1000;
  };

  explicit SimDisk(uint64_t seed);
  ~SimDisk();

  rocksdb::Env* env();

  void set_faults(const Faults& faults);
  void SetFull(bool is_full);

  void PowerOff();
  // The power goes instead of the `n`-th point from now, from 1; 0 takes that back.
  void CrashAtPoint(uint64_t n);
  bool is_off() const;
  // The disk keeps what a crash leaves, and works again, without faults and with room.
  void PowerOn();

  // The number of points so far.
  uint64_t points() const;
  // The number of faults so far.
  uint64_t fault_count() const;

  // Runs the jobs that RocksDB has scheduled, and those that they schedule, up to a limit.
  void RunJobs();

  // Hears of each point and each fault: "sync /journal/000012.log 400..512". Null: nobody.
  void set_listener(std::function<void(const std::string&)> listener);

 private:
  class Files;
  class Clock;
  class Environment;

  const std::shared_ptr<Files> files_;
  const std::unique_ptr<Environment> env_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_ROCKSDB_SIM_DISK_H_
