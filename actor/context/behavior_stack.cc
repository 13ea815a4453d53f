#include "fraktor/actor/context/behavior_stack.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/actor_worker.h"

namespace fraktor::inline v0 {

BehaviorStack::~BehaviorStack() {
  while (Pop()) {
  }
}

void BehaviorStack::Replace(std::unique_ptr<HandlerOwner> behavior) {
  // The new one is on the stack before the old one ends, whose destructor is the program's.
  stack_.emplace_back(behavior.release());
  if (stack_.size() > 1) {
    std::swap(stack_.back(), stack_[stack_.size() - 2]);
    Pop();
  }
}

absl::Status BehaviorStack::Push(std::unique_ptr<HandlerOwner> behavior) {
  if (stack_.size() >= kMaxStacked) {
    return absl::ResourceExhaustedError(
        absl::StrCat(stack_.size(), " behaviours are stacked; use Become, or go back by Unbecome"));
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
    : owner_(owner), outer_(std::exchange(ActorWorker::Current()->turn.owner, &owner)) {
  owner_.AddUser();
}

OwnerScope::~OwnerScope() {
  ActorWorker::Current()->turn.owner = outer_;
  owner_.RemoveUser();
}

}  // namespace fraktor::inline v0
