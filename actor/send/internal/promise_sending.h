// Sending to reply promises: references with the flag ActorRef::kPromise. The first reply claims
// the promise and goes to the asker as a system message. A later reply is a dead letter.
//
// Only such references lead here, so other sends pay nothing.
//
// Called by: ActorWorker and SendForeign, the runtime where a message will get no reply, and
// actor/ask. Thread: any.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_PROMISE_SENDING_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_PROMISE_SENDING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

// Sends a reply. Takes the envelope over.
void AnswerPromise(ActorRef promise, Envelope* answer);

// The asker no longer wants the reply: the promise ends at once, and a later reply is a dead letter
// (late_reply). Does nothing if the promise is no one, or has a reply already.
void WithdrawAsk(ActorRef promise) noexcept;

// The recipient of `message` will not reply. If the message is an ask, the asker gets an ErrorReply
// with the error that `why` returns. Does nothing if the ask has a reply already, was forwarded, or
// went to several recipients.
void FailAsk(const Envelope& message, absl::FunctionRef<absl::Status()> why);

// Whether a system message that no actor has received was the reply to an ask: it is a dead letter
// (late_reply) then. An ask that was withdrawn has no reply.
bool IsLostReply(const Envelope& message);

// Makes a promise stale. True if this thread is the first to do so; then no other reply reaches the
// asker.
bool ClaimPromise(ActorRef promise);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_PROMISE_SENDING_H_
