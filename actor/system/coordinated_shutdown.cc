#include "fraktor/actor/system/coordinated_shutdown.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/termination_signal.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/when_all.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor::inline v0 {

using actor_internal::ActorTree;

namespace {

Future<void> Begun(const CoordinatedShutdown::TaskFunction& task) {
  try {
    return task();
  } catch (...) {
    return MakeReadyFuture<void>(StatusFromException(CaptureException()));
  }
}

absl::Status NoSuchPhase(std::string_view phase) {
  return absl::InvalidArgumentError(
      absl::StrCat("no shutdown phase is called \"", ToAbsl(phase),
                   "\": name a standard one (shutdown_phase), or add it to CoordinatedShutdownOptions.phases"));
}

}  // namespace

std::vector<ShutdownPhase> StandardShutdownPhases() {
  namespace phase = shutdown_phase;
  std::vector<ShutdownPhase> phases;
  for (const std::string_view name :
       {phase::kBeforeServiceUnbind, phase::kServiceUnbind, phase::kServiceRequestsDone, phase::kServiceStop,
        phase::kBeforeClusterShutdown, phase::kClusterShardingShutdownRegion, phase::kClusterLeave,
        phase::kClusterExiting, phase::kClusterExitingDone, phase::kClusterShutdown, phase::kBeforeActorSystemTerminate,
        phase::kActorSystemTerminate}) {
    ShutdownPhase next;
    next.name = std::string(name);
    if (!phases.empty()) next.depends_on.push_back(phases.back().name);
    if (name == phase::kClusterShardingShutdownRegion || name == phase::kClusterExiting ||
        name == phase::kActorSystemTerminate) {
      next.timeout = absl::Seconds(10);
    }
    phases.push_back(std::move(next));
  }
  return phases;
}

absl::StatusOr<std::vector<ShutdownPhase>> OrderShutdownPhases(const std::vector<ShutdownPhase>& phases) {
  const auto find = [&](const std::string& name) {
    return std::find_if(phases.begin(), phases.end(), [&](const ShutdownPhase& phase) { return phase.name == name; });
  };
  for (const ShutdownPhase& phase : phases) {
    if (phase.name.empty()) {
      return absl::InvalidArgumentError("a phase of CoordinatedShutdownOptions.phases has no name; give it one");
    }
    if (&*find(phase.name) != &phase) {
      return absl::InvalidArgumentError(
          absl::StrCat("two shutdown phases are called \"", phase.name, "\"; give each its own name"));
    }
    for (const std::string& other : phase.depends_on) {
      if (find(other) == phases.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("shutdown phase \"", phase.name, "\" depends on \"", other,
                         "\", which does not exist; add that phase, or remove the dependency"));
      }
    }
  }
  std::vector<ShutdownPhase> ordered;
  std::vector<bool> is_taken(phases.size(), false);
  const auto has = [&](const std::string& name) {
    return std::any_of(ordered.begin(), ordered.end(), [&](const ShutdownPhase& phase) { return phase.name == name; });
  };
  while (ordered.size() < phases.size()) {
    size_t next = 0;
    while (next < phases.size() &&
           (is_taken[next] || !std::all_of(phases[next].depends_on.begin(), phases[next].depends_on.end(), has))) {
      ++next;
    }
    if (next == phases.size()) {
      std::string circle;
      for (size_t i = 0; i < phases.size(); ++i) {
        if (!is_taken[i]) absl::StrAppend(&circle, circle.empty() ? "" : ", ", phases[i].name);
      }
      return absl::InvalidArgumentError(absl::StrCat("shutdown phases depend on each other in a circle: ", circle));
    }
    is_taken[next] = true;
    ordered.push_back(phases[next]);
  }
  return ordered;
}

absl::Status CoordinatedShutdownOptions::Validate() const {
  for (const ShutdownPhase& phase : phases) {
    if (phase.timeout <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat("the timeout of shutdown phase \"", phase.name, "\" is ",
                                                     absl::FormatDuration(phase.timeout), "; it must be positive"));
    }
  }
  if (run_by_terminate && !terminate_actor_system) {
    return absl::InvalidArgumentError(
        "CoordinatedShutdownOptions.run_by_terminate is on and terminate_actor_system is off: a system that is told to "
        "terminate would not end; turn the first off too");
  }
  if (sigterm_deadline <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("CoordinatedShutdownOptions.sigterm_deadline is ",
                                                   absl::FormatDuration(sigterm_deadline),
                                                   "; it must be positive, or absl::InfiniteDuration() for none"));
  }
  FRAKTOR_ASSIGN_OR_RETURN(const std::vector<ShutdownPhase> ordered, OrderShutdownPhases(phases));
  const bool has_last = std::any_of(ordered.begin(), ordered.end(), [](const ShutdownPhase& phase) {
    return phase.name == shutdown_phase::kActorSystemTerminate && phase.enabled;
  });
  if (terminate_actor_system && !has_last) {
    return absl::InvalidArgumentError(
        absl::StrCat("CoordinatedShutdownOptions.terminate_actor_system is on, but no phase \"",
                     ToAbsl(shutdown_phase::kActorSystemTerminate), "\" is enabled"));
  }
  return absl::OkStatus();
}

CoordinatedShutdown::CoordinatedShutdown(ActorSystem& system, const CoordinatedShutdownOptions& options)
    : system_(system),
      options_(options),
      phases_(OrderShutdownPhases(options.phases).value_or(std::vector<ShutdownPhase>())),
      tasks_(phases_.size()) {}

CoordinatedShutdown::~CoordinatedShutdown() {
  {
    MutexLock lock(mutex_);
    is_leaving_ = true;
  }
  changed_.notify_all();
  signal_.reset();
  // Woken tasks still run. Waiting tasks are cancelled.
  executor_.reset();
  run_ = Future<void>();
  Finish(absl::CancelledError("the actor system has ended before its shutdown was over"));
}

absl::Status CoordinatedShutdown::ListenToSignals() {
  if (!options_.on_sigterm) return absl::OkStatus();
  FRAKTOR_RETURN_IF_ERROR(system_.OnTermination([this] {
    MutexLock lock(mutex_);
    is_terminated_ = true;
    changed_.notify_all();
  }));
  FRAKTOR_ASSIGN_OR_RETURN(signal_, TerminationSignal::Listen(system_.toolbox(), [this] { OnSigterm(); }));
  return absl::OkStatus();
}

void CoordinatedShutdown::OnSigterm() {
  const auto log = [this](LogLevel level, std::string_view text) {
    system_.log().Log(level, {.at = system_.toolbox().WallNow(), .text = text});
  };
  log(LogLevel::kInfo, "SIGTERM: the actor system shuts down");
  static_cast<void>(Run(ShutdownReason::Signal()));
  // This thread waits itself: workers fire timers, and they may be stuck.
  if (AwaitEnd(options_.sigterm_deadline)) return;
  std::string phase = "none";
  {
    MutexLock lock(mutex_);
    if (begun_ > 0) phase = phases_[begun_ - 1].name;
  }
  const ShutdownReport report = system_.NotStopped();
  log(LogLevel::kError,
      ToStd(absl::StrCat(
          "SIGTERM: the actor system has not ended within ", absl::FormatDuration(options_.sigterm_deadline),
          " (CoordinatedShutdownOptions.sigterm_deadline), and the process ends. The last phase that began is \"",
          phase, "\"; ", report.not_stopped.size(), " actors have not stopped, among them ",
          report.not_stopped.empty() ? "nobody" : report.not_stopped.front(),
          ": look for handlers that block, tasks of the shutdown that are late, or allow more time")));
  TerminationSignal::EndProcess();
}

bool CoordinatedShutdown::AwaitEnd(absl::Duration timeout) {
  MutexLock lock(mutex_);
  const auto is_over = [this] {
    mutex_.AssertHeld();
    return is_leaving_ || (result_.has_value() && (is_terminated_ || !options_.terminate_actor_system));
  };
  // A time beyond the range of the clock is infinite.
  if (timeout > absl::Hours(24 * 365)) {
    changed_.wait(lock, is_over);
    return true;
  }
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_over);
}

std::optional<size_t> CoordinatedShutdown::Find(std::string_view phase) const {
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (phases_[i].name == phase) return i;
  }
  return std::nullopt;
}

std::vector<std::string> CoordinatedShutdown::phases() const {
  std::vector<std::string> names;
  names.reserve(phases_.size());
  for (const ShutdownPhase& phase : phases_) names.push_back(phase.name);
  return names;
}

std::optional<ShutdownReason> CoordinatedShutdown::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

absl::StatusOr<CoordinatedShutdown::TaskId> CoordinatedShutdown::AddTask(std::string_view phase, std::string_view name,
                                                                         TaskFunction task) {
  const std::optional<size_t> at = Find(phase);
  if (!at.has_value()) return NoSuchPhase(phase);
  if (name.empty() || task == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("a task of shutdown phase \"", ToAbsl(phase), "\" has no ",
                                                   name.empty() ? "name" : "function", "; pass one to AddTask"));
  }
  MutexLock lock(mutex_);
  if (result_.has_value() || *at < begun_) {
    return absl::FailedPreconditionError(
        absl::StrCat("task \"", ToAbsl(name), "\" comes too late: shutdown phase \"", ToAbsl(phase), "\" has begun"));
  }
  tasks_[*at].push_back({.id = next_id_, .name = std::string(name), .function = std::move(task)});
  return next_id_++;
}

bool CoordinatedShutdown::CancelTask(TaskId task) {
  ShutdownTask cancelled;
  MutexLock lock(mutex_);
  for (std::vector<ShutdownTask>& tasks : tasks_) {
    const auto found = std::find_if(tasks.begin(), tasks.end(), [&](const ShutdownTask& t) { return t.id == task; });
    if (found == tasks.end()) continue;
    cancelled = std::move(*found);
    tasks.erase(found);
    return true;
  }
  return false;
}

Future<void> CoordinatedShutdown::Run(ShutdownReason reason, std::string_view from_phase) {
  size_t first = 0;
  if (!from_phase.empty()) {
    const std::optional<size_t> found = Find(from_phase);
    if (!found.has_value()) return MakeReadyFuture<void>(NoSuchPhase(from_phase));
    first = *found;
  }
  bool is_first = false;
  bool has_tasks = options_.exit != nullptr || !options_.terminate_actor_system;
  Future<void> result;
  {
    MutexLock lock(mutex_);
    if (result_.has_value()) return MakeReadyFuture<void>(*result_);
    auto [promise, future] = MakePromise<void>();
    waiting_.push_back(std::move(promise));
    result = std::move(future);
    is_first = !reason_.has_value();
    if (is_first) {
      reason_ = std::move(reason);
      begun_ = first;
      for (const std::vector<ShutdownTask>& tasks : tasks_) has_tasks = has_tasks || !tasks.empty();
      // Without tasks, the only step left is the end of the system.
      if (!has_tasks) begun_ = phases_.size();
    }
  }
  if (!is_first) return result;
  if (has_tasks) {
    Begin(first);
  } else {
    const absl::Status told = system_.OnTermination([this] { Finish(absl::OkStatus()); });
    ActorTree::Stop(system_.user_guardian());
    if (!told.ok()) Finish(absl::OkStatus());
  }
  return result;
}

void CoordinatedShutdown::Begin(size_t first) {
  absl::StatusOr<std::unique_ptr<SerialExecutor>> executor =
      SerialExecutor::Make(system_.toolbox(), {.name = "shutdown"});
  if (!executor.ok()) {
    system_.log().Log(LogLevel::kError,
                      {.at = system_.toolbox().WallNow(),
                       .text = ToStd(absl::StrCat("the shutdown's tasks cannot run: ", executor.status().message()))});
    if (options_.terminate_actor_system) ActorTree::Stop(system_.user_guardian());
    Finish(executor.status());
    return;
  }
  executor_ = *std::move(executor);
  run_ = RunPhases(this, first).Start(*executor_);
}

std::vector<CoordinatedShutdown::ShutdownTask> CoordinatedShutdown::Enter(size_t phase) {
  std::vector<ShutdownTask> tasks;
  {
    MutexLock lock(mutex_);
    begun_ = phase + 1;
    tasks.swap(tasks_[phase]);
  }
  if (!phases_[phase].enabled) return {};
  if (options_.terminate_actor_system && phases_[phase].name == shutdown_phase::kActorSystemTerminate) {
    tasks.push_back({.id = 0, .name = "end the actor system", .function = [this] { return TerminateSystem(); }});
  }
  return tasks;
}

Future<void> CoordinatedShutdown::TerminateSystem() {
  Future<void> terminated = system_.WhenTerminated();
  ActorTree::Stop(system_.user_guardian());
  // The error that ended the system is no failure of the shutdown.
  return std::move(terminated).MapResult([](const absl::Status&) { return absl::OkStatus(); });
}

absl::Status CoordinatedShutdown::Judge(const ShutdownPhase& phase, const std::string& task,
                                        const TimedResult<void>& timed) const {
  const absl::Status& result = timed.result;
  if (result.ok()) return result;
  const std::string what =
      absl::StrCat("task \"", task, "\" of shutdown phase \"", phase.name, "\" ",
                   timed.is_late ? absl::StrCat("was not ready within ", absl::FormatDuration(phase.timeout))
                                 : absl::StrCat("failed: ", result.message()));
  system_.log().Log(phase.recover ? LogLevel::kWarning : LogLevel::kError,
                    {.at = system_.toolbox().WallNow(),
                     .text = ToStd(absl::StrCat(what, phase.recover ? "; the shutdown goes on" : "; it ends there"))});
  return phase.recover ? absl::OkStatus() : absl::Status(result.code(), what);
}

Task<void> CoordinatedShutdown::RunPhases(CoordinatedShutdown* shutdown, size_t first) {
  absl::Status failed;
  for (size_t at = first; at < shutdown->phases_.size() && failed.ok(); ++at) {
    const ShutdownPhase& phase = shutdown->phases_[at];
    const std::vector<ShutdownTask> tasks = shutdown->Enter(at);
    if (tasks.empty()) continue;
    std::vector<Future<TimedResult<void>>> begun;
    begun.reserve(tasks.size());
    for (const ShutdownTask& task : tasks) {
      begun.push_back(TimedResultOf(shutdown->system_.toolbox(), Begun(task.function), phase.timeout));
    }
    Future<std::vector<absl::StatusOr<TimedResult<void>>>> all = WhenAllResults(std::move(begun));
    absl::StatusOr<std::vector<absl::StatusOr<TimedResult<void>>>> results = co_await all;
    for (size_t i = 0; i < tasks.size(); ++i) {
      const absl::StatusOr<TimedResult<void>> timed =
          results.ok() ? std::move((*results)[i]) : absl::StatusOr<TimedResult<void>>(results.status());
      failed.Update(
          shutdown->Judge(phase, tasks[i].name, timed.ok() ? *timed : TimedResult<void>{.result = timed.status()}));
    }
  }
  shutdown->Finish(failed);
}

void CoordinatedShutdown::Finish(absl::Status result) {
  std::vector<Promise<void>> waiting;
  int exit_code = 0;
  {
    MutexLock lock(mutex_);
    if (result_.has_value()) return;
    result_ = result;
    changed_.notify_all();
    waiting.swap(waiting_);
    if (!reason_.has_value()) return;
    exit_code = reason_->exit_code;
  }
  for (Promise<void>& promise : waiting) promise.Set(result);
  const bool was_run = result.code() != absl::StatusCode::kCancelled;
  if (options_.exit == nullptr || !was_run) return;
  if (const absl::Status exited = future_internal::InvokeForResult(options_.exit, exit_code); !exited.ok()) {
    system_.log().Log(LogLevel::kError,
                      {.at = system_.toolbox().WallNow(),
                       .text = ToStd(absl::StrCat("CoordinatedShutdownOptions.exit threw: ", exited.message()))});
  }
}

}  // namespace fraktor::inline v0
