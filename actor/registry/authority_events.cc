#include "fraktor/actor/registry/authority_events.h"

#include <string_view>

namespace fraktor::inline v0 {

std::string_view NameOf(AuthorityState state) {
  switch (state) {
    case AuthorityState::kUnresolved:
      return "Unresolved";
    case AuthorityState::kConnected:
      return "Connected";
    case AuthorityState::kQuarantine:
      return "Quarantine";
  }
  return "unknown";
}

std::string_view NameOf(AuthorityCause cause) {
  switch (cause) {
    case AuthorityCause::kFirstSeen:
      return "first seen";
    case AuthorityCause::kMappingRegistered:
      return "mapping registered";
    case AuthorityCause::kTransportDropped:
      return "transport dropped";
    case AuthorityCause::kInvalidAssociation:
      return "invalid association";
    case AuthorityCause::kDurationElapsed:
      return "duration elapsed";
    case AuthorityCause::kManualOverride:
      return "manual override";
    case AuthorityCause::kNewIncarnation:
      return "new incarnation";
  }
  return "unknown";
}

}  // namespace fraktor::inline v0
