// Sending from anywhere: from a worker in the middle of a handler, from a foreign thread, from a timer.
//
//   Tell(ref, Greet{"world"});                   // the sender is the actor in whose turn this is called, or no one
//   absl::Status sent = TryTell(ref, Greet{"world"});
//   TellSystem(ref, MakeEnvelope<Suspend>(ActorRef()));
//
// Tell does not fail: what cannot be delivered is a dead letter, of the sender's system or the target's; if it has
// neither, because a foreign thread tells no one, of the oldest system of the process. A foreign thread that tells a
// full mailbox of OverflowStrategy::kBlockProducer waits for room, up to its push timeout.
#ifndef FRAKTOR_ACTOR_SEND_MAILING_H_
#define FRAKTOR_ACTOR_SEND_MAILING_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/actor/send/actor_worker.h"

namespace fraktor::inline v0 {

// In the target word of a message, beside the flags of its reference. kCountedMark in limited_sending.h is another.
inline constexpr uint64_t kMarked = uint64_t{1} << 35;     // The lifecycle looks at it before the actor does.
inline constexpr uint64_t kForwarded = uint64_t{1} << 36;  // Its receiver has passed it on.

// Sends a user message that was made on this thread, which is no worker. Takes the envelope over. ResourceExhausted if
// the target's mailbox is full and says so.
absl::Status SendForeign(ActorRef to, EnvelopePtr envelope, uint64_t mark = 0);

// Sends a user message from anywhere, with a mark. Takes the envelope over.
void SendMarked(ActorRef to, EnvelopePtr envelope);

// Sends a system message: it goes before user messages and reaches a suspended actor too. Never held back by a limit.
// Null, or the envelope again if there is nobody: system messages are no dead letters.
EnvelopePtr TellSystem(ActorRef to, EnvelopePtr envelope);

// The same for an actor of this process. False, and the envelope is still the caller's, if there is nobody.
bool PostSystem(ActorRef to, Envelope* envelope);

// An actor that a middleware has suspended until ExternalSignal(key) goes on. Others do not notice.
void Signal(ActorRef to, SignalKey key);

template <class M>
void Tell(ActorRef to, M&& message) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->Tell(to, std::forward<M>(message));
  } else {
    SendForeign(to, MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)),
                kIsInterceptedMessage<std::decay_t<M>> ? kMarked : 0)
        .IgnoreError();
  }
}

// The same; ResourceExhausted if the target's mailbox is full and its options say that the sender is told. To a foreign
// thread, Unavailable if the target's system takes no messages any more, or has ended.
template <class M>
absl::Status TryTell(ActorRef to, M&& message) {
  if (ActorWorker* const worker = ActorWorker::Current()) return worker->TryTell(to, std::forward<M>(message));
  return SendForeign(to, MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_MAILING_H_
