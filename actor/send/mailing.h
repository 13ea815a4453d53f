// Tell and TryTell: send a message from any thread: a handler, a timer, or a thread of the program.
//
//   Tell(ref, Greet{"world"});                         // in a handler, the sender is its actor
//   absl::Status sent = TryTell(ref, Greet{"world"});  // an error if the mailbox is full, or the actor has ended
//
// Tell does not fail: a message that cannot be delivered is a dead letter of the sender's system or
// of the target's system. A thread that is no worker and sends to no one has neither; the oldest
// system of the process gets that dead letter. A thread that is no worker and sends to a full
// mailbox of OverflowStrategy::kBlockProducer blocks until there is room, up to the push timeout.
#ifndef FRAKTOR_ACTOR_SEND_MAILING_H_
#define FRAKTOR_ACTOR_SEND_MAILING_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/internal/actor_worker.h"

namespace fraktor::inline v0 {

// Flags in the target word of a message, beside those of its reference. kCountedMark
// (limited_sending.h) is another one.
//
// The runtime of the target intercepts the message before the actor receives it
// (ActorLifecycle::OnInterceptedMessage), as for PoisonPill.
inline constexpr uint64_t kIntercepted = uint64_t{1} << 35;
// The recipient has forwarded the message: another actor replies to it.
inline constexpr uint64_t kForwarded = uint64_t{1} << 36;

// Sends a user message that was made on this thread, which is no worker. Takes the envelope over.
// `flags` are kIntercepted or 0. The errors are those of TryTell below.
absl::Status SendForeign(ActorRef to, EnvelopePtr envelope, uint64_t flags = 0);

// Any thread. Sends a user message with the flag kIntercepted. Takes the envelope over.
void SendIntercepted(ActorRef to, EnvelopePtr envelope);

// Any thread. Sends a system message: the actor handles it before user messages, also while it is
// suspended, and no mailbox limit applies. Returns null, or the envelope if the target has ended:
// system messages are no dead letters.
EnvelopePtr TellSystem(ActorRef to, EnvelopePtr envelope);

// The same for an actor of this process. False if the target has ended; the caller still has the
// envelope then.
bool PostSystem(ActorRef to, Envelope* envelope);

// Any thread. Resumes an actor that a middleware has suspended until ExternalSignal(key). Does
// nothing to other actors.
void Signal(ActorRef to, SignalKey key);

// Any thread. Sends a user message.
template <class M>
void Tell(ActorRef to, M&& message) {
  if (actor_internal::ActorWorker* const worker = actor_internal::ActorWorker::Current()) {
    worker->Tell(to, std::forward<M>(message));
  } else {
    SendForeign(to, MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                kIsInterceptedMessage<std::decay_t<M>> ? kIntercepted : 0)
        .IgnoreError();
  }
}

// The same, with an error if the message is known to be lost. It is a dead letter then as well.
// ResourceExhausted if the target's mailbox is full and its overflow policy rejects the message.
// NotFound if the target is no one or has ended, or if a router has no routee for the message. On a
// thread that is no worker, Unavailable if the system of the target shuts down or has ended. For a
// router, the error of code of the program that routes (routing_logic.h). OK promises nothing: the
// target may end before it handles the message.
template <class M>
absl::Status TryTell(ActorRef to, M&& message) {
  if (actor_internal::ActorWorker* const worker = actor_internal::ActorWorker::Current())
    return worker->TryTell(to, std::forward<M>(message));
  return SendForeign(to, MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_MAILING_H_
