#include "fraktor/actor/typed/internal/typed_instance_base.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0::typed_internal {

using actor_internal::BehaviorStack;
using actor_internal::TurnState;

void TypedInstanceBase::Replace(std::unique_ptr<TypedBehavior> behavior) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  behaviors_->Replace(std::move(behavior));
}

absl::Status TypedInstanceBase::Push(std::unique_ptr<TypedBehavior> behavior) {
  if (behaviors_ == nullptr) behaviors_ = std::make_unique<BehaviorStack>();
  return behaviors_->Push(std::move(behavior));
}

void TypedInstanceBase::Add(std::unique_ptr<MessageAdapter> adapter) {
  if (adapters_ == nullptr) adapters_ = std::make_unique<std::vector<std::shared_ptr<MessageAdapter>>>();
  for (std::shared_ptr<MessageAdapter>& known : *adapters_) {
    if (known->from == adapter->from) {
      known = std::move(adapter);
      return;
    }
  }
  adapters_->push_back(std::move(adapter));
}

namespace {

// While this object lives, `adapted` is the current message of the turn, in place of the original
// message.
class CurrentMessage {
 public:
  CurrentMessage(TurnState& state, EnvelopePtr adapted)
      : turn_state_(state), outer_(std::exchange(state.current, adapted.release())) {}
  ~CurrentMessage() {
    // Null if a waiting handler keeps the message, or if the handler stashed or forwarded it.
    const EnvelopePtr adapted(std::exchange(turn_state_.current, outer_));
    const bool is_settled = adapted == nullptr || (adapted->target_word() & kForwarded) != 0;
    // Then a failure of this call is not the reply: the asker still waits for the reply of the
    // handler that has the message.
    if (is_settled && outer_ != nullptr) outer_->set_target_word(outer_->target_word() | kForwarded);
  }
  CurrentMessage(const CurrentMessage&) = delete;
  CurrentMessage& operator=(const CurrentMessage&) = delete;

 private:
  TurnState& turn_state_;
  Envelope* const outer_;
};

}  // namespace

absl::Status TypedInstanceBase::ReceiveOther(ActorContext& context, Envelope& message) {
  if (adapters_ == nullptr) return context.Unhandled(message);
  // A linear search is enough: an actor has few adapters, and only foreign messages come here.
  for (const std::shared_ptr<MessageAdapter>& known : *adapters_) {
    if (known->from != message.type()) continue;
    // The function may call Adapt, which replaces `known`.
    const std::shared_ptr<MessageAdapter> adapter = known;
    EnvelopePtr adapted = adapter->Adapt(message.sender(), message);
    adapted->set_target_word(message.target_word());
    Envelope& received = *adapted;
    const CurrentMessage current(ActorContext::worker().turn_state, std::move(adapted));
    return Receive(context, received);
  }
  return context.Unhandled(message);
}

}  // namespace fraktor::inline v0::typed_internal
