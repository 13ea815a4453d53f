// The requests to a state actor, and its answers.
//
// Every request names its client and the client's instance, and every answer the instance: so a
// restarted client ignores answers to an earlier incarnation.
//
// The token of a request is the fencing token of its owner, and means what state_storage.h says.
// kNoEpoch: the owner has none, or is on a node of an older version, which does not send it.
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_STATE_MESSAGES_H_
#define FRAKTOR_PERSISTENCE_DURABLE_STATE_MESSAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/state/state_storage.h"

namespace fraktor::inline v0 {

// Announces the owner first, if it has a token. Answer: StateLoaded.
struct LoadState {
  std::string persistence_id = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t token = kNoEpoch;
};

// Stores a state, or deletes it. Answer: StateChanged.
struct ChangeState {
  StoredState change = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t token = kNoEpoch;
};

struct StateLoaded {
  // Not OK: it could not be loaded.
  absl::Status cause = {};
  StoredState stored = {};
  uint64_t instance_id = 0;
};

struct StateChanged {
  // Not OK: it is not stored, or nobody knows.
  absl::Status cause = {};
  uint64_t revision = 0;
  uint64_t instance_id = 0;
};

// A client that stops while it waits for an answer does not miss it.
template <>
inline constexpr bool kIsSuppressedDeadLetter<StateLoaded> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<StateChanged> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_STATE_MESSAGES_H_
