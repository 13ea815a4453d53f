// Sending to reply promises: references that carry ActorRef::kPromise. The first reply claims
// the promise and goes to the asker as a system message. A later reply is a dead letter.
//
// Only such references lead here, so other sends pay nothing for it.
#ifndef FRAKTOR_ACTOR_SEND_PROMISE_SENDING_H_
#define FRAKTOR_ACTOR_SEND_PROMISE_SENDING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// Any thread. Takes the envelope over.
void AnswerPromise(ActorRef promise, Envelope* answer);

// Any thread. Nobody waits for the answer any more: the promise ends at once, and not when its time
// is over, and an answer that comes later is a dead letter (late_reply). Does nothing if the
// promise is no one, or is answered already.
void WithdrawAsk(ActorRef promise) noexcept;

// Any thread. Who has got `message` will not answer it: if that is a question, it fails with what `why` says, which is
// an ErrorReply. Not if it has been answered, passed on, or asked of others too.
void FailAsk(const Envelope& message, absl::FunctionRef<absl::Status()> why);

// Makes a promise stale. Any thread. True if this thread is the first; then no reply reaches the
// asker any more.
bool ClaimPromise(ActorRef promise);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_PROMISE_SENDING_H_
