// BehaviorStack: the behaviours of an actor that changes how it handles messages (Become,
// BecomeStacked, Unbecome).
//
// A replaced behaviour lives until its code can no longer run: until the call that runs it has
// returned, and the last handler or task that it began has ended. So a coroutine of a behaviour may
// replace that behaviour, and use its members afterwards.
//
// Called by: typed actors (actor/typed). Thread: the actor's turns, and its constructor.
#ifndef FRAKTOR_ACTOR_CONTEXT_INTERNAL_BEHAVIOR_STACK_H_
#define FRAKTOR_ACTOR_CONTEXT_INTERNAL_BEHAVIOR_STACK_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"

namespace fraktor::inline v0::actor_internal {

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

  // Replaces the behaviour on top.
  void Replace(std::unique_ptr<HandlerOwner> behavior);
  // Puts a behaviour on top. ResourceExhausted if there are kMaxStacked already; nothing changes
  // then.
  absl::Status Push(std::unique_ptr<HandlerOwner> behavior);
  // Removes the behaviour on top. False if there is none.
  bool Pop();

 private:
  struct User {
    void operator()(HandlerOwner* owner) const { owner->RemoveUser(); }
  };
  std::vector<std::unique_ptr<HandlerOwner, User>> stack_;
};

// While it lives, handlers and tasks that this turn begins are users of `owner`, and so is the
// scope itself.
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

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CONTEXT_INTERNAL_BEHAVIOR_STACK_H_
