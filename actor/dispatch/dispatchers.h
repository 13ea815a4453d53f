// The pools of workers that a system's actors run on.
//
//   Dispatchers dispatchers(options);
//   dispatchers.Start({toolbox, lifecycle, mailboxes, &hub});
//   dispatchers.NumberFor(DispatcherChoice::kPinned)        // a thread of its own
//   dispatchers.NumberFor("db")                             // a pool of the program's own
//
// - The default pool, for everybody.
// - The system pool, for the runtime's own actors: heartbeats go out however busy the users' actors are. Its workers
//   are the ones that mostly sleep, so that they also drive timers while the default pool is stuck.
// - A thread for each pinned actor, which ends with the actor.
// - Pools of the program's own, by name, for actors that must not wait for others, or must not hold
//   others up. Threads of a pool can be bound to CPUs, and have a priority. All pools begin and end
//   with the system.
//
// Work that blocks belongs on none of them, except pinned actors and pools with may_block: see
// blocking_pool.h.
//
// Thread safety: Start and Stop from one thread that is no worker; the rest from any.
#ifndef FRAKTOR_ACTOR_DISPATCH_DISPATCHERS_H_
#define FRAKTOR_ACTOR_DISPATCH_DISPATCHERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/dispatch/worker_executor.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class ActorSlot;

// A pool of the program's own: dispatcher_choice.h has an example. The name is part of the names of
// threads ("db-0"), of metrics (the label "dispatcher") and of reports about handlers that take
// long. Such a pool takes no guests.
using DispatcherOptions = WorkerExecutorOptions;

struct DispatchersOptions {
  WorkerExecutorOptions default_pool = {.name = "default", .workers = 2};
  // This one and pinned actors have no guests, whatever `takes_guests` says: those come for the users' actors.
  WorkerExecutorOptions system_pool = {.name = "system", .workers = 1};
  // What the threads of pinned actors are like; `workers` is 1, and the name is followed by a number.
  WorkerExecutorOptions pinned = {.name = "pinned", .workers = 1};
  // From 0 to 10'000.
  int max_pinned = 64;
  // Pools of the program's own, each with another name: ActorSystemOptions::dispatchers.
  std::vector<DispatcherOptions> named = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class Dispatchers {
 public:
  explicit Dispatchers(const DispatchersOptions& options);
  ~Dispatchers();

  // Before Start: who hears of actors that hold a worker too long, where the options of the pool
  // name nobody (WorkerWatchOptions::on_stall). Not of pinned actors and pools with may_block,
  // whose handlers may take long. `worker` is the name of the thread, such as "default-0", or
  // "default-guest" for one that is no worker. The same rules as for on_stall.
  void SetStallListener(std::function<void(std::string_view worker, const WorkerStall& stall)> listener);

  // InvalidArgument for bad options; the errors of RuntimeToolbox::StartWorker. Then no worker
  // runs.
  absl::Status Start(const ExecutorServices& services);
  // No worker runs afterwards.
  void Stop();

  // Waits until no worker has anything to do, and none has anything for another. False if that is not so after
  // `timeout`. On a toolbox without threads it does not wait, and says whether anything is ready.
  bool AwaitQuiet(absl::Duration timeout);

  // Where a new actor belongs. InvalidArgument if it is no choice, or no pool has the name;
  // ResourceExhausted if there are max_pinned already or no thread; FailedPrecondition before Start
  // and after Stop.
  absl::StatusOr<uint16_t> NumberFor(const DispatcherSelector& selector);
  // A pinned actor has ended: in its own turn, or because it did not come about.
  void EndPinned(uint16_t number);

  // Between Start and Stop.
  WorkerExecutor& default_pool() { return *default_; }
  WorkerExecutor& system_pool() { return *system_; }
  size_t pinned_count() const;

  // Whether a worker is in a run of that actor right now. Any thread.
  bool IsBeingRun(const ActorSlot& slot) const;

 private:
  using Executors = std::vector<std::shared_ptr<WorkerExecutor>>;

  absl::StatusOr<uint16_t> StartPinned();
  absl::StatusOr<uint16_t> NumberOfNamed(std::string_view name) const;
  // With the listener, if they have nobody to tell.
  WorkerExecutorOptions Watched(const WorkerExecutorOptions& pool) const;
  // All that there are.
  Executors Snapshot() const;
  static absl::Status NotRunning();

  const DispatchersOptions options_;
  std::function<void(std::string_view worker, const WorkerStall& stall)> stall_listener_;
  std::optional<ExecutorServices> services_;
  std::shared_ptr<WorkerExecutor> default_;
  std::shared_ptr<WorkerExecutor> system_;
  Executors named_;  // As in options_.named.
  uint16_t default_number_ = 0;
  uint16_t system_number_ = 0;
  std::vector<uint16_t> named_numbers_;  // As in options_.named.
  // Changed with the lock. Released when the above are there, for spawning threads, which do not touch the executors:
  // an actor that comes too late has the number of one that is closed.
  std::atomic<bool> running_{false};

  mutable Mutex mutex_;
  uint64_t pinned_started_ ABSL_GUARDED_BY(mutex_) = 0;
  Executors pinned_ ABSL_GUARDED_BY(mutex_);
  // Told to stop; they go when they have.
  Executors ending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_DISPATCHERS_H_
