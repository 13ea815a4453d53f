// The scheduler of an actor system in one piece.
//
//   FRAKTOR_ASSIGN_OR_RETURN(auto scheduler, ReadyQueueScheduler::Make({}, toolbox));
//   ActorTree tree({.mailboxes = scheduler->mailboxes(), .dispatchers = scheduler->dispatchers()});
//   FRAKTOR_RETURN_IF_ERROR(scheduler->Start(tree));
//   ...
//   absl::Status stopped = scheduler->Shutdown(absl::Seconds(10));
//
// It does nothing by itself: mailboxes are MailboxRegistry's, workers and their ready queues WorkerExecutor's and
// ReadyQueueCoordinator's, messages MessageInvoker's, figures ObservabilityHub's.
//
// Its life:
//   Running    from Start on.
//   Stopping   messages from foreign threads are refused; what is on its way inside is not.
//   Draining   waits until nothing is ready and all workers sleep.
//   Stopped    no worker runs. ForceStop goes there at once.
//
// Thread safety: Start, Shutdown and ForceStop from one thread that is no worker; the rest from any.
#ifndef FRAKTOR_ACTOR_DISPATCH_READY_QUEUE_SCHEDULER_H_
#define FRAKTOR_ACTOR_DISPATCH_READY_QUEUE_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/mailbox_registry.h"
#include "fraktor/actor/dispatch/message_invoker.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

enum class SchedulerState : uint8_t { kNew, kRunning, kStopping, kDraining, kStopped };

std::string_view ToString(SchedulerState state);

struct ReadyQueueSchedulerOptions {
  DispatchersOptions dispatchers = {};
  ObservabilityOptions observability = {};

  absl::Status Validate() const;
};

class ReadyQueueScheduler {
 public:
  // `toolbox` must outlive it. InvalidArgument for bad options.
  static absl::StatusOr<std::unique_ptr<ReadyQueueScheduler>> Make(const ReadyQueueSchedulerOptions& options,
                                                                   RuntimeToolbox& toolbox);
  // Stops by force.
  ~ReadyQueueScheduler();

  // FailedPrecondition if it was started before. `lifecycle` must live until it is stopped.
  absl::Status Start(ActorLifecycle& lifecycle);

  // Goes from Running to Stopped, and waits up to `timeout` for the work that is there. DeadlineExceeded if some was
  // left: then it is stopped all the same. On a toolbox without threads nothing is waited for: pump it before.
  absl::Status Shutdown(absl::Duration timeout);
  void ForceStop();

  SchedulerState state() const { return state_.load(std::memory_order_acquire); }

  MailboxRegistry& mailboxes() { return mailboxes_; }
  Dispatchers& dispatchers() { return dispatchers_; }
  ObservabilityHub& hub() { return *hub_; }

 private:
  ReadyQueueScheduler(const ReadyQueueSchedulerOptions& options, RuntimeToolbox& toolbox,
                      std::unique_ptr<ObservabilityHub> hub);

  RuntimeToolbox& toolbox_;
  const std::unique_ptr<ObservabilityHub> hub_;
  MailboxRegistry mailboxes_;
  Dispatchers dispatchers_;
  // Changed by the thread that starts and stops; release and acquire, so that who sees Stopped sees that nothing runs.
  std::atomic<SchedulerState> state_{SchedulerState::kNew};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_READY_QUEUE_SCHEDULER_H_
