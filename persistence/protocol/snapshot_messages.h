// The requests to a snapshot actor, and its answers.
//
//   context.Tell(snapshots, LoadSnapshot{.persistence_id = "account-7", .client = self, .instance_id = 7});
//   ...
//   LoadSnapshotResult: the newest that matches, or none
//
// Clients and instances are as in journal_messages.h. The epoch of a request is that of the owner,
// from WriterIsOpen, and means what snapshot_storage.h says. A node of an older version does not
// send it: then it is kNoEpoch.
//
// Thread safety: values.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_MESSAGES_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_MESSAGES_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

#include "fraktor/actor/event/event_type.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"

namespace fraktor::inline v0 {

// Requests.

// The newest that matches and is not above `to_sequence_nr`. Announces the owner first, if there is
// an epoch and anything can match. Answer: LoadSnapshotResult or LoadSnapshotFailed.
struct LoadSnapshot {
  std::string persistence_id = {};
  SnapshotSelectionCriteria criteria = {};
  uint64_t to_sequence_nr = std::numeric_limits<uint64_t>::max();
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t epoch = kNoEpoch;
};

// Answer: SaveSnapshotSuccess or SaveSnapshotFailure.
struct SaveSnapshot {
  Snapshot snapshot = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t epoch = kNoEpoch;
};

// Deletes all snapshots of the number, of any time. Answer: DeleteSnapshotSuccess or
// DeleteSnapshotFailure.
struct DeleteSnapshot {
  // It is published, if the snapshot actor's options say so; so is the next one.
  static constexpr EventInfo<DeleteSnapshot> kEvent{"DeleteSnapshot"};
  static constexpr bool kOwnsItsData = true;

  SnapshotMetadata metadata = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t epoch = kNoEpoch;
};

// Deletes all that match. Answer: DeleteSnapshotsSuccess or DeleteSnapshotsFailure.
struct DeleteSnapshots {
  static constexpr EventInfo<DeleteSnapshots> kEvent{"DeleteSnapshots"};
  static constexpr bool kOwnsItsData = true;

  std::string persistence_id = {};
  SnapshotSelectionCriteria criteria = {};
  ActorRef client = {};
  uint64_t instance_id = 0;
  uint64_t epoch = kNoEpoch;
};

// Answers.

struct LoadSnapshotResult {
  // Whether there is one.
  bool found = false;
  Snapshot snapshot = {};
  uint64_t to_sequence_nr = 0;  // as it was asked for
  uint64_t instance_id = 0;
};
struct LoadSnapshotFailed {
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

struct SaveSnapshotSuccess {
  // With the time that the store has given it.
  SnapshotMetadata metadata = {};
  uint64_t instance_id = 0;
};
struct SaveSnapshotFailure {
  // As it was asked for.
  SnapshotMetadata metadata = {};
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

struct DeleteSnapshotSuccess {
  SnapshotMetadata metadata = {};
  uint64_t instance_id = 0;
};
struct DeleteSnapshotFailure {
  SnapshotMetadata metadata = {};
  absl::Status cause = {};
  uint64_t instance_id = 0;
};
struct DeleteSnapshotsSuccess {
  SnapshotSelectionCriteria criteria = {};
  uint64_t instance_id = 0;
};
struct DeleteSnapshotsFailure {
  SnapshotSelectionCriteria criteria = {};
  absl::Status cause = {};
  uint64_t instance_id = 0;
};

// A client that stops while it waits for an answer does not miss it.
template <>
inline constexpr bool kIsSuppressedDeadLetter<LoadSnapshotResult> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<LoadSnapshotFailed> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<SaveSnapshotSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<SaveSnapshotFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteSnapshotSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteSnapshotFailure> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteSnapshotsSuccess> = true;
template <>
inline constexpr bool kIsSuppressedDeadLetter<DeleteSnapshotsFailure> = true;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_MESSAGES_H_
