#include "fraktor/persistence/actor/recovery_permitter.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/actor_log.h"

namespace fraktor::inline v0 {

absl::Status RecoveryPermitter::Receive(ActorContext& context, Envelope& message) {
  if (const auto* const request = message.TryAs<RequestRecoveryPermit>()) {
    const Waiting waiting{request->client, request->instance_id};
    if (holders_.size() < max_permits_) {
      Grant(context, waiting);
    } else {
      places_.emplace(waiting.instance_id, next_place_);
      queue_.emplace(next_place_++, waiting);
    }
  } else if (const auto* const returned = message.TryAs<ReturnRecoveryPermit>()) {
    Return(context, returned->instance_id);
  } else {
    return context.Unhandled(message);
  }
  return absl::OkStatus();
}

void RecoveryPermitter::Grant(ActorContext& context, const Waiting& waiting) {
  holders_.insert(waiting.instance_id);
  context.Tell(waiting.client, RecoveryPermitGranted{waiting.instance_id});
}

void RecoveryPermitter::Return(ActorContext& context, uint64_t instance_id) {
  if (holders_.erase(instance_id) > 0) {
    if (queue_.empty()) return;
    const Waiting next = queue_.extract(queue_.begin()).mapped();
    places_.erase(next.instance_id);
    Grant(context, next);
    return;
  }
  const auto place = places_.find(instance_id);
  if (place == places_.end()) {
    // Not a failure of this actor: others depend on it.
    fraktor::Log(context, LogLevel::kError,
                 absl::StrCat("instance ", instance_id, " has returned a recovery permit that it did not have; ",
                              holders_.size(), " are granted"));
    return;
  }
  queue_.erase(place->second);
  places_.erase(place);
}

}  // namespace fraktor::inline v0
