// Dispatchers: the pools of workers that the actors of a system run on. ReadyQueueScheduler owns
// it; ActorTree calls NumberFor for each actor that it spawns. Programs declare pools of their own:
//
//   DispatcherOptions db{.name = "db", .workers = 4, .may_block = true};
//   ActorSystemOptions options{.config = {.system_name = "shop"}, .dispatchers = {db}};
//
// The pools:
// - The default pool is for all actors that choose no other.
// - The system pool is for the runtime's own actors, so that heartbeats go out even if the users'
//   actors keep the default pool busy. Its workers mostly sleep, so they also drive timers while
//   the default pool is stuck.
// - Each pinned actor has a thread of its own, which ends with the actor.
// - A program can have pools of its own, by name (dispatcher_choice.h), for actors that must not
//   wait for others, or must not delay others. The threads of a pool can be bound to CPUs and have
//   a priority. All pools begin and end with the system.
//
// Handlers must not block on any of them, except pinned actors and pools with may_block. For
// blocking work see blocking_pool.h.
//
// Thread safety: one thread that is no worker calls Start and Stop. Any thread calls the other
// methods.
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
#include "fraktor/actor/dispatch/internal/worker_executor.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

namespace actor_internal {
class ActorSlot;
}  // namespace actor_internal

// The types of members of DispatcherOptions, and of what a stall listener gets.
using actor_internal::CoordinatorKind;
using actor_internal::WorkerStall;

// The options of a pool of the program; dispatcher_choice.h has an example. Names of threads
// ("db-0"), metrics (the label "dispatcher") and reports about slow handlers contain its name. Such
// a pool takes no guests.
using DispatcherOptions = actor_internal::WorkerExecutorOptions;

struct DispatchersOptions {
  // Without a number of workers it has two. ActorSystem gives it that of its own options.
  actor_internal::WorkerExecutorOptions default_pool = {.name = "default"};
  // The system pool and pinned actors take no guests, even if `takes_guests` is set: guests run
  // actors of the default pool.
  actor_internal::WorkerExecutorOptions system_pool = {.name = "system", .workers = 1};
  // The options of the threads of pinned actors. `workers` is 1. A number follows the name.
  actor_internal::WorkerExecutorOptions pinned = {.name = "pinned", .workers = 1};
  // The largest number of pinned actors. From 0 to 10'000.
  int max_pinned = 64;
  // The pools of the program (ActorSystemOptions::dispatchers). No two have the same name.
  std::vector<DispatcherOptions> named = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class Dispatchers {
 public:
  explicit Dispatchers(const DispatchersOptions& options);
  ~Dispatchers();

  // Call it before Start. The listener gets reports about actors that hold a worker too long, for
  // pools without an on_stall of their own (WorkerWatchOptions). It gets none about pinned actors
  // and pools with may_block, whose handlers may take long. `worker` is the name of the thread,
  // such as "default-0", or "default-guest" for a guest. The rules of on_stall apply.
  void SetStallListener(std::function<void(std::string_view worker, const WorkerStall& stall)> listener);

  // InvalidArgument for bad options; the errors of RuntimeToolbox::StartWorker. Then no worker
  // runs.
  absl::Status Start(const actor_internal::ExecutorServices& services);
  // Stops the pools one after the other: those with may_block and pinned actors first, the default
  // pool last. Waits for the handlers that run. No worker runs afterwards.
  void Stop();

  // Blocks until all workers sleep and no actor is ready. Returns false if that is not so after
  // `timeout`. On a toolbox without threads it does not wait: it returns whether no actor is ready.
  bool AwaitQuiet(absl::Duration timeout);

  // Returns the dispatcher number for a new actor. InvalidArgument for a bad choice or an unknown
  // name. ResourceExhausted if there are max_pinned pinned actors already, or no thread.
  // FailedPrecondition before Start and after Stop.
  absl::StatusOr<uint16_t> NumberFor(const DispatcherSelector& selector);
  // A pinned actor has ended, in its own turn, or could not be spawned.
  void EndPinned(uint16_t number);

  // Call these between Start and Stop.
  actor_internal::WorkerExecutor& default_pool() { return *default_; }
  actor_internal::WorkerExecutor& system_pool() { return *system_; }
  size_t pinned_count() const;

  // Returns whether a worker runs that actor right now.
  bool IsBeingRun(const actor_internal::ActorSlot& slot) const;

 private:
  using Executors = std::vector<std::shared_ptr<actor_internal::WorkerExecutor>>;

  absl::StatusOr<uint16_t> StartPinned();
  absl::StatusOr<uint16_t> NumberOfNamed(std::string_view name) const;
  // Returns the options with the stall listener, unless they have an on_stall.
  actor_internal::WorkerExecutorOptions Watched(const actor_internal::WorkerExecutorOptions& pool) const;
  // Returns all executors.
  Executors Snapshot() const;
  static absl::Status NotRunning();

  const DispatchersOptions options_;
  std::function<void(std::string_view worker, const WorkerStall& stall)> stall_listener_;
  std::optional<actor_internal::ExecutorServices> services_;
  std::shared_ptr<actor_internal::WorkerExecutor> default_;
  std::shared_ptr<actor_internal::WorkerExecutor> system_;
  Executors named_;  // As in options_.named.
  uint16_t default_number_ = 0;
  uint16_t system_number_ = 0;
  std::vector<uint16_t> named_numbers_;  // As in options_.named.
  // Written under the lock. The release in Start pairs with the acquire in NumberFor and publishes
  // the numbers above. A thread that spawns an actor does not use the executors; an actor that is
  // spawned too late has the number of a closed executor.
  std::atomic<bool> running_{false};

  mutable Mutex mutex_;
  uint64_t pinned_started_ ABSL_GUARDED_BY(mutex_) = 0;
  Executors pinned_ ABSL_GUARDED_BY(mutex_);
  // Executors of pinned actors that have ended. They are destroyed when they have stopped.
  Executors ending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_DISPATCHERS_H_
