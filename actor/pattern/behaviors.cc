#include "fraktor/actor/pattern/behaviors.h"

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

absl::Status BehaviorActor::Receive(ActorContext& context, Envelope& message) {
  // Not at the end, so that a handler that throws leaves nothing behind either.
  replaced_.clear();
  return behaviors_.empty() ? ReceiveInitially(context, message) : (*behaviors_.back())(context, message);
}

absl::Status BehaviorActor::ReceiveInitially(ActorContext& context, Envelope& message) {
  return context.Unhandled(message);
}

void BehaviorActor::Become(Behavior behavior) {
  auto next = std::make_unique<Behavior>(std::move(behavior));
  Unbecome();
  behaviors_.push_back(std::move(next));
}

absl::Status BehaviorActor::BecomeStacked(Behavior behavior) {
  if (behaviors_.size() >= kMaxStacked) {
    return absl::ResourceExhaustedError(
        absl::StrCat(behaviors_.size(), " behaviours are stacked; use Become, or go back by Unbecome"));
  }
  behaviors_.push_back(std::make_unique<Behavior>(std::move(behavior)));
  return absl::OkStatus();
}

bool BehaviorActor::Unbecome() {
  if (behaviors_.empty()) return false;
  replaced_.push_back(std::move(behaviors_.back()));
  behaviors_.pop_back();
  return true;
}

}  // namespace fraktor::inline v0
