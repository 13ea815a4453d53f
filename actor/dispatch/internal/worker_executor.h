// WorkerExecutor: a pool of workers that run actors. Dispatchers makes one for each pool and for
// each pinned actor. WorkerExecutorOptions are the options of a pool; a program gives them to
// ActorSystemOptions::dispatchers (dispatcher_choice.h has an example).
//
// Each worker takes the next ready actor from the coordinator, runs it with the MessageInvoker, and
// queues it again if it yielded. An actor belongs to the executor whose number() its slot has. The
// coordinator is a WorkStealingCoordinator, or, on a toolbox that chooses the schedule
// (SimToolbox), a MutexCoordinator that asks the toolbox for the next actor.
//
// Thread safety: one thread that is no worker calls Stop. Any thread calls the other methods.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_EXECUTOR_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_EXECUTOR_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/dispatch/internal/worker_watch.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0::actor_internal {

enum class CoordinatorKind : uint8_t { kWorkStealing, kMutex };

struct WorkerExecutorOptions {
  // Part of the names of threads and metrics. From 1 to 80 bytes.
  std::string name = "actors";
  // The number of threads, from 1 to kMaxWorkers. Nothing means 1; in the default pool of a system,
  // see ActorSystemOptions::workers.
  std::optional<int> workers = std::nullopt;
  // The number of messages, including system messages, that an actor handles before the worker runs
  // another one. From 1 to 1'000'000. `watch.yield_after` limits the time.
  int budget = 64;
  // The number of actors that a worker runs before its toolbox checks timers. From 1 to 1'000'000.
  int runs_per_step = 64;
  // How often a worker looks for work before it sleeps (WorkerOptions::idle_rounds).
  int idle_rounds = 0;
  // Whether handlers may block, or wait for other actors (Future::Wait, AskAndWait); in other pools
  // such a wait fails with FailedPrecondition. The threads fire no timers then. Handlers that wait
  // for actors of this same pool may occupy all of its workers, and then none of them ever
  // continues.
  bool may_block = false;
  // The CPUs that the threads may run on, from 0 to 1023; empty means any. The nice value of the
  // threads, from -20 (runs first) to 19; by default that of the process. Toolboxes without threads
  // ignore both (WorkerOptions).
  std::vector<int> cpus = {};
  std::optional<int> nice = std::nullopt;
  CoordinatorKind coordinator = CoordinatorKind::kWorkStealing;
  // Whether a foreign thread that sends messages, such as one of a transport, may run the actors
  // itself while workers sleep (guest_seat.h). Toolboxes without threads ignore it.
  bool takes_guests = true;
  WorkerWatchOptions watch = {};
  // Code that runs before and after each message of this pool's actors; invoker_middleware.h has an
  // example.
  MiddlewareChain middleware = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// The collaborators of an executor. All must outlive it.
struct ExecutorServices {
  RuntimeToolbox& toolbox;
  ActorLifecycle& lifecycle;
  MailboxRegistry& mailboxes;
  ObservabilityHub* hub = nullptr;  // Null means that nothing is counted.
};

class WorkerExecutor final : private WorkerWaker, private GuestHost {
 public:
  // Starts the workers. InvalidArgument for bad options; the errors of RuntimeToolbox::StartWorker.
  static absl::StatusOr<std::unique_ptr<WorkerExecutor>> Start(const WorkerExecutorOptions& options,
                                                               const ExecutorServices& services);
  // Calls Stop. Drops the messages of actors that are still ready.
  ~WorkerExecutor() override;

  // Waits until each worker and the guest have ended the run that they are in. Actors that are
  // ready stay queued and are not run.
  void Stop();

  // Stops without waiting, so that a worker of the executor can call it. IsStopped returns true
  // when the executor has stopped.
  void StopSoon();
  bool IsStopped() const;

  // StopSoon for the executor of one actor, which has ended. `heir` is the number of another
  // executor of the system, whose workers handle messages to that actor that are still under way.
  // The number of this executor is free again when the executor ends, not only when the mailboxes
  // of the system end.
  void StopSoonFor(uint16_t heir);

  // Blocks up to `timeout` until all workers sleep, there is no guest, and no actor is ready.
  // Returns false if that did not happen, or if the executor is stopped. On a toolbox without
  // threads it does not wait: it returns whether no actor is ready.
  bool AwaitQuiet(absl::Duration timeout);
  bool IsQuiet() const;
  // Returns the number of runs of actors that have ended. A thread that sees that a worker sleeps
  // sees all runs of that worker.
  uint64_t runs() const;

  // Returns whether a worker or the guest runs that actor right now.
  bool IsRunning(const ActorSlot& slot) const;

  // The dispatcher number in the slots of this executor's actors.
  uint16_t number() const { return number_; }
  ReadyQueueCoordinator& coordinator() { return *coordinator_; }
  // Null on a toolbox without threads, and if the pool takes no guests.
  const std::shared_ptr<GuestSeat>& guest_seat() const { return guest_seat_; }
  // Null on a toolbox without threads.
  const WorkerWatch* watch() const { return watch_.get(); }
  const WorkerExecutorOptions& options() const { return options_; }

 private:
  class Loop;
  enum class State : uint8_t { kStarting, kRunning, kStopping };

  WorkerExecutor(const WorkerExecutorOptions& options, const ExecutorServices& services);
  absl::Status AddMetrics();
  absl::Status AddGuest();
  void WakeWorker(WorkerIndex worker) override { handles_[worker].Wake(); }
  // GuestHost.
  bool HasSleepers() const override { return asleep_.load(std::memory_order_relaxed) > 0; }
  void RunAsGuest(absl::Span<ActorSlot* const> actors) override;
  void OnGuestLeaves() override { NoticeQuiet(); }
  void NoticeQuiet();

  const WorkerExecutorOptions options_;
  const int workers_wanted_;  // options_.workers, or 1.
  const ExecutorServices services_;
  MessageInvoker invoker_;
  std::unique_ptr<ReadyQueueCoordinator> coordinator_;
  uint16_t number_ = 0;
  bool has_number_ = false;
  bool is_started_ = false;  // Start has succeeded: actors may have the number.
  // Set before the executor stops, if another executor handles late messages. The store of state_
  // releases it to the workers.
  std::optional<uint16_t> heir_;
  // True from the opening of the number until the executor is stopped. The exchange in StopSoon
  // pairs with the acquire in IsStopped.
  std::atomic<bool> open_{false};
  std::vector<WorkerMetrics*> metrics_;
  std::vector<std::unique_ptr<ActorWorker>> workers_;
  // The worker object of the guest. The seat is the lock that guards it. It has no queue of its
  // own: the actors that it schedules go to the workers.
  std::unique_ptr<ActorWorker> guest_;
  std::shared_ptr<GuestSeat> guest_seat_;
  std::shared_ptr<WorkerWatch> watch_;
  GaugeRegistration ready_gauge_;
  // kRunning as soon as all handles are set, which the store publishes. Sequentially consistent
  // with the load of a worker before it parks. The loads between runs are relaxed.
  std::atomic<State> state_{State::kStarting};
  std::vector<WorkerHandle> handles_;

  // The number of workers that sleep, and the number of threads in AwaitQuiet. Sequentially
  // consistent: a worker adds itself and then reads awaited_; a thread in AwaitQuiet adds itself
  // and then reads asleep_. At least one of them sees the other.
  std::atomic<int> asleep_{0};
  std::atomic<int> awaited_{0};
  Mutex quiet_mutex_;
  std::condition_variable_any quiet_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_EXECUTOR_H_
