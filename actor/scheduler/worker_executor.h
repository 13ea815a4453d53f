// Runs actors on the workers of a toolbox: drains the coordinator, invokes, and hands the results back.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto executor, WorkerExecutor::Start({.workers = 2}, toolbox, lifecycle));
//   slot.dispatcher = executor->number();          // actors of this executor
//   ...
//   executor->Stop();                              // returns when no worker runs any more
//
// With a toolbox of threads the coordinator steals work; on one thread it keeps a single list, and a simulation chooses
// who is next.
//
// Thread safety: Stop from one thread that is no worker; the rest from any.
#ifndef FRAKTOR_ACTOR_SCHEDULER_WORKER_EXECUTOR_H_
#define FRAKTOR_ACTOR_SCHEDULER_WORKER_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/scheduler/actor_worker.h"
#include "fraktor/actor/scheduler/message_invoker.h"
#include "fraktor/actor/scheduler/ready_queue_coordinator.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/worker.h"

namespace fraktor::inline v0 {

enum class CoordinatorKind : uint8_t { kWorkStealing, kMutex };

struct WorkerExecutorOptions {
  std::string name = "actors";
  // From 1 to kMaxWorkers.
  int workers = 1;
  // How many messages an actor handles before others have their turn. From 1 to 1'000'000.
  int budget = 64;
  // How many actors a worker runs before its toolbox looks at timers. From 1 to 1'000'000.
  int runs_per_step = 16;
  CoordinatorKind coordinator = CoordinatorKind::kWorkStealing;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class WorkerExecutor final : private WorkerWaker {
 public:
  // Starts the workers. `toolbox` and `lifecycle` must outlive the executor.
  static absl::StatusOr<std::unique_ptr<WorkerExecutor>> Start(const WorkerExecutorOptions& options,
                                                               RuntimeToolbox& toolbox, ActorLifecycle& lifecycle);
  ~WorkerExecutor() override;

  // Lets each worker end the run that it is in, and waits for that. Actors that are ready stay so, and are not run.
  void Stop();

  // What the slots of this executor's actors have as their dispatcher.
  uint16_t number() const { return number_; }
  ReadyQueueCoordinator& coordinator() { return *coordinator_; }

 private:
  class Loop;

  WorkerExecutor(const WorkerExecutorOptions& options, ActorLifecycle& lifecycle);
  void WakeWorker(WorkerIndex worker) override { handles_[worker].Wake(); }

  const WorkerExecutorOptions options_;
  MessageInvoker invoker_;
  ActorLifecycle& lifecycle_;
  std::unique_ptr<ReadyQueueCoordinator> coordinator_;
  uint16_t number_ = 0;
  bool open_ = false;
  // Set by Stop, read by the workers between runs; the wake-up that follows orders it.
  std::atomic<bool> stopping_{false};
  std::vector<WorkerHandle> handles_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_WORKER_EXECUTOR_H_
