// RemoteAuthorityRegistry: the state of other systems, and what happens to messages for them.
//
//   absl::StatusOr<std::optional<Parcel>> to_send = registry.Offer(authority, std::move(parcel), now);
//   if (to_send.ok() && to_send->has_value()) transport.Send(**to_send);
//   absl::StatusOr<std::deque<Parcel>> queued = registry.Connect(authority, "10.0.0.7:2552", peer_uid, now);
//   for (Parcel& each : *queued) transport.Send(each);  // before any parcel that is offered later
//
// The states and the calls that change them:
//
//   from         call                               to
//   none         Offer, Connect                     Unresolved
//   Unresolved   Connect                            Connected
//   Unresolved   Quarantine of the last system      Quarantine
//   Connected    Disconnect                         Unresolved
//   Connected    Connect by a new uid               Connected
//   Connected    Quarantine                         Quarantine
//   Quarantine   the deadline                       Unresolved
//   Quarantine   Override                           Connected
//   Quarantine   Connect by a new uid               Connected
//
// - Unresolved: messages are queued, first in first out, up to `max_deferred_per_authority`.
//   Further messages are dead letters.
// - Connected: Offer returns messages to the caller for sending.
// - Quarantine: queued and new messages are refused until the deadline, each with one
//   InvalidAssociation and one dead letter.
//
// Quarantine needs the uid of the system that it means, which must be the last system that replied
// at the authority. So a failure that is noticed late does not hit the peer's next incarnation, and
// a system that never replied cannot be quarantined. Pekko logs such a quarantine and ignores it;
// here it is an error.
//
// A new system uid at an authority starts fresh: the quarantine of the old system does not apply to
// it, and messages that were queued for the old system are lost rather than delivered to a
// stranger. Messages that were queued while no uid was known are delivered.
//
// Every change of state is an event (authority_events.h). A call that the state does not allow
// returns PathResolutionErrorKind::kIllegalTransition, changes nothing and publishes nothing.
// Authorities with an unknown protocol are never added.
//
// `Envelope` is any movable type. `describe` returns the dead letter of an envelope; its views are
// valid as long as the envelope.
//
// Thread safety: thread-compatible: one owner, or a lock around it. The calls publish events, so
// subscribers must not call back. Callers pass the time; the same calls with the same times have
// the same results.
#ifndef FRAKTOR_ACTOR_REGISTRY_INTERNAL_REMOTE_AUTHORITY_REGISTRY_H_
#define FRAKTOR_ACTOR_REGISTRY_INTERNAL_REMOTE_AUTHORITY_REGISTRY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/config/remoting_config.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

namespace authority_internal {

absl::Status UnknownProtocol(const PathAuthority& authority);
absl::Status NoRoom(const PathAuthority& authority, size_t max_authorities);
absl::Status QueueFull(const PathAuthority& authority, size_t max_deferred);
absl::Status Quarantined(const PathAuthority& authority, std::string_view reason, absl::Duration left);
absl::Status IllegalTransition(const PathAuthority& authority, std::string_view call,
                               std::optional<AuthorityState> state, std::string_view why);
// The error of Quarantine for a system other than the last one that replied; `met` is 0 if none
// did.
absl::Status NotTheSystem(const PathAuthority& authority, std::optional<AuthorityState> state, uint64_t meant,
                          uint64_t met);

}  // namespace authority_internal

// The state of one authority.
struct AuthorityInfo {
  AuthorityState state = AuthorityState::kUnresolved;
  std::string endpoint;     // the address of the connection
  uint64_t system_uid = 0;  // of the last system that replied there; 0 for none
  size_t deferred = 0;
  Instant deadline;    // end of the quarantine
  std::string reason;  // reason for the quarantine
};

template <class Envelope>
class RemoteAuthorityRegistry {
 public:
  // Returns sender, recipient and message of an envelope. The registry sets the reason.
  using Describe = AllDeadLetters (*)(const Envelope&);

  // Returns an error if the config is invalid. The other arguments must outlive the registry.
  static absl::StatusOr<std::unique_ptr<RemoteAuthorityRegistry>> Create(const RemotingConfig& config,
                                                                         Describe describe, EventStream& events,
                                                                         DeadLetters& dead_letters) {
    FRAKTOR_RETURN_IF_ERROR(config.Validate());
    return std::unique_ptr<RemoteAuthorityRegistry>(
        new RemoteAuthorityRegistry(config, describe, events, dead_letters));
  }

  RemoteAuthorityRegistry(const RemoteAuthorityRegistry&) = delete;
  RemoteAuthorityRegistry& operator=(const RemoteAuthorityRegistry&) = delete;

  // Returns the envelope if the caller must send it now, and nothing if it is queued. Refuses it
  // with an error, and makes it a dead letter: kAuthorityUnresolved, kAuthorityQuarantined or
  // kUnsupportedAuthority.
  absl::StatusOr<std::optional<Envelope>> Offer(const PathAuthority& authority, Envelope envelope, Instant now);

  // The system of `system_uid`, which is not 0, has replied at `endpoint`. Returns the queued
  // messages in their order. Unresolved → Connected; Connected → Connected and Quarantine →
  // Connected if the uid is new. The same uid while connected only changes the endpoint. Illegal: a
  // uid that is quarantined.
  absl::StatusOr<std::deque<Envelope>> Connect(const PathAuthority& authority, std::string_view endpoint,
                                               uint64_t system_uid, Instant now);

  // The connection is lost. Connected → Unresolved. Illegal in every other state.
  absl::Status Disconnect(const PathAuthority& authority, Instant now);

  // Connected or Unresolved → Quarantine, for the system of `system_uid`. Illegal: another system
  // replied last, or it is quarantined already; then the deadline stays.
  absl::Status Quarantine(const PathAuthority& authority, uint64_t system_uid, std::string_view reason, Instant now);

  // Ends a quarantine early, by a decision of a person: Quarantine → Connected. Illegal in every
  // other state.
  absl::Status Override(const PathAuthority& authority, std::string_view endpoint, Instant now);

  // Removes the queued messages that `is_wanted` accepts, and returns them in their order.
  // Publishes nothing.
  std::deque<Envelope> Withdraw(const PathAuthority& authority,
                                absl::FunctionRef<bool(const Envelope& envelope)> is_wanted);

  // Quarantine → Unresolved for all quarantines whose deadline has passed; returns their number.
  // The system's tick calls it. Other calls check the deadline of their own authority.
  size_t Tick(Instant now);

  // Returns none for an unknown authority. Shows the state that the last call or Tick left: a
  // quarantine may still show after its deadline.
  std::optional<AuthorityInfo> Find(const PathAuthority& authority) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    AuthorityState state = AuthorityState::kUnresolved;
    std::string endpoint;
    uint64_t system_uid = 0;
    std::deque<Envelope> deferred;
    Instant deadline;
    std::string reason;
    uint64_t last_use = 0;
  };
  using Entries = absl::btree_map<PathAuthority, std::unique_ptr<Entry>>;

  RemoteAuthorityRegistry(const RemotingConfig& config, Describe describe, EventStream& events,
                          DeadLetters& dead_letters)
      : config_(config), describe_(describe), events_(events), dead_letters_(dead_letters) {}

  static std::optional<AuthorityState> StateOf(const Entry* entry) {
    return entry == nullptr ? std::nullopt : std::optional<AuthorityState>(entry->state);
  }
  // Returns the entry, or null. Ends its quarantine first if the deadline has passed.
  Entry* Lookup(const PathAuthority& authority, Instant now);
  absl::StatusOr<Entry*> LookupOrAdd(const PathAuthority& authority, Instant now);
  bool MakeRoom();
  void Change(const PathAuthority& authority, Entry& entry, AuthorityState to, AuthorityCause cause, Instant now,
              size_t flushed = 0, size_t lost = 0);
  void EndQuarantine(const PathAuthority& authority, Entry& entry);
  void Lose(const Envelope& envelope, DeadLetterReason reason, Instant now);
  void Refuse(const PathAuthority& authority, const Entry& entry, const Envelope& envelope, Instant now);

  const RemotingConfig config_;
  const Describe describe_;
  EventStream& events_;
  DeadLetters& dead_letters_;
  Entries entries_;
  absl::btree_set<std::pair<Instant, PathAuthority>> deadlines_;
  uint64_t uses_ = 0;
};

template <class Envelope>
void RemoteAuthorityRegistry<Envelope>::Change(const PathAuthority& authority, Entry& entry, AuthorityState to,
                                               AuthorityCause cause, Instant now, size_t flushed, size_t lost) {
  const std::optional<AuthorityState> from =
      cause == AuthorityCause::kFirstSeen ? std::nullopt : std::optional<AuthorityState>(entry.state);
  entry.state = to;
  const AuthorityStateChanged change{.authority = authority,
                                     .from = from,
                                     .to = to,
                                     .cause = cause,
                                     .reason = entry.reason,
                                     .system_uid = entry.system_uid,
                                     .deadline = entry.deadline,
                                     .at = now,
                                     .flushed = flushed,
                                     .lost = lost};
  if (to == AuthorityState::kQuarantine) {
    events_.Publish(QuarantinedEvent{change});
  } else {
    events_.Publish(change);
  }
}

template <class Envelope>
void RemoteAuthorityRegistry<Envelope>::EndQuarantine(const PathAuthority& authority, Entry& entry) {
  deadlines_.erase({entry.deadline, authority});
  entry.deadline = Instant();
  entry.reason.clear();
}

template <class Envelope>
void RemoteAuthorityRegistry<Envelope>::Lose(const Envelope& envelope, DeadLetterReason reason, Instant now) {
  DeadLetter letter{describe_(envelope)};
  letter.reason = reason;
  dead_letters_.Publish(letter, now);
}

template <class Envelope>
void RemoteAuthorityRegistry<Envelope>::Refuse(const PathAuthority& authority, const Entry& entry,
                                               const Envelope& envelope, Instant now) {
  const AllDeadLetters described = describe_(envelope);
  events_.Publish(InvalidAssociation{.authority = authority,
                                     .sender = described.sender,
                                     .recipient = described.recipient,
                                     .message = described.message,
                                     .reason = entry.reason,
                                     .deadline = entry.deadline,
                                     .at = now});
  Lose(envelope, DeadLetterReason::kQuarantined, now);
}

template <class Envelope>
typename RemoteAuthorityRegistry<Envelope>::Entry* RemoteAuthorityRegistry<Envelope>::Lookup(
    const PathAuthority& authority, Instant now) {
  const auto found = entries_.find(authority);
  if (found == entries_.end()) return nullptr;
  Entry& entry = *found->second;
  entry.last_use = ++uses_;
  if (entry.state == AuthorityState::kQuarantine && entry.deadline <= now) {
    EndQuarantine(authority, entry);
    Change(authority, entry, AuthorityState::kUnresolved, AuthorityCause::kDurationElapsed, now);
    entry.system_uid = 0;  // any system may reply now
  }
  return &entry;
}

template <class Envelope>
bool RemoteAuthorityRegistry<Envelope>::MakeRoom() {
  if (entries_.size() < config_.max_authorities) return true;
  auto victim = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = *it->second;
    if (entry.state != AuthorityState::kUnresolved || !entry.deferred.empty()) continue;
    if (victim == entries_.end() || entry.last_use < victim->second->last_use) victim = it;
  }
  if (victim == entries_.end()) return false;
  entries_.erase(victim);
  return true;
}

template <class Envelope>
absl::StatusOr<typename RemoteAuthorityRegistry<Envelope>::Entry*> RemoteAuthorityRegistry<Envelope>::LookupOrAdd(
    const PathAuthority& authority, Instant now) {
  if (!IsKnownProtocol(authority.protocol())) return authority_internal::UnknownProtocol(authority);
  if (Entry* const entry = Lookup(authority, now); entry != nullptr) return entry;
  if (!MakeRoom()) return authority_internal::NoRoom(authority, config_.max_authorities);
  Entry& entry = *entries_.try_emplace(authority, std::make_unique<Entry>()).first->second;
  entry.last_use = ++uses_;
  Change(authority, entry, AuthorityState::kUnresolved, AuthorityCause::kFirstSeen, now);
  return &entry;
}

template <class Envelope>
absl::StatusOr<std::optional<Envelope>> RemoteAuthorityRegistry<Envelope>::Offer(const PathAuthority& authority,
                                                                                 Envelope envelope, Instant now) {
  const absl::StatusOr<Entry*> found = LookupOrAdd(authority, now);
  if (!found.ok()) {
    Lose(envelope, DeadLetterReason::kUnsupported, now);
    return found.status();
  }
  Entry& entry = **found;
  switch (entry.state) {
    case AuthorityState::kConnected:
      return std::optional<Envelope>(std::move(envelope));
    case AuthorityState::kUnresolved:
      if (entry.deferred.size() < config_.max_deferred_per_authority) {
        entry.deferred.push_back(std::move(envelope));
        return std::optional<Envelope>();
      }
      Lose(envelope, DeadLetterReason::kUnresolvedFull, now);
      return authority_internal::QueueFull(authority, config_.max_deferred_per_authority);
    case AuthorityState::kQuarantine:
      Refuse(authority, entry, envelope, now);
      return authority_internal::Quarantined(authority, entry.reason, entry.deadline - now);
  }
  return std::optional<Envelope>();
}

template <class Envelope>
absl::StatusOr<std::deque<Envelope>> RemoteAuthorityRegistry<Envelope>::Connect(const PathAuthority& authority,
                                                                                std::string_view endpoint,
                                                                                uint64_t system_uid, Instant now) {
  if (system_uid == 0) {
    return authority_internal::IllegalTransition(authority, "Connect", StateOf(Lookup(authority, now)),
                                                 "system uid 0 means none; give the one of the handshake");
  }
  FRAKTOR_ASSIGN_OR_RETURN(Entry* const entry, LookupOrAdd(authority, now));
  const bool is_new_system = entry->system_uid != 0 && entry->system_uid != system_uid;
  if (entry->state == AuthorityState::kQuarantine && !is_new_system) {
    return authority_internal::IllegalTransition(
        authority, "Connect", entry->state,
        "the system is in quarantine until its deadline; override it, or restart it");
  }
  if (entry->state == AuthorityState::kConnected && !is_new_system) {
    entry->endpoint = std::string(endpoint);
    return std::deque<Envelope>();
  }
  std::deque<Envelope> deferred = std::move(entry->deferred);
  entry->deferred.clear();
  size_t lost = 0;
  if (is_new_system) {
    // These messages were queued for the earlier system.
    lost = deferred.size();
    for (const Envelope& envelope : deferred) Lose(envelope, DeadLetterReason::kNewIncarnation, now);
    deferred.clear();
    if (entry->state == AuthorityState::kQuarantine) EndQuarantine(authority, *entry);
  }
  entry->endpoint = std::string(endpoint);
  entry->system_uid = system_uid;
  Change(authority, *entry, AuthorityState::kConnected,
         is_new_system ? AuthorityCause::kNewIncarnation : AuthorityCause::kMappingRegistered, now, deferred.size(),
         lost);
  return deferred;
}

template <class Envelope>
absl::Status RemoteAuthorityRegistry<Envelope>::Disconnect(const PathAuthority& authority, Instant now) {
  Entry* const entry = Lookup(authority, now);
  if (entry == nullptr || entry->state != AuthorityState::kConnected) {
    return authority_internal::IllegalTransition(authority, "Disconnect", StateOf(entry),
                                                 "only a connected authority can lose its connection");
  }
  entry->endpoint.clear();
  Change(authority, *entry, AuthorityState::kUnresolved, AuthorityCause::kTransportDropped, now);
  return absl::OkStatus();
}

template <class Envelope>
absl::Status RemoteAuthorityRegistry<Envelope>::Quarantine(const PathAuthority& authority, uint64_t system_uid,
                                                           std::string_view reason, Instant now) {
  Entry* const entry = Lookup(authority, now);
  if (entry == nullptr || system_uid == 0 || entry->system_uid != system_uid) {
    return authority_internal::NotTheSystem(authority, StateOf(entry), system_uid,
                                            entry == nullptr ? 0 : entry->system_uid);
  }
  if (entry->state == AuthorityState::kQuarantine) {
    return authority_internal::IllegalTransition(authority, "Quarantine", entry->state,
                                                 "it is in quarantine already, and its deadline stays");
  }
  entry->endpoint.clear();
  entry->reason = std::string(reason);
  entry->deadline = now + config_.quarantine_duration;
  deadlines_.insert({entry->deadline, authority});
  const std::deque<Envelope> deferred = std::move(entry->deferred);
  entry->deferred.clear();
  Change(authority, *entry, AuthorityState::kQuarantine, AuthorityCause::kInvalidAssociation, now, 0, deferred.size());
  for (const Envelope& envelope : deferred) Refuse(authority, *entry, envelope, now);
  return absl::OkStatus();
}

template <class Envelope>
absl::Status RemoteAuthorityRegistry<Envelope>::Override(const PathAuthority& authority, std::string_view endpoint,
                                                         Instant now) {
  Entry* const entry = Lookup(authority, now);
  if (entry == nullptr || entry->state != AuthorityState::kQuarantine) {
    return authority_internal::IllegalTransition(authority, "Override", StateOf(entry),
                                                 "only a quarantine can be overridden; to connect, call Connect");
  }
  EndQuarantine(authority, *entry);
  entry->endpoint = std::string(endpoint);
  Change(authority, *entry, AuthorityState::kConnected, AuthorityCause::kManualOverride, now);
  return absl::OkStatus();
}

template <class Envelope>
std::deque<Envelope> RemoteAuthorityRegistry<Envelope>::Withdraw(const PathAuthority& authority,
                                                                 absl::FunctionRef<bool(const Envelope&)> is_wanted) {
  std::deque<Envelope> withdrawn;
  const auto found = entries_.find(authority);
  if (found == entries_.end()) return withdrawn;
  std::deque<Envelope> others;
  for (Envelope& envelope : std::exchange(found->second->deferred, {})) {
    (is_wanted(envelope) ? withdrawn : others).push_back(std::move(envelope));
  }
  found->second->deferred = std::move(others);
  return withdrawn;
}

template <class Envelope>
size_t RemoteAuthorityRegistry<Envelope>::Tick(Instant now) {
  size_t ended = 0;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const PathAuthority authority = deadlines_.begin()->second;
    Lookup(authority, now);
    ++ended;
  }
  return ended;
}

template <class Envelope>
std::optional<AuthorityInfo> RemoteAuthorityRegistry<Envelope>::Find(const PathAuthority& authority) const {
  const auto found = entries_.find(authority);
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = *found->second;
  return AuthorityInfo{.state = entry.state,
                       .endpoint = entry.endpoint,
                       .system_uid = entry.system_uid,
                       .deferred = entry.deferred.size(),
                       .deadline = entry.deadline,
                       .reason = entry.reason};
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_REGISTRY_INTERNAL_REMOTE_AUTHORITY_REGISTRY_H_
