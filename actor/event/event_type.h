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
// Thread safety: constants.
#ifndef FRAKTOR_ACTOR_EVENT_EVENT_TYPE_H_
#define FRAKTOR_ACTOR_EVENT_EVENT_TYPE_H_

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "absl/types/span.h"

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
  constexpr EventType(std::string_view name, const EventBase* bases, size_t base_count)
      : name_(name), bases_(bases), base_count_(base_count) {}
  EventType(const EventType&) = delete;
  EventType& operator=(const EventType&) = delete;

  std::string_view name() const { return name_; }
  absl::Span<const EventBase> bases() const { return absl::Span<const EventBase>(bases_, base_count_); }

  // Whether it is `other`, or has it as a base, near or far.
  bool Is(const EventType& other) const;

 private:
  std::string_view name_;
  const EventBase* bases_;
  size_t base_count_;
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
struct Table {
  using Info = std::remove_const_t<decltype(Event::kEvent)>;
  static_assert(std::is_same_v<typename Info::Self, Event>,
                "an event that derives from another needs a kEvent of its own");
  static constexpr EventType kType{Event::kEvent.name, Bases<Info>::kList.data(), Bases<Info>::kList.size()};
};

}  // namespace event_internal

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
