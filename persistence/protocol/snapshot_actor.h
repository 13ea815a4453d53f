// SnapshotActor: the one actor of a system that talks to a snapshot store; all others talk to it.
//
//   PropsPtr props = MakeProps<SnapshotActor>({}, std::shared_ptr<SnapshotStorage>(...), SnapshotActorOptions{});
//   ActorRef snapshots = system.SpawnSystemActor(*props, "snapshots");
//   Tell(snapshots, SaveSnapshot{...});                       // snapshot_messages.h
//
// It serves many clients at once and waits for none. All goes through a circuit breaker. A snapshot
// that cannot be read is passed over for the one before it, a few times; if there is none, that is
// a failure, and not the same as no snapshot at all. This is about records that the store cannot
// read; a payload that the codec cannot read is passed over by the persistent actor. When the actor
// stops or is restarted, everything that is under way is answered with a failure.
//
// A snapshot that is stored although its save was answered with a failure is deleted, when the
// store says which one it is: by an answer that comes too late, or by the time in its error
// (WithSnapshotTime). Other snapshots of the same number stay. One that nobody can name stays too,
// and so does one whose owner has a successor: it does no harm, since it has the right state.
//
// NoSnapshotStore takes its place where there is no store: it finds nothing, and every save fails.
//
// Thread safety: actors.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/store_breaker.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/snapshot/snapshot_storage.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

struct SnapshotActorOptions {
  // If it does not say which errors are failures, those are that the store is to blame for.
  CircuitBreakerOptions breaker = {.name = "snapshot store",
                                   .max_failures = 5,
                                   .call_timeout = absl::Seconds(20),
                                   .reset_timeout = absl::Seconds(1),
                                   .backoff_factor = 2,
                                   .max_reset_timeout = absl::Seconds(10)};
  // So many snapshots of an id are tried, the newest first, if they cannot be read.
  int max_load_attempts = 3;
  // DeleteSnapshot and DeleteSnapshots are published as events.
  bool publish_commands = false;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class SnapshotActor final : public ActorInstance {
 public:
  SnapshotActor(std::shared_ptr<SnapshotStorage> storage, const SnapshotActorOptions& options);

  absl::Status PreStart(ActorContext& context) override;
  absl::Status Receive(ActorContext& context, Envelope& message) override;
  void PostStop(ActorContext& context) override;

 private:
  // A save that is under way.
  struct SaveOutcome {
    SnapshotMetadata asked;
    uint64_t epoch = kNoEpoch;
    bool is_answered = false;
    // The answer of the store, if it has come before.
    std::optional<SnapshotMetadata> saved;
  };

  // Announces the owner to the store, and then loads.
  void Announce(ActorContext& context, LoadSnapshot request);
  // `unreadable` is why the newest one was passed over; OK at the first attempt.
  void Load(ActorContext& context, LoadSnapshot request, int attempt, absl::Status unreadable);
  void AnswerLoad(ActorContext& context, LoadSnapshot request, int attempt, absl::Status unreadable,
                  absl::StatusOr<std::optional<Snapshot>> loaded);
  void Save(ActorContext& context, SaveSnapshot& request);
  // A future with the answer of `saving`. If that comes when the client has been answered, what the
  // store has saved is deleted.
  Future<SnapshotMetadata> Watch(ActorContext& context, Future<SnapshotMetadata> saving,
                                 std::shared_ptr<SaveOutcome> outcome);
  // The store has answered a save that the client was told has failed. Deletes the snapshot that
  // the store may have, by its time: other snapshots of the same number stay.
  void DeleteUnacknowledged(ActorContext& context, const SaveOutcome& outcome,
                            const absl::StatusOr<SnapshotMetadata>& saved);
  void Delete(ActorContext& context, DeleteSnapshot& request);
  void DeleteMatching(ActorContext& context, DeleteSnapshots& request);

  const std::shared_ptr<SnapshotStorage> storage_;
  const SnapshotActorOptions options_;
  protocol_internal::StoreBreaker breaker_;
  PendingOperations operations_;
  bool is_ending_ = false;
};

class NoSnapshotStore final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_
