// The part of a typed actor's instance that does not depend on its class: the behaviours of
// TypedContext::Become, and the adapters of TypedContext::Adapt.
//
// Thread safety: the turns of the actor.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_BASE_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_BASE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/context/internal/behavior_stack.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/typed/internal/message_adapter.h"

namespace fraktor::inline v0 {

namespace typed_internal {

// An object that handles messages in place of the actor: see TypedContext::Become.
class TypedBehavior : public actor_internal::HandlerOwner {
 public:
  // False if it has no handler for the message.
  virtual bool Receive(ActorContext& context, Envelope& message, absl::Status& status) = 0;
};

class TypedInstanceBase : public ActorInstance {
 public:
  TypedInstanceBase() = default;
  TypedInstanceBase(const TypedInstanceBase&) = delete;
  TypedInstanceBase& operator=(const TypedInstanceBase&) = delete;
  ~TypedInstanceBase() override = default;

  void Replace(std::unique_ptr<TypedBehavior> behavior);
  absl::Status Push(std::unique_ptr<TypedBehavior> behavior);
  bool Pop() { return behaviors_ != nullptr && behaviors_->Pop(); }
  void Add(std::unique_ptr<MessageAdapter> adapter);

 protected:
  // Adapts a message that the actor does not handle, and handles the result. Without an adapter the
  // message is unhandled.
  [[gnu::noinline, gnu::cold]] absl::Status ReceiveOther(ActorContext& context, Envelope& message);
  // Call it before the actor object is destroyed: behaviours refer to it.
  void EndBehaviors() { behaviors_.reset(); }
  // The behaviour that handles messages in place of the actor, or null.
  TypedBehavior* behavior() const {
    return behaviors_ == nullptr ? nullptr : static_cast<TypedBehavior*>(behaviors_->top());
  }

 private:
  // Null until the first Become, because few actors have behaviours.
  std::unique_ptr<actor_internal::BehaviorStack> behaviors_;
  // Null until the first Adapt.
  std::unique_ptr<std::vector<std::shared_ptr<MessageAdapter>>> adapters_;
};

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_TYPED_INSTANCE_BASE_H_
