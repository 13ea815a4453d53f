// Sending from anywhere: from a worker in the middle of a handler, from a foreign thread, from a timer.
//
//   Tell(ref, Greet{"world"});                   // the sender is the actor in whose turn this is called, or no one
//   TellSystem(ref, MakeEnvelope<Suspend>(ActorRef()));
//
// Nothing here fails: what cannot be delivered is a dead letter.
#ifndef FRAKTOR_ACTOR_SCHEDULER_MAILING_H_
#define FRAKTOR_ACTOR_SCHEDULER_MAILING_H_

#include <type_traits>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/actor_worker.h"

namespace fraktor::inline v0 {

// Sends a user message that was made on this thread. Takes the envelope over.
void SendForeign(ActorRef to, EnvelopePtr envelope);

// Sends a system message: it goes before user messages and reaches a suspended actor too. Never held back by a limit.
void TellSystem(ActorRef to, EnvelopePtr envelope);

template <class M>
void Tell(ActorRef to, M&& message) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->Send(
        to, MakeEnvelope<std::decay_t<M>>(worker->cache(), worker->turn.self(), std::forward<M>(message)).release());
  } else {
    SendForeign(to, MakeEnvelope<std::decay_t<M>>(ActorRef(), std::forward<M>(message)));
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_MAILING_H_
