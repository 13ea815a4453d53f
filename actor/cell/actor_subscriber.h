// SubscribeActor: an actor receives the events of a stream as messages.
//
//   SubscribeActor<AllDeadLetters>(system.events(), observer).value();  // a DeadLetterNotice for each
//   UnsubscribeActor<Dropped>(system.events(), observer);               // except those of full mailboxes
//
// The event defines the message (ToMessage, see event_type.h). Each event comes once, however many
// of its bases the actor has subscribed to. The end of an actor ends its subscriptions.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_SUBSCRIBER_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_SUBSCRIBER_H_

#include "absl/status/statusor.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The actor as a subscriber of the stream.
EventSubscriber EventSubscriberOf(ActorRef actor);

// Returns false if nothing changes: the actor receives all of these events already, or has ended.
// Errors: ResourceExhausted if the stream has max_subscriptions, InvalidArgument for no one.
absl::StatusOr<bool> SubscribeActor(EventStream& stream, ActorRef actor, const EventType& type);
template <class Event>
absl::StatusOr<bool> SubscribeActor(EventStream& stream, ActorRef actor) {
  static_assert(kActorsGetEvent<Event>, "the event does not say what an actor gets of it: see event_type.h");
  return SubscribeActor(stream, actor, EventTypeOf<Event>());
}
// For typed references: compiles only if the actor handles the message of the event.
template <class Event, class Ref>
requires requires(const Ref& ref) { ref.untyped(); }
absl::StatusOr<bool> SubscribeActor(EventStream& stream, const Ref& actor) {
  Ref::template Check<EventMessage<Event>>();
  return SubscribeActor<Event>(stream, actor.untyped());
}

// See EventStream::Unsubscribe. Messages that are already in the mailbox still come.
template <class Event>
bool UnsubscribeActor(EventStream& stream, ActorRef actor) {
  return stream.Unsubscribe<Event>(EventSubscriberOf(actor));
}
template <class Event, class Ref>
requires requires(const Ref& ref) { ref.untyped(); }
bool UnsubscribeActor(EventStream& stream, const Ref& actor) {
  return UnsubscribeActor<Event>(stream, actor.untyped());
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_SUBSCRIBER_H_
