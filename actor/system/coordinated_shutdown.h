// CoordinatedShutdown: ends a system in order, phase by phase, with tasks that programs add.
//
//   CoordinatedShutdown& shutdown = system.coordinated_shutdown();
//   shutdown.AddTask(shutdown_phase::kServiceUnbind, "close the port", [&] { return server.Close(); }).value();
//   Future<void> down = shutdown.Run(ShutdownReason::Unknown());
//
// ActorSystem::Terminate and Shutdown run it too, unless
// CoordinatedShutdownOptions::run_by_terminate is off, and SIGTERM runs it if on_sigterm is on. A
// program that ends in order after SIGTERM:
//
//   int main() {
//     ActorSystemOptions options{.config = {.system_name = "shop"}};
//     options.coordinated_shutdown.on_sigterm = true;
//     options.coordinated_shutdown.sigterm_deadline = absl::Seconds(20);
//     std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
//     system->Spawn<Shop>("shop");
//     return system->WhenTerminated().Wait().ok() ? 0 : 1;        // until SIGTERM comes
//   }
//
// Three time limits, from the inside out:
// - ShutdownPhase::timeout limits a phase: late tasks are logged, and the next phase begins.
// - sigterm_deadline limits a shutdown by SIGTERM: if the system has not ended by then, the log
//   names the actors that have not stopped, and the process ends by SIGTERM.
// - The timeout of ActorSystem::Shutdown and of the destructor
//   (ActorSystemOptions::shutdown_timeout) limits the end of the actors: the report names those
//   that have not stopped. They end without their hooks, after running handlers have returned.
//
// Phases run one after the other, each after the phases that it depends on. The tasks of a phase
// overlap: one thread of the shutdown starts them in the order in which they were added, and the
// next phase begins when all their futures are ready. A task that fails, or is late, is logged, and
// the shutdown goes on. If the phase has `recover` off, the shutdown ends there with that error.
// Phases that are not enabled are skipped.
//
// The last of the standard phases ends the actor system.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_SYSTEM_COORDINATED_SHUTDOWN_H_
#define FRAKTOR_ACTOR_SYSTEM_COORDINATED_SHUTDOWN_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class ActorSystem;
template <class T>
struct TimedResult;
class SerialExecutor;
class TerminationSignal;

// The names of the standard phases, in their order.
namespace shutdown_phase {
inline constexpr std::string_view kBeforeServiceUnbind = "before-service-unbind";
inline constexpr std::string_view kServiceUnbind = "service-unbind";
inline constexpr std::string_view kServiceRequestsDone = "service-requests-done";
inline constexpr std::string_view kServiceStop = "service-stop";
inline constexpr std::string_view kBeforeClusterShutdown = "before-cluster-shutdown";
inline constexpr std::string_view kClusterShardingShutdownRegion = "cluster-sharding-shutdown-region";
inline constexpr std::string_view kClusterLeave = "cluster-leave";
inline constexpr std::string_view kClusterExiting = "cluster-exiting";
inline constexpr std::string_view kClusterExitingDone = "cluster-exiting-done";
inline constexpr std::string_view kClusterShutdown = "cluster-shutdown";
inline constexpr std::string_view kBeforeActorSystemTerminate = "before-actor-system-terminate";
inline constexpr std::string_view kActorSystemTerminate = "actor-system-terminate";
}  // namespace shutdown_phase

struct ShutdownPhase {
  std::string name = {};
  std::vector<std::string> depends_on = {};
  absl::Duration timeout = absl::Seconds(5);
  // Whether the shutdown goes on after a failed or late task.
  bool recover = true;
  bool enabled = true;
};

// The twelve standard phases. Each depends on the one before.
std::vector<ShutdownPhase> StandardShutdownPhases();

// Sorts phases: each comes after the phases that it depends on, and otherwise in the given order.
// InvalidArgument for a name that comes twice, an unknown dependency, and a cycle, with its phases.
absl::StatusOr<std::vector<ShutdownPhase>> OrderShutdownPhases(const std::vector<ShutdownPhase>& phases);

struct ShutdownReason {
  std::string text = "unknown";
  // The exit code of the process, if CoordinatedShutdownOptions::exit is set.
  int exit_code = 0;

  static ShutdownReason Unknown() { return {}; }
  static ShutdownReason ActorSystemTerminate() { return {.text = "the actor system is terminated"}; }
  static ShutdownReason Signal() { return {.text = "the process was told to end"}; }
  static ShutdownReason ClusterDowning() {
    return {.text = "the cluster has declared this node down", .exit_code = -1};
  }
};

struct CoordinatedShutdownOptions {
  std::vector<ShutdownPhase> phases = StandardShutdownPhases();
  // Whether the phase "actor-system-terminate" ends the actor system.
  bool terminate_actor_system = true;
  // Whether ActorSystem::Terminate runs the phases. Needs terminate_actor_system: without it the
  // system would not end.
  bool run_by_terminate = true;
  // Whether SIGTERM runs the phases. A second SIGTERM ends the process. Needs a toolbox with
  // threads.
  bool on_sigterm = false;
  // The time from SIGTERM until the actor system must have ended. Otherwise the process ends by the
  // signal: see above. Choose less than the time until SIGKILL, which is often 30 s. Infinite: no
  // limit.
  absl::Duration sigterm_deadline = absl::Seconds(25);
  // Called at the end, on the thread of the shutdown, with the exit code of the reason:
  // `[](int code) { std::exit(code); }`. Null: the process goes on.
  std::function<void(int code)> exit = nullptr;

  // Returns InvalidArgument with the name of the invalid option.
  absl::Status Validate() const;
};

class CoordinatedShutdown {
 public:
  using TaskId = uint64_t;
  using TaskFunction = std::function<Future<void>()>;

  // Called by the system, which outlives this object. The options are valid.
  CoordinatedShutdown(ActorSystem& system, const CoordinatedShutdownOptions& options);
  // Cancels a running shutdown.
  ~CoordinatedShutdown();
  CoordinatedShutdown(const CoordinatedShutdown&) = delete;
  CoordinatedShutdown& operator=(const CoordinatedShutdown&) = delete;

  // Adds a task to a phase that has not begun, also while earlier phases run. InvalidArgument if
  // there is no such phase, or the task has no name; FailedPrecondition if the phase has begun, or
  // the shutdown has ended.
  absl::StatusOr<TaskId> AddTask(std::string_view phase, std::string_view name, TaskFunction task);
  // Removes a task. Returns false if the task has begun.
  bool CancelTask(TaskId task);

  // Runs all phases, or those from one phase on. Only the first call starts them; later calls
  // return a future of the same run. The future is ready after the last phase. InvalidArgument, and
  // no run, if there is no such phase.
  Future<void> Run(ShutdownReason reason, std::string_view from_phase = {});

  // The reason of the first Run. Empty before it.
  std::optional<ShutdownReason> reason() const;
  // The names of the phases, in the order in which they run.
  std::vector<std::string> phases() const;

  const CoordinatedShutdownOptions& options() const { return options_; }

  // Called by the system after its boot: listens to SIGTERM if on_sigterm is on.
  absl::Status ListenToSignals();

 private:
  struct ShutdownTask {
    TaskId id;
    std::string name;
    TaskFunction function;
  };

  static Task<void> RunPhases(CoordinatedShutdown* shutdown, size_t first);
  void Begin(size_t first);
  std::optional<size_t> Find(std::string_view phase) const;
  // Takes the tasks of a phase that begins.
  std::vector<ShutdownTask> Enter(size_t phase);
  // OK, or the error that ends the shutdown.
  absl::Status Judge(const ShutdownPhase& phase, const std::string& task, const TimedResult<void>& timed) const;
  Future<void> TerminateSystem();
  void Finish(absl::Status result);
  // Called on the thread of TerminationSignal: runs the shutdown, and enforces sigterm_deadline.
  void OnSigterm();
  bool AwaitEnd(absl::Duration timeout);

  ActorSystem& system_;
  const CoordinatedShutdownOptions options_;
  // In the order in which they run.
  const std::vector<ShutdownPhase> phases_;

  mutable Mutex mutex_;
  std::vector<std::vector<ShutdownTask>> tasks_ ABSL_GUARDED_BY(mutex_);
  TaskId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // The index of the first phase that has not begun.
  size_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ShutdownReason> reason_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<void>> waiting_ ABSL_GUARDED_BY(mutex_);
  // Whether the root has ended. Set only if on_sigterm is on.
  bool is_terminated_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether the destructor runs.
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  // Signals changes of these two and of result_.
  std::condition_variable_any changed_;

  // The first Run makes it.
  std::unique_ptr<SerialExecutor> executor_;
  Future<void> run_;
  std::unique_ptr<TerminationSignal> signal_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_COORDINATED_SHUTDOWN_H_
