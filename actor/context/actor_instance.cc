#include "fraktor/actor/context/actor_instance.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status ActorInstance::PreStart(ActorContext&) { return absl::OkStatus(); }

void ActorInstance::PostStop(ActorContext&) {}

absl::Status ActorInstance::PreRestart(ActorContext& context, const absl::Status&, Envelope*) {
  UsualPreRestart(context);
  return absl::OkStatus();
}

void ActorInstance::UsualPreRestart(ActorContext& context) {
  context.StopChildren();
  PostStop(context);
}

absl::Status ActorInstance::PostRestart(ActorContext& context, const absl::Status&) { return PreStart(context); }

const SupervisorStrategy& ActorInstance::supervision() const { return SupervisorStrategy::Default(); }

SupervisionDirective ActorInstance::OnChildFailure(ActorContext&, const Failure& failure) {
  return supervision().Decide(failure);
}

absl::Status ActorInstance::OnReply(ActorContext&, ActorRef, absl::StatusOr<Envelope*> answer) {
  if (!answer.ok()) return answer.status();
  return absl::UnimplementedError(absl::StrCat("the reply ", ToAbsl((*answer)->type()->name()),
                                               " of AskOnReply arrived, but the actor does not override OnReply"));
}

}  // namespace fraktor::inline v0
