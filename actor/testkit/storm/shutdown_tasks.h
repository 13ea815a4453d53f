// ShutdownTasks: the tasks that a storm adds to the coordinated shutdown of the system under test,
// and the checks that each task runs once, and in its phase. Tasks may be added and cancelled while
// the shutdown runs.
//
//   ShutdownTasks tasks(ledger);
//   tasks.Add(system, random);
//   system.Shutdown(absl::Seconds(60));
//   tasks.CheckEnded();
//
// Thread safety: any thread, except CheckEnded. The object outlives the system.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_SHUTDOWN_TASKS_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_SHUTDOWN_TASKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"

#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/storm/ledger.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {

class ShutdownTasks {
 public:
  explicit ShutdownTasks(Ledger& ledger) : ledger_(ledger) {}
  ShutdownTasks(const ShutdownTasks&) = delete;
  ShutdownTasks& operator=(const ShutdownTasks&) = delete;

  void Add(ActorSystem& system, Random& random);
  void CancelOne(ActorSystem& system, Random& random);
  // After the end of the system.
  void CheckEnded();

 private:
  static constexpr size_t kMost = 64;

  struct Entry {
    uint64_t id = 0;
    bool is_added = false;
    bool is_cancelled = false;
    int runs = 0;
  };

  // The task: returns a future that is ready, fails, or is ready later.
  Future<void> Run(ActorSystem& system, size_t entry, size_t phase, uint64_t draw);

  Ledger& ledger_;
  Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t latest_phase_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_SHUTDOWN_TASKS_H_
