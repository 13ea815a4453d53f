// The messages that carry a large snapshot between two nodes in parts. RemoteSnapshotStore sends
// the requests, SnapshotActor answers them. Programs use neither: they say SaveSnapshot and
// LoadSnapshot (snapshot_messages.h) to the actor that PersistenceExtension::SnapshotStore gives.
//
//   SaveSnapshotPart part{.transfer = {.sender = 3, .number = 1}, .offset = 0, .total_bytes = payload.size()};
//   part.bytes = payload.substr(part.offset, 1024);
//   part.head = {.metadata = {.persistence_id = "account-7", .sequence_nr = 100}};     // offset 0 only
//   context.Tell(store, std::move(part));                       // SnapshotPartsTaken, at the end SnapshotPartsSaved
//
// A load begins with LoadSnapshotInParts. The store confirms it with LoadInPartsTaken, and answers
// LoadSnapshotResult or, for a large snapshot, SnapshotOffer. Each GetSnapshotPart then brings one
// SnapshotPart.
//
// Parts may be lost, or come twice: every part names its offset, and every answer says how far the
// receiver is. A node of an older version knows none of these messages and drops them.
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_PARTS_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_PARTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"

namespace fraktor::inline v0 {

// Names one upload. The sender is a random number that each incarnation of a RemoteSnapshotStore
// draws, so two uploads have different names also after a restart.
struct SnapshotTransferId {
  uint64_t sender = 0;
  uint64_t number = 0;

  friend auto operator<=>(const SnapshotTransferId&, const SnapshotTransferId&) = default;
};

// Requests.

// One part of a snapshot that is to be saved. Answer: SnapshotPartsTaken, or SnapshotPartsSaved
// when the store has saved the snapshot or has refused it.
struct SaveSnapshotPart {
  SnapshotTransferId transfer = {};
  uint64_t offset = 0;
  // The size of the whole payload.
  uint64_t total_bytes = 0;
  std::string bytes = {};
  // The snapshot without its payload. Only the part at offset 0 has it.
  Snapshot head = {};
  ActorRef client = {};
  uint64_t epoch = kNoEpoch;
};

// LoadSnapshot from a node that can take parts. The store confirms the request to `client` with
// LoadInPartsTaken. It answers the client of `request` if the snapshot fits into `max_bytes`, and
// this `client` with a SnapshotOffer otherwise. Both are the RemoteSnapshotStore, which answers the
// persistent actor once.
struct LoadSnapshotInParts {
  LoadSnapshot request = {};
  ActorRef client = {};  // the RemoteSnapshotStore
  uint64_t number = 0;
  uint64_t max_bytes = 0;
};

// Asks for a part of the payload of one snapshot. Answer: SnapshotPart.
struct GetSnapshotPart {
  // Id, number and time name the snapshot.
  SnapshotMetadata metadata = {};
  uint64_t total_bytes = 0;
  uint64_t offset = 0;
  uint64_t max_bytes = 0;
  ActorRef client = {};
  uint64_t number = 0;
};

// Answers.

struct SnapshotPartsTaken {
  SnapshotTransferId transfer = {};
  // The store has all bytes before this offset. Lower than before: the store has forgotten the
  // upload, and expects it from this offset on.
  uint64_t received_bytes = 0;
  // False: the store has no room for the upload now.
  bool has_room = true;
};

struct SnapshotPartsSaved {
  SnapshotTransferId transfer = {};
  // Not OK: it is not saved.
  absl::Status cause = {};
  // With the time that the store has given it.
  SnapshotMetadata metadata = {};
};

struct LoadInPartsTaken {
  uint64_t number = 0;
};

// A snapshot that is too large for one message.
struct SnapshotOffer {
  uint64_t number = 0;  // that of the LoadSnapshotInParts
  // Without the payload.
  Snapshot head = {};
  uint64_t total_bytes = 0;
  uint64_t to_sequence_nr = 0;
};

struct SnapshotPart {
  uint64_t number = 0;  // that of the GetSnapshotPart
  uint64_t offset = 0;
  std::string bytes = {};
  // Not OK: there is no such part, or (kOverloaded) not now.
  absl::Status cause = {};
};

template <>
inline constexpr bool kIsSuppressedDeadLetter<SnapshotPartsTaken> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<SnapshotPartsSaved> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<LoadInPartsTaken> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<SnapshotOffer> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<SnapshotPart> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_PARTS_H_
