// The behaviours of an actor that changes how it handles messages: Become, BecomeStacked, Unbecome.
//
//   struct Door final : HandlerOwner { ... };
//   behaviors.Replace(std::make_unique<Door>());
//   const OwnerScope scope(*behaviors.top());        // in Receive: the behaviour runs
//
// A behaviour that was replaced lives until its code can no longer run: until the call that runs it has returned, and
// the last handler and the last task that it began have ended. They end by themselves, or with the actor or its restart.
// So a coroutine of a behaviour may replace that behaviour, and use its members afterwards.
//
// Thread safety: part of an actor; used in the actor's turns and its constructor only.
#ifndef FRAKTOR_ACTOR_CONTEXT_BEHAVIOR_STACK_H_
#define FRAKTOR_ACTOR_CONTEXT_BEHAVIOR_STACK_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/await/awaiting_handler.h"

namespace fraktor::inline v0 {

class BehaviorStack {
 public:
  // The limit of behaviours on one stack. A program that exceeds it has forgotten Unbecome.
  static constexpr size_t kMaxStacked = 1000;

  BehaviorStack() = default;
  BehaviorStack(const BehaviorStack&) = delete;
  BehaviorStack& operator=(const BehaviorStack&) = delete;
  ~BehaviorStack();

  // The behaviour that handles messages, or null.
  HandlerOwner* top() const { return stack_.empty() ? nullptr : stack_.back().get(); }

  // Takes the place of the behaviour on top.
  void Replace(std::unique_ptr<HandlerOwner> behavior);
  // Goes above the behaviour on top. ResourceExhausted beyond kMaxStacked: then nothing changes.
  absl::Status Push(std::unique_ptr<HandlerOwner> behavior);
  // Removes the behaviour on top. False if there is none.
  bool Pop();

 private:
  struct User {
    void operator()(HandlerOwner* owner) const { owner->RemoveUser(); }
  };
  std::vector<std::unique_ptr<HandlerOwner, User>> stack_;
};

// While it lives, handlers and tasks that this turn begins belong to `owner`, which lives at least as long.
class OwnerScope {
 public:
  explicit OwnerScope(HandlerOwner& owner);
  ~OwnerScope();
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;

 private:
  HandlerOwner& owner_;
  HandlerOwner* const outer_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_BEHAVIOR_STACK_H_
