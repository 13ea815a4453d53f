#include "fraktor/actor/cell/actor_subscriber.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/cell/tree_signals.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {
namespace {

bool Deliver(const EventSubscriber& self, const EventRef& event) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a subscriber's words are made of whatever it is
  const ActorRef actor(reinterpret_cast<TableSlot*>(static_cast<uintptr_t>(self.word0)), self.word1);
  if (!actor.IsCurrent()) return false;
  EnvelopePtr message = event.ToMessage();
  if (message == nullptr) return true;
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->Send(actor, message.release());
  } else {
    SendForeign(actor, std::move(message)).IgnoreError();
  }
  return true;
}

}  // namespace

EventSubscriber EventSubscriberOf(ActorRef actor) {
  return {.deliver = &Deliver, .word0 = reinterpret_cast<uintptr_t>(actor.any_slot()), .word1 = actor.word()};
}

absl::StatusOr<bool> SubscribeActor(EventStream& stream, ActorRef actor, const EventType& type) {
  if (actor.IsNoOne()) return absl::InvalidArgumentError("no one cannot be subscribed to events");
  const EventSubscriber subscriber = EventSubscriberOf(actor);
  absl::StatusOr<bool> subscribed = stream.Subscribe(subscriber, type);
  if (!subscribed.ok() || !*subscribed) return subscribed;
  // Its end is to be the end of the subscription. If that comes first, what is told here ends as a dead letter of the
  // system's own, and with it the subscription.
  if (TellSystem(actor, MakeEnvelope<SubscribedToEvents>(ActorRef())) == nullptr) return true;
  stream.UnsubscribeAll(subscriber);
  return false;
}

}  // namespace fraktor::inline v0
