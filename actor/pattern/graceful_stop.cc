#include "fraktor/actor/pattern/graceful_stop.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::MayLive;

namespace {

struct BeginStop {
  ActorRef actor;
  EnvelopePtr message;
  bool is_intercepted;
  absl::Duration timeout;
  Promise<void> promise;
};
struct TimeIsUp {};

}  // namespace

template <>
inline constexpr bool kIsSuppressedDeadLetter<TimeIsUp> = true;

namespace {

// Waits for the end of one actor.
class StopAwaiter final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (auto* const begin = message.TryAs<BeginStop>()) return Begin(context, *begin);
    if (message.Is<Terminated>()) {
      promise_.Set();
    } else if (message.Is<TimeIsUp>()) {
      promise_.Set(absl::DeadlineExceededError(
          absl::StrCat(context.PathOf(actor_), " has not ended within ", absl::FormatDuration(timeout_))));
    } else {
      return context.Unhandled(message);
    }
    context.Stop();
    return absl::OkStatus();
  }
  void PostStop(ActorContext& context) override { context.system().toolbox().CancelTimer(timer_); }

 private:
  absl::Status Begin(ActorContext& context, BeginStop& begin) {
    actor_ = begin.actor;
    timeout_ = begin.timeout;
    promise_ = std::move(begin.promise);
    FRAKTOR_RETURN_IF_ERROR(context.Watch(actor_));
    if (begin.is_intercepted) {
      ActorContext::worker().SendIntercepted(actor_, begin.message.release());
    } else {
      ActorContext::worker().Send(actor_, begin.message.release());
    }
    if (timeout_ == absl::InfiniteDuration()) return absl::OkStatus();
    absl::StatusOr<TimerId> timer =
        context.system().toolbox().ScheduleAfter(timeout_, [self = context.self()] { Tell(self, TimeIsUp{}); });
    if (timer.ok()) {
      timer_ = *timer;
    } else {
      promise_.Set(timer.status());
      context.Stop();
    }
    return absl::OkStatus();
  }

  ActorRef actor_;
  absl::Duration timeout_;
  Promise<void> promise_;
  TimerId timer_;
};

}  // namespace

Future<void> graceful_stop_internal::Begin(ActorSystem& system, ActorRef actor, absl::Duration timeout,
                                           EnvelopePtr message, bool is_intercepted) {
  if (actor.IsNoOne()) {
    return MakeReadyFuture<void>(absl::InvalidArgumentError(
        "GracefulStop got a reference to no one, such as a default ActorRef; pass an actor"));
  }
  if (!MayLive(actor)) return MakeReadyFuture();
  const absl::StatusOr<ActorRef> awaiter = system.TrySpawnSystemActor(PropsOf<StopAwaiter>());
  if (!awaiter.ok()) return MakeReadyFuture<void>(awaiter.status());
  auto [promise, future] = MakePromise<void>();
  Tell(*awaiter, BeginStop{.actor = actor,
                           .message = std::move(message),
                           .is_intercepted = is_intercepted,
                           .timeout = timeout,
                           .promise = std::move(promise)});
  return std::move(future);
}

}  // namespace fraktor::inline v0
