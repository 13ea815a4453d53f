// AskCompletion: the object that receives the reply to an ask, or the error, once.
//
// AskSource (ask_source.h), the state of the future of an ask, is the usual one. An ask without a
// completion calls ActorInstance::OnReply of the asker instead.
//
//   // Adds up the replies to asks.
//   class SumOfReplies final : public AskCompletion {
//    public:
//     SumOfReplies(const MessageType* asked, int* sum) : AskCompletion(asked, absl::Seconds(1)), sum_(*sum) {}
//     void TakeReply(Envelope& reply) noexcept override {
//       sum_ += reply.As<Got>().value;
//       delete this;
//     }
//     void Fail(absl::Status) noexcept override { delete this; }
//
//    private:
//     int& sum_;
//   };
//
//   // In the turn of the asker.
//   auto* const completion = new SumOfReplies(MessageTypeOf<Get>(), sum_);
//   absl::Status sent = SendAsk(ActorContext::worker(), shelf_, MakeEnvelope<Get>(ActorRef()), *completion);
//   if (!sent.ok()) completion->Abandon();
//
// Called by: the parts of actor/ask. Thread: the asker's turn, except for Abandon.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_ASK_COMPLETION_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_ASK_COMPLETION_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0::actor_internal {

class AskCompletion {
 public:
  // `asked` is the type of the message that was asked, for error texts.
  AskCompletion(const MessageType* asked, absl::Duration waits) : asked_type(asked), timeout(waits) {}

  // Exactly one of these three is called, once. The completion deletes itself then.

  // The reply, whose envelope ends after the call.
  virtual void TakeReply(Envelope& reply) noexcept = 0;
  // There is no reply; `error` says why.
  virtual void Fail(absl::Status error) noexcept = 0;
  // The asker has ended and has no more turns. Calls Fail, unless overridden. Any thread.
  virtual void Abandon() noexcept;

  const MessageType* const asked_type;
  const absl::Duration timeout;
  // The promise of the ask, from when the message is sent. The thread that asks writes it, and the
  // owner of the future reads it, to withdraw the ask.
  ActorRef promise;

 protected:
  ~AskCompletion() = default;
};

// How an actor gets the reply to an ask that has no completion, or the error:
// ActorInstance::OnReply.
struct OnReplyFunctions {
  void (*reply)(Turn turn, ActorRef ask, Envelope& reply);
  void (*error)(Turn turn, ActorRef ask, absl::Status error);
};

// Called once, before main: actor/dispatch/internal/message_invoker.cc installs them.
void InstallOnReply(OnReplyFunctions functions);

// The functions that InstallOnReply has installed.
const OnReplyFunctions& OnReply();

// In the asker's turn. Gives the reply to the completion of `ask`, or to OnReply if it is null. The
// promise of the ask has been removed from the open asks before.
inline void CompleteAsk(const Turn& turn, ActorRef ask, AskCompletion* completion, Envelope& reply) {
  if (completion == nullptr) {
    OnReply().reply(turn, ask, reply);
    return;
  }
  const bool outer = std::exchange(turn.state().takes_answer, true);
  completion->TakeReply(reply);
  turn.state().takes_answer = outer;
}

// The same with the error in place of a reply.
inline void CompleteAskWithError(Turn turn, ActorRef ask, AskCompletion* completion, absl::Status error) {
  if (completion == nullptr) {
    OnReply().error(turn, ask, std::move(error));
    return;
  }
  const bool outer = std::exchange(turn.state().takes_answer, true);
  completion->Fail(std::move(error));
  turn.state().takes_answer = outer;
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_ASK_COMPLETION_H_
