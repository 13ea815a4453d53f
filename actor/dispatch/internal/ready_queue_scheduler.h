// ReadyQueueScheduler: owns the mailboxes, the dispatchers and the metrics of an actor system, and
// starts and stops them. ActorSystem makes it, then its ActorTree, and starts it with the tree.
//
// Its states:
// - Running: from Start on.
// - Stopping: messages of foreign threads are refused. Actors still send to each other.
// - Draining: Shutdown waits until no actor is ready and all workers sleep.
// - Stopped: no worker runs. ForceStop goes there at once.
//
// Thread safety: one thread that is no worker calls Start, Shutdown and ForceStop. Any thread calls
// the other methods.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_READY_QUEUE_SCHEDULER_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_READY_QUEUE_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/dispatch/dispatchers.h"
#include "fraktor/actor/dispatch/internal/mailbox_registry.h"
#include "fraktor/actor/dispatch/internal/message_invoker.h"
#include "fraktor/actor/dispatch/scheduler_options.h"
#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

enum class SchedulerState : uint8_t { kNew, kRunning, kStopping, kDraining, kStopped };

std::string_view ToString(SchedulerState state);

class ReadyQueueScheduler {
 public:
  // `toolbox` must outlive the scheduler. InvalidArgument for bad options.
  static absl::StatusOr<std::unique_ptr<ReadyQueueScheduler>> Make(const ReadyQueueSchedulerOptions& options,
                                                                   RuntimeToolbox& toolbox);
  // Calls ForceStop.
  ~ReadyQueueScheduler();

  // FailedPrecondition if the scheduler was started before. `lifecycle` must live until it is
  // stopped.
  absl::Status Start(ActorLifecycle& lifecycle);

  // Waits up to `timeout` until no actor is ready, and stops. DeadlineExceeded if actors were still
  // ready; the scheduler is stopped all the same. On a toolbox without threads it does not wait:
  // pump the toolbox before.
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
  GaugeRegistration late_dead_letters_;
  MailboxRegistry mailboxes_;
  Dispatchers dispatchers_;
  // The thread that starts and stops writes it. The release pairs with the acquire in state(): a
  // thread that sees kStopped sees the effects of all runs.
  std::atomic<SchedulerState> state_{SchedulerState::kNew};
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_READY_QUEUE_SCHEDULER_H_
