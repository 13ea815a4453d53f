#include "fraktor/actor/pattern/pipe_to.h"

#include "fraktor/actor/send/internal/actor_worker.h"

namespace fraktor::inline v0::pipe_to_internal {

using actor_internal::ActorWorker;

void Send(ActorRef to, EnvelopePtr message) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->Send(to, message.release());
  } else {
    SendForeign(to, std::move(message)).IgnoreError();
  }
}

}  // namespace fraktor::inline v0::pipe_to_internal
