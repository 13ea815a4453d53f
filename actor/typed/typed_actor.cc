#include "fraktor/actor/typed/typed_actor.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace fraktor::inline v0::typed_internal {

absl::Status AskedByAnotherClass() {
  return absl::FailedPreconditionError(
      "AskOnReply with a function of another class than that of the actor: name the function by the class that was "
      "spawned");
}

void TypedInstanceBase::Replace(std::unique_ptr<TypedBehavior> behavior) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  behaviors_->Replace(std::move(behavior));
}

absl::Status TypedInstanceBase::Push(std::unique_ptr<TypedBehavior> behavior) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  return behaviors_->Push(std::move(behavior));
}

}  // namespace fraktor::inline v0::typed_internal
