#include "fraktor/actor/pattern/behaviors.h"

#include <memory>

namespace fraktor::inline v0 {

using actor_internal::HandlerOwner;
using actor_internal::OwnerScope;

namespace {

struct OwnedBehavior final : HandlerOwner {
  explicit OwnedBehavior(Behavior its_function) : function(std::move(its_function)) {}
  const Behavior function;
};

}  // namespace

absl::Status BehaviorActor::Receive(ActorContext& context, Envelope& message) {
  auto* const top = static_cast<OwnedBehavior*>(behaviors_.top());
  if (top == nullptr) return ReceiveInitially(context, message);
  const OwnerScope scope(*top);
  return top->function(context, message);
}

absl::Status BehaviorActor::ReceiveInitially(ActorContext& context, Envelope& message) {
  return context.Unhandled(message);
}

void BehaviorActor::Become(Behavior behavior) {
  behaviors_.Replace(std::make_unique<OwnedBehavior>(std::move(behavior)));
}

absl::Status BehaviorActor::BecomeStacked(Behavior behavior) {
  return behaviors_.Push(std::make_unique<OwnedBehavior>(std::move(behavior)));
}

bool BehaviorActor::Unbecome() { return behaviors_.Pop(); }

}  // namespace fraktor::inline v0
