// EventCodec: what becomes of events and states on their way to the stores, and back.
//
//   class Tagging final : public EventCodec { ... };          // one that says more than the codecs of the system
//   persistence.AddJournal("main", {.storage = journal, .codec = std::make_shared<Tagging>(...)});
//
// The usual one, RegistryEventCodec, uses the codecs of the actor system (fraktor/actor/serialization). Event adapters are
// another.
//
// An event in memory is an Envelope, which knows its type: `event.As<Deposited>()`.
//
// Thread safety: called by many actors at once.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_EVENT_CODEC_H_
#define FRAKTOR_PERSISTENCE_ACTOR_EVENT_CODEC_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"

namespace fraktor::inline v0 {

class EventCodec {
 public:
  using EventSink = absl::FunctionRef<absl::Status(EnvelopePtr event)>;

  virtual ~EventCodec() = default;

  // Sets manifest, version and payload of `repr`, and tags and metadata if there are any. An event that is encoded again
  // gives the same. An error rejects the event: it is not stored.
  virtual absl::Status Encode(const Envelope& event, PersistentRepr& repr) const = 0;

  // Gives the events that `stored` stands for to `sink`, none, one or several, and passes on what it returns. Another
  // error fails the recovery.
  virtual absl::Status Decode(const StoredEvent& stored, EventSink sink) const = 0;

  // Sets manifest, version and payload of `snapshot`.
  virtual absl::Status EncodeState(const Envelope& state, Snapshot& snapshot) const = 0;
  virtual absl::StatusOr<EnvelopePtr> DecodeState(const Snapshot& snapshot) const = 0;
};

// References to actors in events are written as paths, and read as whoever has that path then.
class RegistryEventCodec final : public EventCodec {
 public:
  // `system` must outlive it.
  explicit RegistryEventCodec(const ActorSystem& system) : system_(system), registry_(CodecsOf(system)) {}

  absl::Status Encode(const Envelope& event, PersistentRepr& repr) const override;
  absl::Status Decode(const StoredEvent& stored, EventSink sink) const override;
  absl::Status EncodeState(const Envelope& state, Snapshot& snapshot) const override;
  absl::StatusOr<EnvelopePtr> DecodeState(const Snapshot& snapshot) const override;

 private:
  const ActorSystem& system_;
  const CodecRegistry& registry_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_EVENT_CODEC_H_
