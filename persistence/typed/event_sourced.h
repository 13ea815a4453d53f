// EventSourced: a persistent actor of three parts: commands lead to events, events change the state, the state answers.
//
//   struct AccountState { int64_t balance = 0; };
//
//   class Account : public EventSourced<Account, AccountState, Commands<Deposit, GetBalance>, Events<Deposited>> {
//    public:
//     explicit Account(std::string id) : id_(std::move(id)) {}
//     std::string PersistenceId() const override { return id_; }
//     Retention retention() const override { return {.snapshot_every = 100, .keep_snapshots = 2}; }
//
//     ReplyEffect<Balance> Handle(const AccountState&, const Deposit& command) {
//       return Persist(Deposited{command.amount}).ThenReply([](const AccountState& now) { return Balance{now.balance}; });
//     }
//     Balance Handle(const AccountState& state, const GetBalance&) { return {state.balance}; }
//
//     AccountState Apply(AccountState state, const Deposited& event) {       // also when it is replayed
//       state.balance += event.amount;
//       return state;
//     }
//   };
//
//   auto account = system.Spawn<Account>("alice", "account-alice");          // TypedRef<Deposit, GetBalance>
//
// Handle: takes (const State&, const Command&), or the ActorContext& before them. It returns an Effect or a ReplyEffect<R>
// (effect.h), an answer, a StatusOr of one, nothing, or a Status whose error is a failure of the actor. A command without a
// Handle does not compile, nor does a Handle that is a coroutine, or that answers with another type than the command's
// Reply; unless it returns an Effect, whose answer is looked at before anything is stored. One that has to ask somebody
// before it stores has the answer sent to its own actor, as a command that stores: see examples/cluster/orders.cc.
//
// Apply: State Apply(State, const Event&), or void Apply(State&, const Event&), and nothing else. It is public, and it only
// computes, from the state and the event, since it does so again whenever the actor comes back. What is to happen once goes
// into ThenRun.
// It should not fail: refuse in Handle what cannot be. If it throws all the same:
// - The first form is called before the event is stored, on a copy of the state, which is the new state when the event is
//   stored. So nothing is stored, the sender gets an ErrorReply, and the actor goes on as if the command had never come.
//   There is no copy, and it is called afterwards as below, if it is noexcept, or State cannot be copied (then what was
//   given to it is lost: restart such an actor), or the actor has deliveries, which Apply may begin.
// - The second form copies nothing, and is called when the event is stored. If it throws, the sender gets an ErrorReply,
//   and it is a failure of the actor. The event stays: each recovery fails on it, until a program that can apply it runs.
// In a recovery no form copies.
//
// Tags: `static std::vector<std::string> Tags(const Event&)`, public, for those of the events that queries are to find by
// them (fraktor/persistence/query); an event adapter may add others.
//
// An event that is rejected is answered with an ErrorReply, and the actor goes on as if the command had never come; so it is
// if there are too many. One that could not be stored is answered too, and the actor stops. What fails after an event is
// stored (ThenRun, ThenReply) is a failure of the actor, and the sender hears that the event is stored: it must not send the
// command again.
//
// A snapshot that cannot be saved is a warning, and the actor goes on.
//
// Snapshots need a codec for State, events one for each. All else is as in persistent_actor.h.
//
// Thread safety: as any actor, in its turns.
#ifndef FRAKTOR_PERSISTENCE_TYPED_EVENT_SOURCED_H_
#define FRAKTOR_PERSISTENCE_TYPED_EVENT_SOURCED_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/actor/persistent_actor.h"
#include "fraktor/persistence/delivery/at_least_once_delivery.h"
#include "fraktor/persistence/snapshot/snapshot_metadata.h"
#include "fraktor/persistence/typed/effect.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

// What is kept.
struct Retention {
  // A snapshot is saved after so many events; 0: none, and nothing is deleted.
  uint64_t snapshot_every = 0;
  // When a snapshot is stored, those are deleted that are older than so many spans of `snapshot_every` events; but none of
  // the last so many that the actor has saved, and come back from, since it was started. 0: all are kept, and no event may
  // be deleted: an actor that wants both does not start.
  uint64_t keep_snapshots = 2;
  // Events of the same numbers are deleted too. So all that are younger than the oldest snapshot that is kept stay, and
  // up to a span of older ones.
  bool delete_events = false;
};

// What does not depend on types.
class EventSourcedActor : public PersistentActor {
 protected:
  virtual Retention retention() const { return {}; }
  // Its deliveries, if it has any. Their state is saved with snapshots if State has a member `DeliverySnapshot deliveries`;
  // of an actor that has both and no such member no snapshot is saved, and an error is logged each time.
  virtual AtLeastOnceDelivery* delivery() { return nullptr; }

  // All events of the past have been applied; commands come next.
  virtual absl::Status OnRecovered(ActorContext& context);

  absl::Status ReceiveCommand(ActorContext& context, Envelope& command) final;
  absl::Status ReceiveRecover(ActorContext& context, Envelope& event) final;
  absl::Status OnRecoveryCompleted(ActorContext& context) final;
  void OnPersistRejected(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) override;
  void OnPersistFailure(const absl::Status& cause, Envelope& event, uint64_t sequence_nr) override;

  // Texts.
  static absl::Status UnknownEvent(const Envelope& event, std::string_view actor);
  static absl::Status UnknownState(const Envelope& saved, const SnapshotMetadata& metadata, std::string_view state);
  static absl::Status NoPlaceForDeliveries(std::string_view state);
  static absl::Status NotCopyable(std::string_view state);

  // A snapshot that is stored: one more to keep.
  void NoteSnapshot(uint64_t sequence_nr);

  // Stores the events together, applies each when they are stored, unless that is done, and then calls `then`.
  enum class Applied : uint8_t { kWhenStored, kBefore };
  void PersistAndApply(std::vector<EnvelopePtr> events, Applied applied,
                       absl::AnyInvocable<absl::Status(ActorContext&)> then);
  // What `apply` throws is an error.
  static absl::Status Guarded(absl::FunctionRef<absl::Status()> apply);
  // One of the events of a command could not be applied, and none is stored.
  void Refuse(const absl::Status& cause, const Envelope& event, ActorRef sender);

 private:
  virtual absl::Status OnCommand(ActorContext& context, Envelope& command) = 0;
  virtual absl::Status ApplyEvent(const Envelope& event) = 0;
  virtual absl::StatusOr<EnvelopePtr> CopyState() = 0;

  absl::Status ApplyStored(Envelope& event);
  void SaveIfDue(uint64_t first);
  void OnSaved(const SnapshotMetadata& saved);

  // Once for all events of a command.
  void AnswerError(const absl::Status& cause, ActorRef sender);

  // Whether the sender of the command at hand has got an error: further commands wait for it, so there is one.
  bool is_answered_ = false;
  // The numbers of the last snapshots that are known to be stored, rising; at most as many as are to be kept.
  std::vector<uint64_t> snapshots_;
};

// It has no definition: it is there to be named in the error of a program that does not compile.
template <class Actor, class State, class Event>
struct ActorDoesNotApply;

namespace typed_internal {

template <class A, class State, class E>
concept AppliesToValue = requires(A& actor, State& state, const E& event) {
  { actor.Apply(std::move(state), event) } -> std::same_as<State>;
};
// Not one that takes a copy, or something else that it cannot change: its work would be lost.
template <class A, class State, class E>
concept AppliesInPlace = !requires(A & actor, State& state, const E& event) {
  actor.Apply(std::move(state), event);
}
&&requires(A& actor, State& state, const E& event) {
  { actor.Apply(state, event) } -> std::same_as<void>;
};

}  // namespace typed_internal

template <class Self, class State, class CommandList, class EventList>
class EventSourced;

template <class Self, class StateType, class... Cs, class... Es>
class EventSourced<Self, StateType, Commands<Cs...>, Events<Es...>> : public EventSourcedActor,
                                                                      protected EffectWords<StateType> {
 public:
  using State = StateType;
  using Effect = fraktor::Effect<State>;
  template <class R>
  using ReplyEffect = fraktor::ReplyEffect<State, R>;
  using Ref = TypedRef<Cs...>;
  using Context = ActorContext;

 protected:
  EventSourced() = default;
  // What it is before its first event.
  explicit EventSourced(State initial) : state_(std::move(initial)) {}

  // Several events are stored together or not at all.
  template <class... Given>
  static Effect Persist(Given... events) {
    static_assert(sizeof...(Given) > 0 && (IsEvent<Given>() && ...),
                  "an event that is persisted must be in the list Events<...> of the actor");
    Effect effect(Effect::Kind::kPersist);
    (effect.envelopes().push_back(MakeEvent(std::move(events))), ...);
    return effect;
  }
  // As many as there are; of none only what comes then happens.
  template <class E>
  static Effect PersistAll(std::vector<E> events) {
    static_assert(IsEvent<E>(), "an event that is persisted must be in the list Events<...> of the actor");
    Effect effect(Effect::Kind::kPersist);
    for (E& event : events) effect.envelopes().push_back(MakeEvent(std::move(event)));
    return effect;
  }
  using EffectWords<State>::Nothing;
  using EffectWords<State>::Reply;
  using EffectWords<State>::Unhandled;
  using EffectWords<State>::Stash;
  using EffectWords<State>::Stop;

  const State& state() const { return state_; }

 private:
  template <class E>
  static constexpr bool IsEvent() {
    return (std::is_same_v<E, Es> || ...);
  }
  static constexpr bool kHasDeliveries = requires(State & state) {
    { state.deliveries } -> std::same_as<DeliverySnapshot&>;
  };

  absl::Status OnCommand(ActorContext& context, Envelope& command) final {
    Effect effect;
    absl::Status status;
    if (!typed_internal::HandleAnyCommand<Self, State, Cs...>(static_cast<Self&>(*this), context, state_, command,
                                                              effect, status)) {
      return PersistentActor::Unhandled(command);
    }
    if (!status.ok()) return status;
    switch (effect.kind()) {
      case Effect::Kind::kUnhandled:
        return PersistentActor::Unhandled(command);
      case Effect::Kind::kStash:
        return PersistentActor::Stash();
      default:
        break;
    }
    if (effect.envelopes().empty()) return Finish(context, effect);
    if (typed_internal::RefusesToStoreAndStop(context, TypeName<Self>(), command)) return absl::OkStatus();
    std::vector<EnvelopePtr> events = std::move(effect.envelopes());
    if constexpr ((IsTried<Es>() || ...)) {
      if (delivery() == nullptr && std::any_of(events.begin(), events.end(), IsOneToTry)) {
        return TryAndPersist(std::move(events), std::move(effect), command.sender());
      }
    }
    PersistAndApply(std::move(events), Applied::kWhenStored,
                    [this, effect = std::move(effect)](ActorContext& then_context) mutable {
                      return Finish(then_context, effect);
                    });
    return absl::OkStatus();
  }

  // Whether an event is applied to a copy first, in case that Apply throws.
  template <class E>
  static constexpr bool IsTried() {
    if constexpr (std::is_copy_constructible_v<State> && typed_internal::AppliesToValue<Self, State, E>) {
      return !noexcept(std::declval<Self&>().Apply(std::declval<State&&>(), std::declval<const E&>()));
    } else {
      return false;
    }
  }
  static bool IsOneToTry(const EnvelopePtr& event) { return IsEventToTry(*event); }
  static bool IsEventToTry([[maybe_unused]] const Envelope& event) {
    return ((IsTried<Es>() && event.Is<Es>()) || ...);
  }

  absl::Status TryAndPersist(std::vector<EnvelopePtr> events, Effect effect, ActorRef sender) {
    State next(state_);
    const Envelope* at = nullptr;
    const absl::Status applied = Guarded([&]() -> absl::Status {
      for (const EnvelopePtr& event : events) {
        at = event.get();
        FRAKTOR_RETURN_IF_ERROR(ApplyTo(next, *event));
      }
      return absl::OkStatus();
    });
    if (!applied.ok()) {
      Refuse(applied, *at, sender);
      return absl::OkStatus();
    }
    PersistAndApply(std::move(events), Applied::kBefore,
                    [this, next = std::move(next), effect = std::move(effect)](ActorContext& then_context) mutable {
                      state_ = std::move(next);
                      return Finish(then_context, effect);
                    });
    return absl::OkStatus();
  }

  absl::Status Finish(ActorContext& context, Effect& effect) {
    return effect.Run(context, state_, [this] { UnstashAll(); });
  }

  absl::Status ApplyEvent(const Envelope& event) final {
    if constexpr ((IsTried<Es>() || ...)) {
      // A recovery that fails is the end of the actor.
      if (!is_recovering() && IsEventToTry(event)) {
        State next(state_);
        FRAKTOR_RETURN_IF_ERROR(ApplyTo(next, event));
        state_ = std::move(next);
        return absl::OkStatus();
      }
    }
    return ApplyTo(state_, event);
  }
  absl::Status ApplyTo(State& state, const Envelope& event) {
    if ((TryApply<Es>(state, event) || ...)) return absl::OkStatus();
    return UnknownEvent(event, TypeName<Self>());
  }
  template <class E>
  bool TryApply(State& state, const Envelope& event) {
    const E* const typed = event.TryAs<E>();
    if (typed == nullptr) return false;
    Self& self = static_cast<Self&>(*this);
    if constexpr (typed_internal::AppliesToValue<Self, State, E>) {
      state = self.Apply(std::move(state), *typed);
    } else if constexpr (typed_internal::AppliesInPlace<Self, State, E>) {
      self.Apply(state, *typed);
    } else {
      static_assert(sizeof(ActorDoesNotApply<Self, State, E>) > 0);
    }
    return true;
  }

  void AddTags(const Envelope& event, std::vector<std::string>& tags) const final {
    (AddTagsOf(event.TryAs<Es>(), tags), ...);
  }
  template <class E>
  void AddTagsOf([[maybe_unused]] const E* event, [[maybe_unused]] std::vector<std::string>& tags) const {
    [[maybe_unused]] const Self& self = static_cast<const Self&>(*this);
    if constexpr (requires { self.Tags(*event); }) {
      static_assert(std::is_same_v<std::decay_t<decltype(self.Tags(*event))>, std::vector<std::string>>,
                    "Tags(const Event&) returns the tags of the event as a std::vector<std::string>");
      if (event == nullptr) return;
      for (std::string& tag : std::vector<std::string>(self.Tags(*event))) {
        if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(std::move(tag));
      }
    }
  }

  absl::Status ReceiveSnapshot(ActorContext& context, const SnapshotMetadata& metadata, Envelope& saved) final {
    if (!saved.Is<State>()) return UnknownState(saved, metadata, TypeName<State>());
    NoteSnapshot(metadata.sequence_nr);
    state_ = saved.Take<State>();
    if constexpr (kHasDeliveries) {
      if (delivery() != nullptr) {
        absl::Status status = delivery()->SetSnapshot(context.system(), state_.deliveries);
        state_.deliveries = {};
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<EnvelopePtr> CopyState() final {
    if constexpr (std::is_copy_constructible_v<State>) {
      EnvelopePtr copy = MakeEnvelope<State>(ActorRef(), State(state_));
      if (delivery() == nullptr) return copy;
      if constexpr (kHasDeliveries) {
        absl::StatusOr<DeliverySnapshot> deliveries = delivery()->GetSnapshot(context().system());
        if (!deliveries.ok()) return deliveries.status();
        copy->template As<State>().deliveries = *std::move(deliveries);
        return copy;
      } else {
        return NoPlaceForDeliveries(TypeName<State>());
      }
    } else {
      return NotCopyable(TypeName<State>());
    }
  }

  State state_{};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TYPED_EVENT_SOURCED_H_
