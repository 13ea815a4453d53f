// PlacementCoordinatorDriver: does what a PlacementCoordinatorCore decides: asks the lock and the storage, starts and
// stops actors, publishes events, tries again.
//
//   auto driver = PlacementCoordinatorDriver::Make({toolbox, executor, lock, storage, actors, &stream}, {}).value();
//   FRAKTOR_RETURN_IF_ERROR(driver->StartMember(self));
//   driver->UpdateTopology(topology);
//   Future<PlacementResolutionPtr> resolving = driver->Resolve(key);
//
// Lookups of one key are one lookup. One that fails in a way that may pass (the lock is held, the storage does not
// answer) is tried again after a pause that doubles, up to `max_retries` times and `lookup_timeout` in all. A command
// that is not answered within `command_timeout` counts as failed; what it may have done all the same is undone, and an
// answer that comes later is ignored.
//
// What the lock, the storage and the activations answer at once is gone on with at once, on the thread that asked. So where
// all of them do, a lookup is over when Resolve returns, and its future is ready.
//
// Events go to the stream in the order in which they came about, one at a time, from the thread that happens to be
// there.
//
// What the lock, the storage or the activations throw counts as their answer, Internal with the text.
//
// Thread safety: any thread may call anything. Nothing of others is called with the lock held. Continuations run on the
// executor. The toolbox, the executor and the stream must outlive it.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_DRIVER_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/pid_cache.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/identity/virtual_actor_registry.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/placement_command.h"
#include "fraktor/cluster/placement/placement_coordinator_core.h"
#include "fraktor/cluster/placement/placement_event.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct PlacementDriverOptions {
  PlacementOptions placement = {};
  // For each command; looked at once per tick.
  absl::Duration command_timeout = absl::Seconds(5);
  absl::Duration tick_period = absl::Milliseconds(500);
  // For a lookup with all its retries.
  absl::Duration lookup_timeout = absl::Seconds(15);
  int max_retries = 5;
  // The pause before the first retry; each further one is twice as long, up to max_backoff, and by chance up to a fifth
  // longer.
  absl::Duration min_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  // Lookups that wait at one time; a further one fails with kPending.
  size_t max_waiting = 65'536;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class PlacementCoordinatorDriver final : public std::enable_shared_from_this<PlacementCoordinatorDriver> {
 public:
  using ResolveOptions = PlacementCoordinatorCore::ResolveOptions;

  // What it works with.
  struct Parts {
    RuntimeToolbox& toolbox;
    Executor& executor;
    std::shared_ptr<PlacementLock> lock;
    std::shared_ptr<ActivationStorage> storage;
    std::shared_ptr<ActivationExecutor> activations;
    EventStream* events = nullptr;  // none: nobody is told
  };

  // InvalidArgument for times and limits that are not positive; what the toolbox says if it has no timer left.
  static absl::StatusOr<std::shared_ptr<PlacementCoordinatorDriver>> Make(Parts parts,
                                                                          const PlacementDriverOptions& options);
  ~PlacementCoordinatorDriver();
  PlacementCoordinatorDriver(const PlacementCoordinatorDriver&) = delete;
  PlacementCoordinatorDriver& operator=(const PlacementCoordinatorDriver&) = delete;

  // As in PlacementCoordinatorCore.
  absl::Status StartMember(const Member& self);
  absl::Status StartClient();
  void UpdateTopology(ClusterTopologyPtr topology);
  void SetWhyStopped(std::string why);
  void RenewMembership(Instant valid_until);

  // Ends lookups and what runs here; ready when all has ended.
  Future<void> Stop();
  // Hands over what runs here; ready when nothing is left. Lookups of grains on other nodes go on.
  Future<void> Leave();

  // Where a grain is; it is activated if it runs nowhere and belongs here. Errors are LookupErrors, kTimeout among
  // them, or what starting it said.
  Future<PlacementResolutionPtr> Resolve(const GrainKey& key) { return Resolve(key, ResolveOptions()); }
  Future<PlacementResolutionPtr> Resolve(const GrainKey& key, const ResolveOptions& options);

  // The same without waiting: kPending begins it, or says that it has begun.
  absl::StatusOr<PlacementResolutionPtr> TryResolve(const GrainKey& key, Instant now) {
    {
      MutexLock lock(mutex_);
      if (PlacementResolutionPtr cached = core_.Cached(key, now)) return cached;
    }
    return BeginLookup(key, now);
  }

  // As in PlacementCoordinatorCore.
  PlacementResolutionPtr Cached(const GrainKey& key);
  PlacementResolutionPtr Local(const GrainKey& key) const;
  void Learn(PlacementResolutionPtr resolution);
  void RemovePid(const GrainKey& key, std::string_view pid);
  void ActivationEnded(const GrainKey& key, uint64_t token, const absl::Status& why = absl::OkStatus());
  void Passivate(const GrainKey& key);
  void Touch(const GrainKey& key);
  void Keep(const GrainKey& key, absl::Duration duration);

  PlacementSnapshot Snapshot() const;
  ClusterTopologyPtr topology() const;
  // Answers that fitted no request. There are none, unless a part answers twice.
  uint64_t mismatches() const;

 private:
  using AnyEvent = std::variant<TopologyChanged, PlacementEvent, PidCacheEvent, VirtualActorEvent>;
  using Outcome = PlacementCoordinatorOutcome;

  // A command that is being executed.
  struct Operation {
    PlacementRequestId request_id = {};
    Instant deadline = {};
    PlacementCommandResult (*fail)(PlacementRequestId, absl::Status) = nullptr;
    Future<void> watching = {};
  };
  struct Waiter {
    Promise<PlacementResolutionPtr> promise;
    Instant deadline = {};
    int retries_left = 0;
  };
  // Those who want to know about one key.
  struct Waiting {
    std::vector<Waiter> waiters = {};
    bool is_redirected = false;
    bool is_paused = false;  // until retry_at
    Instant retry_at = {};
    int failures = 0;
  };
  // What is done when the lock has been let go.
  struct Effects {
    std::vector<PlacementCommand> commands = {};
    std::vector<std::pair<Promise<PlacementResolutionPtr>, absl::StatusOr<PlacementResolutionPtr>>> answers = {};
    std::vector<Promise<void>> done = {};
    std::vector<Future<void>> dropped = {};
    std::vector<std::pair<GrainKey, Instant>> retries = {};
    bool has_events = false;  // that are not published yet
  };

  PlacementCoordinatorDriver(Parts parts, const PlacementDriverOptions& options);

  // For whatever may lead to events: where nobody listens none are made.
  PlacementCoordinatorCore& Core() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PlacementResolutionPtr> BeginLookup(const GrainKey& key, Instant now);
  void Apply(Outcome outcome, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeTableEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyOne(Outcome& outcome, std::vector<Outcome>& further, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ask(const GrainKey& key, std::vector<Outcome>& outcomes, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The core has not begun to look for it.
  void Refused(const GrainKey& key, const absl::Status& status, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle(const GrainKey& key, const absl::StatusOr<PlacementResolutionPtr>& result, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryLater(const GrainKey& key, const absl::Status& status, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(Effects effects);
  std::vector<PlacementCommandResult> RunOnce(Effects& effects);
  void Handle(PlacementCommandResult result, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish();
  // Those that are answered at once are in `answered`.
  void Execute(PlacementCommand& command, std::vector<PlacementCommandResult>& answered);
  template <class Result, class T>
  void Await(PlacementRequestId request_id, Future<T> future, std::vector<PlacementCommandResult>& answered);
  void Finish(uint64_t operation, PlacementCommandResult result);
  void Retry(const GrainKey& key);
  void Tick();

  const PlacementDriverOptions options_;
  RuntimeToolbox& toolbox_;
  Executor& executor_;
  const std::shared_ptr<PlacementLock> lock_;
  const std::shared_ptr<ActivationStorage> storage_;
  const std::shared_ptr<ActivationExecutor> activations_;
  EventStream* const events_;
  TimerId timer_;

  mutable Mutex mutex_;
  PlacementCoordinatorCore core_ ABSL_GUARDED_BY(mutex_);
  Random random_ ABSL_GUARDED_BY(mutex_);
  // In the order in which they began, which is that of their deadlines.
  std::map<uint64_t, Operation> operations_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_operation_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<GrainKey, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t waiters_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Promise<void>> until_nothing_runs_ ABSL_GUARDED_BY(mutex_);
  std::vector<AnyEvent> unpublished_ ABSL_GUARDED_BY(mutex_);
  bool is_publishing_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the stream, when the core was last told who listens.
  uint64_t heard_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t mismatches_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_DRIVER_H_
