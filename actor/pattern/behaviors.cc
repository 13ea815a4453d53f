#include "fraktor/actor/pattern/behaviors.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/context/internal/behavior_stack.h"

namespace fraktor::inline v0 {

using actor_internal::BehaviorStack;
using actor_internal::HandlerOwner;
using actor_internal::OwnerScope;

namespace {

static_assert(BehaviorActor::kMaxStacked == BehaviorStack::kMaxStacked);

struct OwnedBehavior final : HandlerOwner {
  explicit OwnedBehavior(Behavior its_function) : function(std::move(its_function)) {}
  const Behavior function;
};

}  // namespace

BehaviorActor::BehaviorActor() = default;
BehaviorActor::~BehaviorActor() = default;

BehaviorStack& BehaviorActor::behaviors() {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  return *behaviors_;
}

absl::Status BehaviorActor::Receive(ActorContext& context, Envelope& message) {
  HandlerOwner* const owner = behaviors_ == nullptr ? nullptr : behaviors_->top();
  if (owner == nullptr) return ReceiveInitially(context, message);
  auto* const top = static_cast<OwnedBehavior*>(owner);
  const OwnerScope scope(*top);
  return top->function(context, message);
}

absl::Status BehaviorActor::ReceiveInitially(ActorContext& context, Envelope& message) {
  return context.Unhandled(message);
}

void BehaviorActor::Become(Behavior behavior) {
  behaviors().Replace(std::make_unique<OwnedBehavior>(std::move(behavior)));
}

absl::Status BehaviorActor::BecomeStacked(Behavior behavior) {
  return behaviors().Push(std::make_unique<OwnedBehavior>(std::move(behavior)));
}

bool BehaviorActor::Unbecome() { return behaviors_ != nullptr && behaviors_->Pop(); }

}  // namespace fraktor::inline v0
