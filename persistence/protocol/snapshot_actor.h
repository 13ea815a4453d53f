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
// Snapshots that are too large for one message come from other nodes, and go there, in parts
// (snapshot_parts.h). The actor keeps the parts in memory, up to max_transfer_bytes, and forgets a
// transfer that has been idle for transfer_timeout. The breaker sees a save only when all parts are
// there.
//
// NoSnapshotStore takes its place where there is no store: it finds nothing, and every save fails.
//
// Thread safety: actors.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/protocol/snapshot_messages.h"
#include "fraktor/persistence/protocol/snapshot_parts.h"
#include "fraktor/persistence/protocol/snapshot_transfers.h"
#include "fraktor/persistence/protocol/store_actor.h"
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
  // The number of snapshots of an id that are tried, the newest first, if they cannot be read.
  int max_load_attempts = 3;
  // The bytes of snapshots that are in memory because their parts are on their way, to and from
  // all other nodes together. At least 1. Further transfers wait at their nodes. A larger snapshot
  // travels when no other one does.
  size_t max_transfer_bytes = size_t{256} << 20;
  // The actor forgets a transfer that receives no message for this long. Above 0.
  absl::Duration transfer_timeout = absl::Seconds(30);
  // DeleteSnapshot and DeleteSnapshots are published as events.
  bool publish_commands = false;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class SnapshotActor final : public protocol_internal::StoreActor<SnapshotStorage, SnapshotActorOptions> {
 public:
  SnapshotActor(std::shared_ptr<SnapshotStorage> storage, const SnapshotActorOptions& options);

  absl::Status Receive(ActorContext& context, Envelope& message) override;

 private:
  // A save that is under way.
  struct SaveOutcome {
    SnapshotMetadata asked;
    uint64_t epoch = kNoEpoch;
    bool is_answered = false;
    // The answer of the store, if it has come before.
    std::optional<SnapshotMetadata> saved;
  };

  // A load that is under way.
  struct LoadOutcome {
    LoadSnapshot request;
    // Takes an offer if the snapshot has more bytes than `max_bytes`. No one: the client takes all.
    ActorRef takes_offer = {};
    uint64_t max_bytes = 0;
    uint64_t number = 0;  // of the offer
    int attempt = 1;
    // Why the newest one was passed over; OK at the first attempt.
    absl::Status unreadable = {};
  };

  absl::Status ReceiveParts(ActorContext& context, Envelope& message);
  // Announces the owner to the store, and then loads.
  void Announce(ActorContext& context, LoadOutcome load);
  void Load(ActorContext& context, LoadOutcome load);
  void AnswerLoad(ActorContext& context, LoadOutcome load, absl::StatusOr<std::optional<Snapshot>> loaded);
  void Offer(ActorContext& context, const LoadOutcome& load, Snapshot snapshot);
  void SendPart(ActorContext& context, GetSnapshotPart& request);
  void TakePart(ActorContext& context, SaveSnapshotPart& part);
  // Starts the timer that forgets transfers, unless it runs.
  void WatchTransfers(ActorContext& context);

  // `done` receives the result, and the metadata that the client has asked with.
  void Save(ActorContext& context, Snapshot snapshot, uint64_t epoch,
            absl::AnyInvocable<void(absl::StatusOr<SnapshotMetadata> saved, const SnapshotMetadata& asked)> done);
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

  protocol_internal::SnapshotTransfers transfers_;
  bool watches_transfers_ = false;
};

class NoSnapshotStore final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_SNAPSHOT_ACTOR_H_
