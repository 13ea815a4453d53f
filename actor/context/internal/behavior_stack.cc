#include "fraktor/actor/context/internal/behavior_stack.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/actor_worker.h"

namespace fraktor::inline v0::actor_internal {

BehaviorStack::~BehaviorStack() {
  while (Pop()) {
  }
}

void BehaviorStack::Replace(std::unique_ptr<HandlerOwner> behavior) {
  // The new behaviour is on the stack before the old one is destroyed: the destructor is code of
  // the program and may look at the stack.
  stack_.emplace_back(behavior.release());
  if (stack_.size() > 1) {
    std::swap(stack_.back(), stack_[stack_.size() - 2]);
    Pop();
  }
}

absl::Status BehaviorStack::Push(std::unique_ptr<HandlerOwner> behavior) {
  if (stack_.size() >= kMaxStacked) {
    return absl::ResourceExhaustedError(
        absl::StrCat(stack_.size(), " behaviours are stacked already; use Become, or remove some by Unbecome"));
  }
  stack_.emplace_back(behavior.release());
  return absl::OkStatus();
}

bool BehaviorStack::Pop() {
  if (stack_.empty()) return false;
  const auto ended = std::move(stack_.back());
  stack_.pop_back();
  return true;
}

OwnerScope::OwnerScope(HandlerOwner& owner)
    : owner_(owner), outer_(std::exchange(ActorWorker::Current()->turn_state.owner, &owner)) {
  owner_.AddUser();
}

OwnerScope::~OwnerScope() {
  ActorWorker::Current()->turn_state.owner = outer_;
  owner_.RemoveUser();
}

}  // namespace fraktor::inline v0::actor_internal
