// Events about paths: each message whose path leads nowhere, and each reservation of a uid that was
// evicted early.
//
//   EventSubscription failures = stream.Listen<PathFailure>(
//       [&](const PathFailure& failure) { Note(failure.recipient); });
//   EventSubscription evictions = stream.Listen<UidReservationEvicted>(
//       [&](const UidReservationEvicted& eviction) { Note(eviction.path); });
//
// Events are views that are valid during the publication.
#ifndef FRAKTOR_ACTOR_REGISTRY_PATH_EVENTS_H_
#define FRAKTOR_ACTOR_REGISTRY_PATH_EVENTS_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A message could not be sent, because its path leads nowhere.
struct PathFailure {
  static constexpr EventInfo<PathFailure> kEvent{"PathFailure"};
  const absl::Status& error;  // with an ActorPathErrorKind or a PathResolutionErrorKind
  std::string_view sender;
  std::string_view recipient;  // as it was written; may be malformed
  Instant at;
};

// A reservation that was evicted before it expired, because there were too many.
struct UidReservationEvicted {
  static constexpr EventInfo<UidReservationEvicted> kEvent{"UidReservationEvicted"};
  std::string_view path;
  ActorUid uid;
  Instant reserved_until;
};
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_REGISTRY_PATH_EVENTS_H_
