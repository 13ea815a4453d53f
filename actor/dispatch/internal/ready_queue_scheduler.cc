#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

std::string_view ToString(SchedulerState state) {
  switch (state) {
    case SchedulerState::kNew:
      return "new";
    case SchedulerState::kRunning:
      return "running";
    case SchedulerState::kStopping:
      return "stopping";
    case SchedulerState::kDraining:
      return "draining";
    case SchedulerState::kStopped:
      return "stopped";
  }
  return "unknown";
}

ReadyQueueScheduler::ReadyQueueScheduler(const ReadyQueueSchedulerOptions& options, RuntimeToolbox& toolbox,
                                         std::unique_ptr<ObservabilityHub> hub)
    : toolbox_(toolbox), hub_(std::move(hub)), mailboxes_(toolbox.has_threads()), dispatchers_(options.dispatchers) {
  mailboxes_.core().SetMetrics(hub_->foreign());
  mailboxes_.core().SetToolbox(&toolbox_);
}

absl::StatusOr<std::unique_ptr<ReadyQueueScheduler>> ReadyQueueScheduler::Make(
    const ReadyQueueSchedulerOptions& options, RuntimeToolbox& toolbox) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<ObservabilityHub> hub, ObservabilityHub::Make(options.observability));
  return std::unique_ptr<ReadyQueueScheduler>(new ReadyQueueScheduler(options, toolbox, std::move(hub)));
}

ReadyQueueScheduler::~ReadyQueueScheduler() { ForceStop(); }

absl::Status ReadyQueueScheduler::Start(ActorLifecycle& lifecycle) {
  if (state() != SchedulerState::kNew) {
    return absl::FailedPreconditionError(
        absl::StrCat("a scheduler is started once; this one is ", ToAbsl(ToString(state()))));
  }
  FRAKTOR_ASSIGN_OR_RETURN(
      late_dead_letters_,
      hub_->AddMetric({.name = std::string(kLateDeadLettersTotal),
                       .read = [] { return static_cast<double>(DispatcherTable::LateDeadLetters()); },
                       .kind = MetricKind::kCounter}));
  FRAKTOR_RETURN_IF_ERROR(dispatchers_.Start({toolbox_, lifecycle, mailboxes_, hub_.get()}));
  state_.store(SchedulerState::kRunning, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status ReadyQueueScheduler::Shutdown(absl::Duration timeout) {
  if (state() != SchedulerState::kRunning) {
    ForceStop();
    return absl::OkStatus();
  }
  state_.store(SchedulerState::kStopping, std::memory_order_release);
  mailboxes_.RefuseForeign();
  state_.store(SchedulerState::kDraining, std::memory_order_release);
  const bool quiet = dispatchers_.AwaitQuiet(timeout);
  ForceStop();
  if (quiet) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the scheduler was stopped with work left after ", absl::FormatDuration(timeout)));
}

void ReadyQueueScheduler::ForceStop() {
  mailboxes_.RefuseForeign();
  dispatchers_.Stop();
  state_.store(SchedulerState::kStopped, std::memory_order_release);
}

}  // namespace fraktor::inline v0::actor_internal
