// Runs actors on the workers of a toolbox: drains the coordinator, invokes, and hands the results back.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto executor, WorkerExecutor::Start({.workers = 2}, {toolbox, lifecycle, mailboxes}));
//   mailboxes.Register({.instance = actor, .dispatcher = executor->number()});      // an actor of this executor
//   ...
//   executor->Stop();                              // returns when no worker runs any more
//
// With a toolbox of threads the coordinator steals work; where a toolbox makes the choices (SimToolbox), there is a
// single list, and it chooses who is next.
//
// Thread safety: Stop from one thread that is no worker; the rest from any.
#ifndef FRAKTOR_ACTOR_DISPATCH_WORKER_EXECUTOR_H_
#define FRAKTOR_ACTOR_DISPATCH_WORKER_EXECUTOR_H_

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

#include "fraktor/actor/dispatch/guest_seat.h"
#include "fraktor/actor/dispatch/mailbox_registry.h"
#include "fraktor/actor/dispatch/message_invoker.h"
#include "fraktor/actor/dispatch/worker_watch.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/worker.h"

namespace fraktor::inline v0 {

enum class CoordinatorKind : uint8_t { kWorkStealing, kMutex };

struct WorkerExecutorOptions {
  // In names of threads and metrics. At most 80 bytes.
  std::string name = "actors";
  // From 1 to kMaxWorkers.
  int workers = 1;
  // How many messages an actor handles before others have their turn, system messages included.
  // From 1 to 1'000'000. `watch.yield_after` says how long that may take.
  int budget = 64;
  // How many actors a worker runs before its toolbox looks at timers. From 1 to 1'000'000.
  int runs_per_step = 64;
  // How often a worker looks for work before it sleeps: WorkerOptions::idle_rounds.
  int idle_rounds = 0;
  // Handlers may block, or wait for other actors (Future::Wait, AskAndWait): the threads fire no
  // timers. Handlers that wait for actors of this executor may take all of its workers, and then
  // none of them goes on.
  bool may_block = false;
  // The CPUs that the threads may run on, from 0 to 1023; empty: any. And their nice value, from
  // -20 (runs first) to 19; not given: the usual one. Toolboxes without threads ignore both:
  // WorkerOptions.
  std::vector<int> cpus = {};
  std::optional<int> nice = std::nullopt;
  CoordinatorKind coordinator = CoordinatorKind::kWorkStealing;
  // Whether a thread that brings messages, such as one of a transport's, may run their actors itself while workers sleep:
  // guest_seat.h. Only toolboxes with threads heed it.
  bool takes_guests = true;
  WorkerWatchOptions watch = {};
  // Around each message of this executor's actors: dispatch/invoker_middleware.h has an example. For all users' actors of a
  // system: ActorSystemOptions::scheduler.dispatchers.default_pool.middleware.
  MiddlewareChain middleware = {};

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// What an executor works with. All must outlive it.
struct ExecutorServices {
  RuntimeToolbox& toolbox;
  ActorLifecycle& lifecycle;
  MailboxRegistry& mailboxes;
  ObservabilityHub* hub = nullptr;  // Null: nothing is counted.
};

class WorkerExecutor final : private WorkerWaker, private GuestHost {
 public:
  // Starts the workers. InvalidArgument for bad options; the errors of RuntimeToolbox::StartWorker.
  static absl::StatusOr<std::unique_ptr<WorkerExecutor>> Start(const WorkerExecutorOptions& options,
                                                               const ExecutorServices& services);
  // Stops. Messages of actors that are still ready are dropped.
  ~WorkerExecutor() override;

  // Lets each worker, and the guest, end the run that it is in, and waits for that. Actors that are ready stay so, and are not run.
  void Stop();

  // The same without waiting, for an executor that is to be stopped by one of its own workers: IsStopped says when.
  void StopSoon();
  bool IsStopped() const;

  // StopSoon for an executor that had one actor, which has ended. The workers of `heir`, the number
  // of another executor of the system, see to messages for that actor that are still on their way.
  // The executor's number goes back when it ends, and not with the mailboxes.
  void StopSoonFor(uint16_t heir);

  // Waits until all workers sleep, nobody is their guest, and nothing is ready, up to `timeout`. False if that did not happen, or the executor
  // was stopped before. On a toolbox without threads it does not wait: whoever pumps it knows.
  bool AwaitQuiet(absl::Duration timeout);
  bool IsQuiet() const;
  // How many runs of actors have ended. Who sees that a worker sleeps sees all of them.
  uint64_t runs() const;

  // Whether one of its workers, or the guest, is in a run of that actor right now.
  bool IsRunning(const ActorSlot& slot) const;

  // What the slots of this executor's actors have as their dispatcher.
  uint16_t number() const { return number_; }
  ReadyQueueCoordinator& coordinator() { return *coordinator_; }
  // Null on a toolbox without threads, and if it takes no guests.
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
  // As GuestHost.
  bool HasSleepers() const override { return asleep_.load(std::memory_order_relaxed) > 0; }
  void RunAsGuest(absl::Span<ActorSlot* const> actors) override;
  void OnGuestLeaves() override { NoticeQuiet(); }
  void NoticeQuiet();

  const WorkerExecutorOptions options_;
  const ExecutorServices services_;
  MessageInvoker invoker_;
  std::unique_ptr<ReadyQueueCoordinator> coordinator_;
  uint16_t number_ = 0;
  bool has_number_ = false;
  // Set before it stops, if somebody else sees to late messages. The release of state_ publishes it
  // to the workers.
  std::optional<uint16_t> heir_;
  // From the opening of the number until somebody stops the executor; who sees that it is closed sees all of it.
  std::atomic<bool> open_{false};
  std::vector<WorkerMetrics*> metrics_;
  std::vector<std::unique_ptr<ActorWorker>> workers_;
  // What a guest works with, one after the other: the seat is a lock for it. Without a place of its own among the ready
  // queues: what it makes ready is for the workers.
  std::unique_ptr<ActorWorker> guest_;
  std::shared_ptr<GuestSeat> guest_seat_;
  std::shared_ptr<WorkerWatch> watch_;
  GaugeRegistration ready_gauge_;
  // Running when all handles are there. Sequentially consistent with the look of a worker that parks, or orders the
  // handles; the looks between runs are relaxed.
  std::atomic<State> state_{State::kStarting};
  std::vector<WorkerHandle> handles_;

  // How many workers sleep; and whether somebody waits for all of them to. Sequentially consistent: the last to sleep
  // looks whether it is awaited, who waits looks whether all sleep.
  std::atomic<int> asleep_{0};
  std::atomic<int> awaited_{0};
  Mutex quiet_mutex_;
  std::condition_variable_any quiet_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_WORKER_EXECUTOR_H_
