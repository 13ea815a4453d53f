// Events about other systems: each change of an authority's state, and each message that is refused
// because its authority is quarantined.
//
//   EventSubscription changes = stream.Listen<AuthorityStateChanged>(
//       [&](const AuthorityStateChanged& change) { Note(change.authority); });               // quarantines too
//   EventSubscription quarantines = stream.Listen<QuarantinedEvent>(
//       [&](const QuarantinedEvent& change) { Note(change.authority); });                    // only quarantines
//
// Events are views that are valid during the publication.
#ifndef FRAKTOR_ACTOR_REGISTRY_AUTHORITY_EVENTS_H_
#define FRAKTOR_ACTOR_REGISTRY_AUTHORITY_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

enum class AuthorityState {
  kUnresolved,  // not connected; messages are queued
  kConnected,   // messages are sent
  kQuarantine,  // messages are refused until the deadline
};

enum class AuthorityCause {
  kFirstSeen,           // the first message to this authority
  kMappingRegistered,   // a handshake succeeded, or a program registered the endpoint
  kTransportDropped,    // the connection is lost
  kInvalidAssociation,  // the peer's knowledge of our state can no longer be trusted
  kDurationElapsed,     // the quarantine has ended
  kManualOverride,      // a program ended the quarantine
  kNewIncarnation,      // another system replies at the same authority
};

std::string_view NameOf(AuthorityState state);
std::string_view NameOf(AuthorityCause cause);

struct AuthorityStateChanged {
  static constexpr EventInfo<AuthorityStateChanged> kEvent{"AuthorityStateChanged"};
  const PathAuthority& authority;
  std::optional<AuthorityState> from = std::nullopt;  // none if the authority is new
  AuthorityState to = AuthorityState::kUnresolved;
  AuthorityCause cause = AuthorityCause::kFirstSeen;
  std::string_view reason = {};  // the reason for the quarantine
  uint64_t system_uid = 0;       // uid of the peer; 0 if it was never known
  Instant deadline = {};         // end of the quarantine
  Instant at = {};
  size_t flushed = 0;  // number of queued messages that are sent now
  size_t lost = 0;     // number of queued messages that are dead letters now
};

struct QuarantinedEvent : AuthorityStateChanged {
  static constexpr EventInfo<QuarantinedEvent, AuthorityStateChanged> kEvent{"QuarantinedEvent"};
};

// A message that is refused because its authority is quarantined. It is a dead letter too.
struct InvalidAssociation {
  static constexpr EventInfo<InvalidAssociation> kEvent{"InvalidAssociation"};
  const PathAuthority& authority;
  std::string_view sender;
  std::string_view recipient;
  MessageView message;
  std::string_view reason;
  Instant deadline;
  Instant at;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_REGISTRY_AUTHORITY_EVENTS_H_
