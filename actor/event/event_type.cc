#include "fraktor/actor/event/event_type.h"

namespace fraktor::inline v0 {

// The depth of the recursion is the depth of the declared bases.
bool EventType::Is(const EventType& other) const {  // NOLINT(misc-no-recursion)
  if (this == &other) return true;
  for (const EventBase& base : bases()) {
    if (base.type->Is(other)) return true;
  }
  return false;
}

const void* EventRef::Find(const EventType& type, const void* event,  // NOLINT(misc-no-recursion)
                           const EventType& wanted) {
  if (&type == &wanted) return event;
  for (const EventBase& base : type.bases()) {
    if (const void* found = Find(*base.type, base.upcast(event), wanted); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace fraktor::inline v0
