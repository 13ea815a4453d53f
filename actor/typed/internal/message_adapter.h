// The functions of TypedContext::Adapt, for each type of message that an actor adapts.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_MESSAGE_ADAPTER_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_MESSAGE_ADAPTER_H_

#include <type_traits>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

namespace typed_internal {

// Converts a message that the actor does not handle into one that it handles.
class MessageAdapter {
 public:
  explicit MessageAdapter(const MessageType* type) : from(type) {}
  virtual ~MessageAdapter() = default;
  // `message` has the type `from`, and ends after the call. Throws if the function of the program
  // throws.
  virtual EnvelopePtr Adapt(ActorRef sender, Envelope& message) = 0;

  const MessageType* const from;
};

template <class F, class Function>
class FunctionAdapter final : public MessageAdapter {
 public:
  explicit FunctionAdapter(Function function) : MessageAdapter(MessageTypeOf<F>()), function_(std::move(function)) {}

  EnvelopePtr Adapt(ActorRef sender, Envelope& message) override {
    using M = std::decay_t<std::invoke_result_t<Function&, F&&>>;
    return MakeEnvelope<M>(sender, function_(std::move(message.As<F>())));
  }

 private:
  Function function_;
};

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_MESSAGE_ADAPTER_H_
