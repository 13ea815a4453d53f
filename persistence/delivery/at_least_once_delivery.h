// AtLeastOnceDelivery: a part of a persistent actor that sends messages again until their receipt is confirmed.
//
//   // In the handler of a command, as long as it can be refused:
//   Effect Handle(const State&, const Transfer& command) {
//     const absl::Status status = delivery_.CheckDelivery("/user/" + command.to);
//     if (!status.ok()) return Reply(ErrorReply{status});
//     return Persist(TransferStarted{command.to, command.amount});
//   }
//   // In the handler of an event, which also runs when it is replayed:
//   void Apply(State& state, const TransferStarted& event) {
//     delivery_.Deliver("/user/" + event.to, [&](uint64_t id) { return Credit{id, event.amount}; });
//   }
//   // The receiver answers with the id, perhaps several times; that is an event too:
//   void Apply(State& state, const TransferConfirmed& event) { delivery_.Confirm(event.delivery_id); }
//
// An EventSourced actor says that it has one (EventSourced::delivery). A PersistentActor that is none calls
// OnRecoveryCompleted in its own, and Receive before it looks at a command.
//
// What is delivered and confirmed follows from the events of the actor: so after a crash the same deliveries are pending,
// with the same ids. While events are replayed nothing is sent; then, what is still unconfirmed. The receiver gets a
// message at least once, and must know one that it has seen; messages may overtake each other.
//
// If snapshots are saved, the state of the deliveries goes into them (GetSnapshot, SetSnapshot).
//
// Destinations are paths, since an actor of the past has no reference to one of today: "/user/bob" or
// "pekko://bank/user/bob". Without wildcards. One that does not exist now may exist at the next attempt.
//
// Costs: a node of a map, the message and the path for each pending delivery; a look at all of them twice in each
// interval.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_PERSISTENCE_DELIVERY_AT_LEAST_ONCE_DELIVERY_H_
#define FRAKTOR_PERSISTENCE_DELIVERY_AT_LEAST_ONCE_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct DeliveryOptions {
  // What is not confirmed for so long is sent again; looked at twice in that time.
  absl::Duration redeliver_interval = absl::Seconds(5);
  // So many are sent again at a time.
  size_t redelivery_burst_limit = 10'000;
  // After so many attempts the actor gets an UnconfirmedWarning, once. 0: never.
  int warn_after_attempts = 5;
  // One more is an error, unless events are replayed.
  size_t max_unconfirmed = 100'000;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

struct UnconfirmedDelivery {
  uint64_t delivery_id = 0;
  std::string destination = {};
  // The name of its type.
  std::string message = {};
};

// A command to the actor itself.
struct UnconfirmedWarning {
  std::vector<UnconfirmedDelivery> deliveries = {};
};

// The state of the deliveries, as a part of a snapshot.
struct DeliverySnapshot {
  struct Pending {
    uint64_t delivery_id = 0;
    std::string destination = {};
    std::string manifest = {};
    uint32_t version = 0;
    std::string message = {};

    friend bool operator==(const Pending&, const Pending&) = default;
  };

  uint64_t last_delivery_id = 0;
  std::vector<Pending> pending = {};

  friend bool operator==(const DeliverySnapshot&, const DeliverySnapshot&) = default;
};

template <>
struct Codec<DeliverySnapshot::Pending>
    : FieldCodec<DeliverySnapshot::Pending, &DeliverySnapshot::Pending::delivery_id,
                 &DeliverySnapshot::Pending::destination, &DeliverySnapshot::Pending::manifest,
                 &DeliverySnapshot::Pending::version, &DeliverySnapshot::Pending::message> {
  static constexpr std::string_view kManifest = "fraktor.pending_delivery";
};
template <>
struct Codec<DeliverySnapshot>
    : FieldCodec<DeliverySnapshot, &DeliverySnapshot::last_delivery_id, &DeliverySnapshot::pending> {
  static constexpr std::string_view kManifest = "fraktor.delivery_snapshot";
};

// What a delivery that cannot be made throws; in a handler it is a failure of the actor.
class DeliveryError : public std::runtime_error {
 public:
  explicit DeliveryError(const absl::Status& status)
      : std::runtime_error(std::string(status.message())), status_(status) {}
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

class AtLeastOnceDelivery {
 public:
  AtLeastOnceDelivery() = default;
  // Throws DeliveryError if the options are not good.
  explicit AtLeastOnceDelivery(const DeliveryOptions& options);
  AtLeastOnceDelivery(const AtLeastOnceDelivery&) = delete;
  AtLeastOnceDelivery& operator=(const AtLeastOnceDelivery&) = delete;

  // Whether so many deliveries to the path could be made now: ResourceExhausted if too many would be unconfirmed,
  // InvalidArgument for a path that is none, has wildcards, or is a guardian's. For handlers of commands: when an event
  // is stored it is too late to refuse it.
  absl::Status CheckDelivery(std::string_view destination, size_t count = 1) const;

  // Sends `make(id)`, a copyable message, to the actor that has the path, now (or when the recovery is complete) and
  // again until it is confirmed. Ids begin with 1 and rise by one, whatever the destination. Throws DeliveryError
  // with what CheckDelivery says.
  //
  // While events are replayed nothing is refused, or the actor could never come back: not what was refused when it was
  // new (its id is used up, so that ids are the same then), nor what was allowed by other options. To a path that is none
  // nothing is sent; an UnconfirmedWarning names it.
  template <class Make>
  uint64_t Deliver(std::string_view destination, Make make) {
    absl::StatusOr<uint64_t> id = TryDeliver(destination, std::move(make));
    if (!id.ok()) throw DeliveryError(id.status());
    return *id;
  }
  template <class Make>
  absl::StatusOr<uint64_t> TryDeliver(std::string_view destination, Make make) {
    using M = std::decay_t<decltype(make(uint64_t{}))>;
    static_assert(std::is_copy_constructible_v<M>, "a message is copied for each attempt: give it a copy constructor");
    return Add(destination, [&make](uint64_t id) { return MakeEnvelope<M>(ActorRef(), make(id)); });
  }

  // True if it was unconfirmed: once for each delivery.
  bool Confirm(uint64_t delivery_id);

  size_t unconfirmed_count() const { return pending_.size(); }

  // The messages in it are written by the codecs of the system. Errors as CodecRegistry's.
  absl::StatusOr<DeliverySnapshot> GetSnapshot(const ActorSystem& system) const;
  // In the recovery, before the events.
  absl::Status SetSnapshot(const ActorSystem& system, const DeliverySnapshot& snapshot);

  // For the actor that has it: see the top.
  void OnRecoveryCompleted(ActorContext& context);
  // Whether the command was for this part.
  bool Receive(ActorContext& context, const Envelope& command);

 private:
  struct Pending {
    std::string destination;
    EnvelopePtr message;
    Instant sent_at;
    int attempts = 0;
  };
  struct RedeliveryTick {};

  absl::StatusOr<uint64_t> Add(std::string_view destination, absl::FunctionRef<EnvelopePtr(uint64_t id)> make);
  void Send(Pending& delivery, Instant now);
  void RedeliverOverdue(Instant now);
  void SetTimer();

  const DeliveryOptions options_ = {};
  ActorContext* context_ = nullptr;  // None while events are replayed.
  uint64_t last_id_ = 0;
  // Where the next round begins, since the last one was full.
  uint64_t next_round_ = 0;
  bool has_timer_ = false;
  std::map<uint64_t, Pending> pending_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DELIVERY_AT_LEAST_ONCE_DELIVERY_H_
