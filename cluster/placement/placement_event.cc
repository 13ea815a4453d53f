#include "fraktor/cluster/placement/placement_event.h"

#include <string_view>

namespace fraktor::inline v0 {

std::string_view PlacementStateName(PlacementCoordinatorState state) {
  switch (state) {
    case PlacementCoordinatorState::kStopped:
      return "stopped";
    case PlacementCoordinatorState::kMember:
      return "member";
    case PlacementCoordinatorState::kClient:
      return "client";
    case PlacementCoordinatorState::kNotReady:
      return "not ready";
  }
  return "unknown";
}

std::string_view PlacementEventName(PlacementEvent::Kind kind) {
  switch (kind) {
    case PlacementEvent::Kind::kResolved:
      return "resolved";
    case PlacementEvent::Kind::kLockDenied:
      return "lock denied";
    case PlacementEvent::Kind::kActivated:
      return "activated";
    case PlacementEvent::Kind::kActivationFailed:
      return "activation failed";
    case PlacementEvent::Kind::kStorageFailed:
      return "storage failed";
    case PlacementEvent::Kind::kReleaseFailed:
      return "release failed";
    case PlacementEvent::Kind::kStateChanged:
      return "state changed";
    case PlacementEvent::Kind::kPassivated:
      return "passivated";
  }
  return "unknown";
}

}  // namespace fraktor::inline v0
