// What makes a struct an event: a name, and the events that it also is.
//
//   struct NodeEvent {
//     static constexpr EventInfo<NodeEvent> kEvent{"NodeEvent"};
//     std::string_view node;
//   };
//   struct NodeLeft : NodeEvent {
//     static constexpr EventInfo<NodeLeft, NodeEvent> kEvent{"NodeLeft"};  // who subscribes to NodeEvent gets it too
//   };
//
// An event that derives from another says so in its own kEvent; forgetting it does not compile. Bases are declared, not
// found by RTTI, so a type test is a compare of addresses.
//
// Events are views while they are published. One that actors are to get, as a message that they keep, says how: by a
// ToMessage() that gives the message, which those that derive from it have too, or by saying that a copy of it is as
// good as itself:
//
//   struct NodeJoined {
//     static constexpr EventInfo<NodeJoined> kEvent{"NodeJoined"};
//     static constexpr bool kOwnsItsData = true;    // no views in it: actors get it as it is
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

// One declared base of an event's type.
struct EventBase {
  const EventType* type;
  const void* (*upcast)(const void* event);
};

// The table of a type; its address is the type's identity.
class EventType {
 public:
  using ToMessage = EnvelopePtr (*)(const void* event);

  constexpr EventType(std::string_view name, const EventBase* bases, size_t base_count, ToMessage make_message)
      : name_(name), bases_(bases), base_count_(base_count), to_message_(make_message) {}
  EventType(const EventType&) = delete;
  EventType& operator=(const EventType&) = delete;

  std::string_view name() const { return name_; }
  absl::Span<const EventBase> bases() const { return absl::Span<const EventBase>(bases_, base_count_); }

  // What an actor gets of it; null if it says nothing about that.
  ToMessage to_message() const { return to_message_; }

  // Whether it is `other`, or has it as a base, near or far.
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

// What an actor gets that has subscribed to Event.
template <class Event>
using EventMessage = typename event_internal::MessageOf<Event>::Type;

template <class Event>
inline constexpr bool kActorsGetEvent = event_internal::GivesMessage<Event> || event_internal::IsMessage<Event>;

template <class Event>
const EventType& EventTypeOf() {
  return event_internal::Table<Event>::kType;
}

// An event that is being published, whatever its type. A view: it holds as long as the publication.
class EventRef {
 public:
  template <class Event>
  static EventRef To(const Event& event) {
    return EventRef(EventTypeOf<Event>(), &event);
  }

  const EventType& type() const { return *type_; }

  // For an actor; null if the event says nothing about that.
  EnvelopePtr ToMessage() const { return type_->to_message() == nullptr ? nullptr : type_->to_message()(event_); }

  // The event as an Event, which is its type or one of its bases; null if it is neither.
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
