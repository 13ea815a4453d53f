// BehaviorActor: an untyped actor that changes how it handles messages, by Become and Unbecome.
//
//   class Door final : public BehaviorActor {
//    public:
//     Door() { Become(&Door::Closed); }
//
//    private:
//     absl::Status Closed(ActorContext& context, Envelope& message) {
//       if (!message.Is<Open>()) return context.Unhandled(message);
//       Become(&Door::Opened);                         // from the next message on
//       return absl::OkStatus();
//     }
//     absl::Status Opened(ActorContext& context, Envelope& message) { return context.Unhandled(message); }
//   };
//
// Behaviours form a stack above ReceiveInitially. Become replaces the one on top, BecomeStacked
// puts one above it, and Unbecome removes it. A replaced behaviour lives until the last handler and
// the last task that it began have ended. A restart begins with the behaviour that the constructor
// sets. Typed actors have the same in their context (typed_context.h). fsm.h has states with data,
// timeouts and listeners.
//
// Thread safety: the turns of the actor, and its constructor.
#ifndef FRAKTOR_ACTOR_PATTERN_BEHAVIORS_H_
#define FRAKTOR_ACTOR_PATTERN_BEHAVIORS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"

namespace fraktor::inline v0 {

namespace actor_internal {
class BehaviorStack;
}  // namespace actor_internal

// As ActorInstance::Receive.
using Behavior = std::function<absl::Status(ActorContext& context, Envelope& message)>;

class BehaviorActor : public ActorInstance {
 public:
  // The limit of the stack. A program that exceeds it has forgotten Unbecome.
  static constexpr size_t kMaxStacked = 1000;

  BehaviorActor();
  BehaviorActor(const BehaviorActor&) = delete;
  BehaviorActor& operator=(const BehaviorActor&) = delete;
  ~BehaviorActor() override;

  absl::Status Receive(ActorContext& context, Envelope& message) final;

 protected:
  // Handles messages while the stack is empty. The default handles none.
  virtual absl::Status ReceiveInitially(ActorContext& context, Envelope& message);

  // Takes effect with the next message. A handler that replaces itself runs to its end.
  void Become(Behavior behavior);
  // ResourceExhausted above kMaxStacked: then nothing changes.
  absl::Status BecomeStacked(Behavior behavior);
  // The same with a member function of this actor.
  template <class Self>
  void Become(absl::Status (Self::*method)(ActorContext&, Envelope&)) {
    Become(Bind(method));
  }
  template <class Self>
  absl::Status BecomeStacked(absl::Status (Self::*method)(ActorContext&, Envelope&)) {
    return BecomeStacked(Bind(method));
  }
  // False if the stack is empty.
  bool Unbecome();

 private:
  template <class Self>
  Behavior Bind(absl::Status (Self::*method)(ActorContext&, Envelope&)) {
    static_assert(std::is_base_of_v<BehaviorActor, Self>, "a behaviour is a method of the actor itself, or a function");
    return [this, method](ActorContext& context, Envelope& message) {
      return (static_cast<Self*>(this)->*method)(context, message);
    };
  }

  actor_internal::BehaviorStack& behaviors();

  // Null until the first Become.
  std::unique_ptr<actor_internal::BehaviorStack> behaviors_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_BEHAVIORS_H_
