// Actors that get the events of a stream as messages.
//
//   SubscribeActor<DeadLetter>(context.system().events(), context.self());      // brings a DeadLetterNotice each
//   SubscribeActor<NodeEvent>(system.events(), observer);                       // and what derives from NodeEvent
//   UnsubscribeActor<NodeLeft>(system.events(), observer);                      // but for those
//
// What an actor gets is what the event says about that: see event_type.h. An event comes once, however many of its
// bases the actor has subscribed to. An actor that ends is subscribed to nothing any more.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_SUBSCRIBER_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_SUBSCRIBER_H_

#include "absl/status/statusor.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// An actor as the stream knows it.
EventSubscriber EventSubscriberOf(ActorRef actor);

// True if that changes what the actor gets: not if it got all of it already, nor if it has ended. ResourceExhausted if
// the stream has its max_subscriptions, InvalidArgument for no one.
absl::StatusOr<bool> SubscribeActor(EventStream& stream, ActorRef actor, const EventType& type);
template <class Event>
absl::StatusOr<bool> SubscribeActor(EventStream& stream, ActorRef actor) {
  static_assert(kActorsGetEvent<Event>, "the event does not say what an actor gets of it: see event_type.h");
  return SubscribeActor(stream, actor, EventTypeOf<Event>());
}
// Only an actor that takes the message of the event.
template <class Event, class Ref>
requires requires(const Ref& ref) { ref.untyped(); }
absl::StatusOr<bool> SubscribeActor(EventStream& stream, const Ref& actor) {
  Ref::template Check<EventMessage<Event>>();
  return SubscribeActor<Event>(stream, actor.untyped());
}

// As EventStream::Unsubscribe. What is in the mailbox already still comes.
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
