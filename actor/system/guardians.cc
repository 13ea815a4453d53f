#include "fraktor/actor/system/guardians.h"

#include <utility>
#include <vector>

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/system/system_state.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

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
  // Without /system nothing works any more.
  if (terminated->actor == state_->guardian(GuardianKind::kSystem)) {
    context.Stop(state_->guardian(GuardianKind::kUser));
  }
  return absl::OkStatus();
}

absl::Status SystemGuardian::Receive(ActorContext& context, Envelope& message) {
  if (message.Is<RegisterTerminationHook>()) {
    if (message.sender().IsNoOne()) return absl::OkStatus();
    if (hooks_.insert(message.sender()).second) return context.Watch(message.sender());
    return absl::OkStatus();
  }
  if (message.Is<EndSystemActors>()) {
    is_ending_ = true;
    for (const ActorRef hook : hooks_) context.Tell(hook, TerminationHook{});
    EndIfReady(context);
    return absl::OkStatus();
  }
  if (message.Is<TerminationHookDone>()) {
    context.Unwatch(message.sender());
    hooks_.erase(message.sender());
    EndIfReady(context);
    return absl::OkStatus();
  }
  if (const auto* terminated = message.TryAs<Terminated>()) {
    hooks_.erase(terminated->actor);
    EndIfReady(context);
    return absl::OkStatus();
  }
  return context.Unhandled(message);
}

void SystemGuardian::EndIfReady(ActorContext& context) {
  if (is_ending_ && hooks_.empty()) context.Stop();
}

absl::Status TempGuardian::Receive(ActorContext& context, Envelope& message) {
  auto* const foreign = message.TryAs<ForeignQuestion>();
  if (foreign == nullptr) return context.Unhandled(message);
  context.OpenQuestion(foreign->to, std::move(foreign->question), *foreign->completion.release());
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
