// CoordinatedShutdown: how a system goes down in order, phase by phase, with tasks that programs add.
//
//   CoordinatedShutdown& shutdown = system.coordinated_shutdown();
//   shutdown.AddTask(shutdown_phase::kServiceUnbind, "close the port", [&] { return server.Close(); }).value();
//   Future<void> down = shutdown.Run(ShutdownReason::Unknown());
//
// ActorSystem::Terminate and Shutdown run it too, unless CoordinatedShutdownOptions::run_by_terminate is off; and so does
// SIGTERM, if on_sigterm is on. A program that ends in order when it is told to:
//
//   int main() {
//     ActorSystemOptions options{.config = {.system_name = "shop"}};
//     options.coordinated_shutdown.on_sigterm = true;
//     options.coordinated_shutdown.sigterm_deadline = absl::Seconds(20);
//     std::unique_ptr<ActorSystem> system = ActorSystem::Create(options).value();
//     system->Spawn<Shop>("shop");
//     return system->WhenTerminated().Wait().ok() ? 0 : 1;        // until somebody sends SIGTERM
//   }
//
// Three limits of time, from the inside out:
// - ShutdownPhase::timeout, of each phase: what is late is logged, and the next phase begins.
// - sigterm_deadline, of all that SIGTERM has begun: if the system has not ended by then, an error is logged that names
//   the actors which have not stopped, and the process ends as it would without us, by SIGTERM.
// - The timeout of ActorSystem::Shutdown, and of its destructor (ActorSystemOptions::shutdown_timeout), of the actors'
//   end: those that have not stopped are named by the report and ended without their hooks, once the handlers that run
//   have returned.
//
// Phases run one after the other, each after those that it depends on. The tasks of one run at the same time: they are
// begun in the order in which they were added, on one thread that belongs to the shutdown, and the next phase begins when
// all their futures are ready. A task that fails, or is not ready within its phase's timeout, is logged, and the shutdown
// goes on; unless the phase does not recover: then the shutdown ends there, with that error. Phases that are not enabled
// are left out.
//
// The last of the standard phases ends the actor system. A system without tasks ends without further ceremony.
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

// The standard phases, in their order.
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
  // Whether the shutdown goes on after a task that has failed or is late.
  bool recover = true;
  bool enabled = true;
};

// The twelve: each after the one before.
std::vector<ShutdownPhase> StandardShutdownPhases();

// The phases in the order in which they run: each after those that it depends on, and otherwise as they are given.
// InvalidArgument for a name that comes twice, a dependency that there is not, and a circle, whose phases it names.
absl::StatusOr<std::vector<ShutdownPhase>> OrderShutdownPhases(const std::vector<ShutdownPhase>& phases);

struct ShutdownReason {
  std::string text = "unknown";
  // Of the process, if CoordinatedShutdownOptions::exit is set.
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
  // Whether ActorSystem::Terminate runs it. Not without terminate_actor_system: the system would not end.
  bool run_by_terminate = true;
  // Whether SIGTERM runs it. A second one ends the process as usual. Needs a toolbox with threads.
  bool on_sigterm = false;
  // How long after SIGTERM the actor system must have ended, or else the process ends by the signal: see the top. Less
  // than what the one who sends it allows before SIGKILL, which is 30 s with most. InfiniteDuration: it is waited for.
  absl::Duration sigterm_deadline = absl::Seconds(25);
  // Called at the end, on the shutdown's thread, with the reason's exit code: `[](int code) { std::exit(code); }`. Null:
  // the process goes on.
  std::function<void(int code)> exit = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class CoordinatedShutdown {
 public:
  using TaskId = uint64_t;
  using TaskFunction = std::function<Future<void>()>;

  // By the system, which outlives it. The options are valid.
  CoordinatedShutdown(ActorSystem& system, const CoordinatedShutdownOptions& options);
  // Ends what runs.
  ~CoordinatedShutdown();
  CoordinatedShutdown(const CoordinatedShutdown&) = delete;
  CoordinatedShutdown& operator=(const CoordinatedShutdown&) = delete;

  // A task for a phase that has not begun: also while earlier ones run. InvalidArgument if there is no such phase, or the
  // task has no name; FailedPrecondition if the phase has begun, or the shutdown is over.
  absl::StatusOr<TaskId> AddTask(std::string_view phase, std::string_view name, TaskFunction task);
  // True if the task has not begun: it never will then.
  bool CancelTask(TaskId task);

  // Runs all phases, or those from one on. Only the first call does; the others wait for it too. The future is ready when
  // the last phase is over. InvalidArgument if there is no such phase, and nothing happens.
  Future<void> Run(ShutdownReason reason, std::string_view from_phase = {});

  // Of the first Run; none before.
  std::optional<ShutdownReason> reason() const;
  // The names of the phases, as they run.
  std::vector<std::string> phases() const;

  const CoordinatedShutdownOptions& options() const { return options_; }

  // By the system when it is up: begins to listen to SIGTERM, if it is to.
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
  // The tasks of a phase that begins.
  std::vector<ShutdownTask> Enter(size_t phase);
  // OK, or the error that ends the shutdown.
  absl::Status Judge(const ShutdownPhase& phase, const std::string& task, const TimedResult<void>& timed) const;
  Future<void> TerminateSystem();
  void Finish(absl::Status result);
  // On the thread that heard SIGTERM: runs the shutdown, and sees to it that it comes to an end.
  void OnSigterm();
  bool AwaitEnd(absl::Duration timeout);

  ActorSystem& system_;
  const CoordinatedShutdownOptions options_;
  // In their order.
  const std::vector<ShutdownPhase> phases_;

  mutable Mutex mutex_;
  std::vector<std::vector<ShutdownTask>> tasks_ ABSL_GUARDED_BY(mutex_);
  TaskId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // Phases before this one have begun.
  size_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ShutdownReason> reason_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
  std::vector<Promise<void>> waiting_ ABSL_GUARDED_BY(mutex_);
  // The root has ended; known if SIGTERM is listened to.
  bool is_terminated_ ABSL_GUARDED_BY(mutex_) = false;
  // This object is about to end.
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  // Of these two and result_.
  std::condition_variable_any changed_;

  // Made by the first Run.
  std::unique_ptr<SerialExecutor> executor_;
  Future<void> run_;
  std::unique_ptr<TerminationSignal> signal_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_COORDINATED_SHUTDOWN_H_
