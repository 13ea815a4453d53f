// What the stream hears of other systems: every change of an authority's state, and every message that is refused
// because its authority is in quarantine.
//
//   stream.Listen<AuthorityStateChanged>([](const AuthorityStateChanged& change) { ... });  // quarantines among them
//   stream.Listen<QuarantinedEvent>(...);                                                   // only those
//
// Events are views that hold during the publication.
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
  kUnresolved,  // not connected: messages wait
  kConnected,   // messages go out
  kQuarantine,  // messages are refused until the deadline
};

enum class AuthorityCause {
  kFirstSeen,           // somebody sends to it for the first time
  kMappingRegistered,   // a handshake has succeeded, or a program has said where it is
  kTransportDropped,    // the connection is gone
  kInvalidAssociation,  // the peer cannot be trusted to know our state any more
  kDurationElapsed,     // the quarantine has ended
  kManualOverride,      // a program has ended the quarantine
  kNewIncarnation,      // another system answers at the same authority
};

std::string_view NameOf(AuthorityState state);
std::string_view NameOf(AuthorityCause cause);

struct AuthorityStateChanged {
  static constexpr EventInfo<AuthorityStateChanged> kEvent{"AuthorityStateChanged"};
  const PathAuthority& authority;
  std::optional<AuthorityState> from = std::nullopt;  // none if the authority is new
  AuthorityState to = AuthorityState::kUnresolved;
  AuthorityCause cause = AuthorityCause::kFirstSeen;
  std::string_view reason = {};  // why there is a quarantine
  uint64_t system_uid = 0;       // of the peer; 0 if it was never known
  Instant deadline = {};         // of a quarantine
  Instant at = {};
  size_t flushed = 0;  // messages that waited and go out now
  size_t lost = 0;     // messages that waited and are dead letters now
};

struct QuarantinedEvent : AuthorityStateChanged {
  static constexpr EventInfo<QuarantinedEvent, AuthorityStateChanged> kEvent{"QuarantinedEvent"};
};

// One message that is refused because its authority is in quarantine. It is a dead letter too.
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
