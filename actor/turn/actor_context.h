// What an actor sees of the runtime while it handles a message.
//
//   absl::Status Receive(ActorContext& context, Envelope& message) override {
//     context.Tell(context.sender(), Pong{});
//     return absl::OkStatus();
//   }
//
// A context stays with its actor: it is the actor's slot in disguise, and finds the worker by the thread. So a
// reference to it is good for as long as the actor lives, but to be used in the actor's own turns only.
#ifndef FRAKTOR_ACTOR_TURN_ACTOR_CONTEXT_H_
#define FRAKTOR_ACTOR_TURN_ACTOR_CONTEXT_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/turn/actor_slot.h"
#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

class ActorContext {
 public:
  ActorContext(const ActorContext&) = delete;
  ActorContext& operator=(const ActorContext&) = delete;

  static ActorContext& Of(ActorSlot& slot) { return reinterpret_cast<ActorContext&>(slot); }
  ActorSlot& slot() { return reinterpret_cast<ActorSlot&>(*this); }

  ActorRef self() const { return worker().turn.self(); }
  // Who sent the message that is being handled; no one if it came from outside, or there is none.
  ActorRef sender() const {
    const Envelope* const current = worker().turn.current;
    return current == nullptr ? ActorRef() : current->sender();
  }

  template <class M>
  void Tell(ActorRef to, M&& message) {
    worker().Tell(to, std::forward<M>(message));
  }

  // The same; ResourceExhausted if the target's mailbox is full and its options say that the sender is told.
  template <class M>
  absl::Status TryTell(ActorRef to, M&& message) {
    return worker().TryTell(to, std::forward<M>(message));
  }

  // Sends a message whose sender is a promise. The first message that is sent to it comes to ActorInstance::OnReply,
  // under the name that is returned here; or a failure, if none has come in time. Other messages are handled meanwhile.
  // ResourceExhausted if the process has no slot or no timer left.
  template <class M>
  absl::StatusOr<ActorRef> Ask(ActorRef to, M&& message, absl::Duration timeout) {
    ActorWorker& asking = worker();
    // First, since it may throw.
    EnvelopePtr question(asking.Make(ActorRef(), std::forward<M>(message)));
    FRAKTOR_ASSIGN_OR_RETURN(const ActorRef ask, OpenPromise(asking, timeout));
    question->set_sender(ask);
    asking.Send(to, question.release());
    return ask;
  }

  // Puts the message that is being handled aside: the caller has it, and gives it back by Unstash, or ends it. Only
  // within Receive, which must not touch the message afterwards; elsewhere there is none, and the answer is null.
  EnvelopePtr Stash();

  // Puts messages back before all others, in this order; they do not count against a limit.
  void Unstash(EnvelopeList messages);

  // Lets go of what was sent: some messages to one actor are kept together for a moment. Before a handler waits, in
  // whatever way, for what others do with its messages.
  void Flush() { worker().outbox.Flush(); }

  // Handles no further message after this one, and ends.
  void Stop() { worker().turn.Set(Gate::kStopping); }

  static ActorWorker& worker() { return *ActorWorker::Current(); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_ACTOR_CONTEXT_H_
