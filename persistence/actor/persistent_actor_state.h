// The states of a persistent actor, and which may follow which.
//
//   waiting_recovery_permit → recovery_started → recovering → processing_commands ⇄ persisting_events
//
// A recovery that reads nothing goes from recovery_started to the commands at once, and one whose completion has
// persisted something to the events.
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_STATE_H_
#define FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_STATE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

enum class PersistentActorState : uint8_t {
  kWaitingRecoveryPermit,  // Too many recover already.
  kRecoveryStarted,        // The writer is opened and the snapshot loaded.
  kRecovering,             // Events are replayed.
  kProcessingCommands,
  kPersistingEvents,  // Commands wait until what Persist and Defer wait for is over.
};

// "processing_commands" and so on.
std::string_view NameOf(PersistentActorState state);

// Internal, and names both, unless `to` may follow `from`.
absl::Status CheckTransition(PersistentActorState from, PersistentActorState to);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_PERSISTENT_ACTOR_STATE_H_
