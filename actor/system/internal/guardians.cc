#include "fraktor/actor/system/internal/guardians.h"

#include <utility>
#include <vector>

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/path/guardian_segments.h"
#include "fraktor/actor/system/internal/system_state.h"
#include "fraktor/actor/system/termination_hook.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0::actor_internal {

absl::Status RootGuardian::Receive(ActorContext& context, Envelope& message) {
  if (const auto* ready = message.TryAs<GuardiansReady>()) {
    state_ = ready->state;
    FRAKTOR_RETURN_IF_ERROR(context.Watch(state_->guardian(GuardianKind::kUser)));
    return context.Watch(state_->guardian(GuardianKind::kSystem));
  }
  const auto* const terminated = message.TryAs<Terminated>();
  if (terminated == nullptr || state_ == nullptr) return context.Unhandled(message);
  state_->MarkStopped(terminated->actor);
  if (terminated->actor == state_->guardian(GuardianKind::kUser)) {
    context.Tell(state_->guardian(GuardianKind::kSystem), EndSystemActors{});
  }
  if (!state_->IsAlive(GuardianKind::kUser) && !state_->IsAlive(GuardianKind::kSystem)) context.Stop();
  // The actors of /user need /system, so /user ends too.
  if (terminated->actor == state_->guardian(GuardianKind::kSystem)) {
    context.Stop(state_->guardian(GuardianKind::kUser));
  }
  return absl::OkStatus();
}

// A failure of /user or /system ends it, and the system. /temp goes on after a failure, which was
// that of one task.
SupervisionDirective RootGuardian::OnChildFailure(ActorContext& context, const Failure& failure) {
  // A task may fail before GuardiansReady: on_boot can run one.
  const bool is_temp = failure.child == context.Child(GuardianSegments::NameOf(Guardian::kTemp));
  if (is_temp) return Resume();
  on_guardian_failed_(failure.child, failure.error);
  return ActorInstance::OnChildFailure(context, failure);
}

absl::Status SystemGuardian::Receive(ActorContext& context, Envelope& message) {
  if (message.Is<RegisterTerminationHook>()) {
    if (message.sender().IsNoOne()) return absl::OkStatus();
    return hooks_.Insert(message.sender()) ? context.Watch(message.sender()) : absl::OkStatus();
  }
  if (message.Is<EndSystemActors>()) {
    is_ending_ = true;
    for (const ActorRef hook : hooks_) context.Tell(hook, TerminationHook{});
    EndIfReady(context);
    return absl::OkStatus();
  }
  if (message.Is<TerminationHookDone>()) {
    context.Unwatch(message.sender());
    hooks_.Erase(message.sender());
    EndIfReady(context);
    return absl::OkStatus();
  }
  if (const auto* terminated = message.TryAs<Terminated>()) {
    hooks_.Erase(terminated->actor);
    EndIfReady(context);
    return absl::OkStatus();
  }
  return context.Unhandled(message);
}

void SystemGuardian::EndIfReady(ActorContext& context) {
  if (is_ending_ && hooks_.empty()) context.Stop();
}

}  // namespace fraktor::inline v0::actor_internal
