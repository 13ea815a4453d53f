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

TypedInstanceBase::~TypedInstanceBase() {
  while (Pop()) {
  }
  Sweep();
}

void TypedInstanceBase::Push(bool replace, void* behavior, const BehaviorTable* table) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<Behaviors>();
  if (replace) Pop();
  behaviors_->stack.push_back({behavior, table});
}

bool TypedInstanceBase::Pop() {
  if (behaviors_ == nullptr || behaviors_->stack.empty()) return false;
  // It may be the one that runs.
  behaviors_->replaced.push_back(behaviors_->stack.back());
  behaviors_->stack.pop_back();
  return true;
}

void TypedInstanceBase::Sweep() {
  if (behaviors_ == nullptr) return;
  for (const Behavior& behavior : std::exchange(behaviors_->replaced, {})) behavior.table->destroy(behavior.object);
}

}  // namespace fraktor::inline v0::typed_internal
