// EventInfo: makes a struct an event, with a name and the events that it derives from.
//
//   struct NodeEvent {
//     static constexpr EventInfo<NodeEvent> kEvent{"NodeEvent"};
//     std::string_view node;
//   };
//   struct NodeLeft : NodeEvent {
//     static constexpr EventInfo<NodeLeft, NodeEvent> kEvent{"NodeLeft"};  // subscribers to NodeEvent receive it too
//   };
//
// An event that derives from another declares the base in its own kEvent; without a kEvent of its
// own it does not compile. Bases are declared and not found by RTTI, so a type test compares
// addresses.
//
// Events are views during their publication. An event for actors, which keep messages, also says
// which message they receive. Either it has a ToMessage() that returns the message, which derived
// events inherit; or it declares that a copy of it is a message:
//
//   struct NodeJoined {
//     static constexpr EventInfo<NodeJoined> kEvent{"NodeJoined"};
//     static constexpr bool kOwnsItsData = true;    // no views in it: actors receive a copy
//     std::string node;
//   };
//
// Thread safety: constants.
#ifndef FRAKTOR_ACTOR_EVENT_EVENT_TYPE_H_
#define FRAKTOR_ACTOR_EVENT_EVENT_TYPE_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

template <class Event, class... Bases>
struct EventInfo {
  using Self = Event;
  std::string_view name;
};

class EventType;

// A declared base of an event's type.
struct EventBase {
  const EventType* type;
  const void* (*upcast)(const void* event);
};

// The description of a type; its address is the identity of the type.
class EventType {
 public:
  using ToMessage = EnvelopePtr (*)(const void* event);

  constexpr EventType(std::string_view name, const EventBase* bases, size_t base_count, ToMessage make_message)
      : name_(name), bases_(bases), base_count_(base_count), to_message_(make_message) {}
  EventType(const EventType&) = delete;
  EventType& operator=(const EventType&) = delete;

  std::string_view name() const { return name_; }
  absl::Span<const EventBase> bases() const { return absl::Span<const EventBase>(bases_, base_count_); }

  // Makes the message for an actor. Null if actors do not receive this event.
  ToMessage to_message() const { return to_message_; }

  // Returns whether this type is `other` or derives from it.
  bool Is(const EventType& other) const;

 private:
  std::string_view name_;
  const EventBase* bases_;
  size_t base_count_;
  ToMessage to_message_;
};

namespace event_internal {

template <class Event>
struct Table;

template <class Event, class Base>
const void* Upcast(const void* event) {
  static_assert(std::is_base_of_v<Base, Event>, "an event can only name structs as bases that it derives from");
  return static_cast<const Base*>(static_cast<const Event*>(event));
}

template <class Info>
struct Bases;
template <class Event, class... Base>
struct Bases<EventInfo<Event, Base...>> {
  static constexpr std::array<EventBase, sizeof...(Base)> kList = {
      EventBase{&Table<Base>::kType, &Upcast<Event, Base>}...};
};

template <class Event>
concept GivesMessage = requires(const Event& event) {
  event.ToMessage();
};
template <class Event>
concept IsMessage = !GivesMessage<Event> && requires {
  requires Event::kOwnsItsData;
};

template <class Event>
EnvelopePtr MessageFrom(const void* event) {
  const Event& published = *static_cast<const Event*>(event);
  if constexpr (GivesMessage<Event>) {
    return MakeEnvelope<decltype(published.ToMessage())>(ActorRef(), published.ToMessage());
  } else {
    return MakeEnvelope<Event>(ActorRef(), published);
  }
}

template <class Event>
constexpr EventType::ToMessage MessageMaker() {
  if constexpr (GivesMessage<Event> || IsMessage<Event>) {
    return &MessageFrom<Event>;
  } else {
    return nullptr;
  }
}

template <class Event>
struct MessageOf {
  using Type = Event;
};
template <GivesMessage Event>
struct MessageOf<Event> {
  using Type = decltype(std::declval<const Event&>().ToMessage());
};

template <class Event>
struct Table {
  using Info = std::remove_const_t<decltype(Event::kEvent)>;
  static_assert(std::is_same_v<typename Info::Self, Event>,
                "an event that derives from another needs a kEvent of its own");
  static constexpr EventType kType{Event::kEvent.name, Bases<Info>::kList.data(), Bases<Info>::kList.size(),
                                   MessageMaker<Event>()};
};

}  // namespace event_internal

// The message that an actor receives that subscribes to Event.
template <class Event>
using EventMessage = typename event_internal::MessageOf<Event>::Type;

template <class Event>
inline constexpr bool kActorsGetEvent = event_internal::GivesMessage<Event> || event_internal::IsMessage<Event>;

template <class Event>
const EventType& EventTypeOf() {
  return event_internal::Table<Event>::kType;
}

// An event of any type during its publication. A view that is valid as long as the publication.
class EventRef {
 public:
  template <class Event>
  static EventRef To(const Event& event) {
    return EventRef(EventTypeOf<Event>(), &event);
  }

  const EventType& type() const { return *type_; }

  // Returns the message for an actor, or null if actors do not receive this event.
  EnvelopePtr ToMessage() const { return type_->to_message() == nullptr ? nullptr : type_->to_message()(event_); }

  // Returns the event as an Event, which is its type or one of its bases. Null if it is neither.
  template <class Event>
  const Event* As() const {
    return static_cast<const Event*>(Find(*type_, event_, EventTypeOf<Event>()));
  }

 private:
  EventRef(const EventType& type, const void* event) : type_(&type), event_(event) {}

  static const void* Find(const EventType& type, const void* event, const EventType& wanted);

  const EventType* type_;
  const void* event_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_EVENT_EVENT_TYPE_H_
