#include "fraktor/actor/cell/actor_subscriber.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;
using actor_internal::SubscribedToEvents;
using utils_internal::TableSlot;

namespace {

bool Deliver(const EventSubscriber& self, const EventRef& event) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a subscriber is two words, here a slot and a word
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
  if (actor.IsNoOne()) {
    return absl::InvalidArgumentError("Subscribe got a reference to no one, such as a default ActorRef; pass an actor");
  }
  const EventSubscriber subscriber = EventSubscriberOf(actor);
  absl::StatusOr<bool> subscribed = stream.Subscribe(subscriber, type);
  if (!subscribed.ok() || !*subscribed) return subscribed;
  // The actor ends the subscription when it ends. If it has ended before this message arrives, the
  // tree handles the lost message, and ends the subscription.
  if (TellSystem(actor, MakeEnvelope<SubscribedToEvents>(ActorRef())) == nullptr) return true;
  stream.UnsubscribeAll(subscriber);
  return false;
}

}  // namespace fraktor::inline v0
