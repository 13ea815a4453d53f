// PlacementEvent: what placement does, for the event stream. Every transition and every failure is one.
//
//   EventSubscription lost = stream.Listen<PlacementEvent>([](const PlacementEvent& event) {
//     if (event.kind == PlacementEvent::Kind::kStorageFailed) Alarm(event.reason);
//   });
//
// Thread safety: a value.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_EVENT_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_EVENT_H_

#include <string>
#include <string_view>

#include "fraktor/actor/event/event_type.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

enum class PlacementCoordinatorState {
  kStopped,
  kMember,
  kClient,
  // Started, but nobody is known.
  kNotReady,
};

// "member" for kMember.
std::string_view PlacementStateName(PlacementCoordinatorState state);

struct PlacementEvent {
  static constexpr EventInfo<PlacementEvent> kEvent{"PlacementEvent"};
  static constexpr bool kOwnsItsData = true;

  enum class Kind {
    kResolved,          // it is known where the grain is: `authority`
    kLockDenied,        // `reason`
    kActivated,         // here: `pid`
    kActivationFailed,  // it could not be started, or stopped, here: `reason`
    kStorageFailed,     // its record could not be read or written: `reason`
    kReleaseFailed,     // the lock stays until its end: `reason`
    kStateChanged,      // of the coordinator: `state`
    kPassivated,        // it has ended because nobody needed it
  };

  Kind kind = Kind::kResolved;
  GrainKey key = {};  // empty for kStateChanged
  std::string authority = {};
  std::string pid = {};
  std::string reason = {};
  PlacementCoordinatorState state = PlacementCoordinatorState::kStopped;  // after it
  Instant observed_at = {};
};

// "lock denied" for kLockDenied.
std::string_view PlacementEventName(PlacementEvent::Kind kind);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_EVENT_H_
