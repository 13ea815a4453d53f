// DurableActor: an actor whose state is stored as a whole whenever it changes. Simpler than events,
// where nobody asks what has happened.
//
//   struct CartState { std::vector<std::string> items; };
//
//   class Cart : public DurableActor<Cart, CartState, Commands<AddItem, GetItems>> {
//    public:
//     explicit Cart(std::string id) : id_(std::move(id)) {}
//     std::string PersistenceId() const override { return id_; }
//
//     ReplyEffect<Items> Handle(const CartState& state, const AddItem& command) {
//       CartState changed = state;
//       changed.items.push_back(command.item);
//       return Persist(std::move(changed)).ThenReply([](const CartState& now) { return Items{now.items}; });
//     }
//     Items Handle(const CartState& state, const GetItems&) { return {state.items}; }
//   };
//
//   auto cart = system.Spawn<Cart>("cart-7", "cart-7");             // TypedRef<AddItem, GetItems>
//
// Needs a StateExtension with a store, and a codec for State. Handle and effects are as in
// event_sourced.h.
//
// At its start the actor loads its state; commands wait meanwhile. While a change is being stored
// they wait too, so each sees all changes before it. The state changes when it is stored.
//
// Failures: the state cannot be loaded, a change cannot be stored or is not answered in
// time, or somebody else has changed it (JournalErrorKind::kSequenceMismatch): the actor logs,
// answers the command, and those that wait and were asked, with an ErrorReply, and stops. A state
// that is too large or has no codec is answered with an ErrorReply, and the actor goes on without
// the change.
//
// Two actors must not have the same id at the same time. If they have, the one that stores first
// wins, also if both come to the same state. With fencing tokens, which grains have, the actor with
// the higher token wins from the moment at which it loads: the changes of the other one are refused
// (JournalErrorKind::kFenced), and it stops.
//
// Thread safety: as any actor, in its turns.
#ifndef FRAKTOR_PERSISTENCE_DURABLE_DURABLE_ACTOR_H_
#define FRAKTOR_PERSISTENCE_DURABLE_DURABLE_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/persistence/actor/command_stash.h"
#include "fraktor/persistence/durable/state_messages.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/typed/effect.h"

namespace fraktor::inline v0 {

struct DurableActorOptions {
  // The number of commands that may wait; one more is a failure of the actor. If it is restarted or
  // stopped for that, those that wait are dead letters (stash_full), and their askers hear
  // ResourceExhausted.
  size_t stash_capacity = 100'000;
  // An answer of the store that does not come for so long is a failure.
  absl::Duration store_timeout = absl::Seconds(30);

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

// The part that does not depend on types.
class DurableStateActor : public ActorInstance {
 public:
  DurableStateActor();

  absl::Status Receive(ActorContext& context, Envelope& message) final;
  absl::Status PreStart(ActorContext& context) final;
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override;
  void PostStop(ActorContext& context) override;
  // While a change is being stored: the command that it is of is not done before that.
  bool TakesPoisonPill() const final { return is_loaded_ && is_busy_; }

 protected:
  // The name under which its state is stored: stable, not blank, and of no other actor.
  virtual std::string PersistenceId() const = 0;
  // Which store, of those that the extension has; empty for the first.
  virtual std::string_view StatePluginId() const { return {}; }
  virtual DurableActorOptions options() const { return {}; }
  // The fencing token, from the part of the program that decides who owns the id. It only grows.
  // 0: there is none. The usual one is that of the actor's context
  // (fraktor/actor/system/fencing_token.h), which a grain has.
  virtual uint64_t FencingToken() const { return fencing_token_; }
  // The state is loaded, or there is none; commands come next.
  virtual absl::Status OnRecovered(ActorContext& context);

  const std::string& persistence_id() const { return persistence_id_; }
  // The revision of the last change that is stored; 0 before the first.
  uint64_t revision() const { return revision_; }

  // Stores a state, or deletes it if there is none; `then` follows when that is done. One at a
  // time.
  void Change(ActorContext& context, EnvelopePtr state, absl::AnyInvocable<absl::Status(ActorContext&)> then);
  absl::Status StashCommand(ActorContext& context);
  void UnstashAll() { stash_.TakeBack(); }

 private:
  struct StoreTimeout {
    uint64_t number;
  };

  virtual absl::Status OnCommand(ActorContext& context, Envelope& command) = 0;
  virtual absl::Status TakeState(Envelope& state) = 0;

  absl::Status Handle(ActorContext& context, Envelope& message, bool has_waited);
  absl::Status OnLoaded(ActorContext& context, StateLoaded& loaded);
  absl::Status OnChanged(ActorContext& context, Envelope& message);
  absl::Status Wait(ActorContext& context, const Envelope& message);
  absl::Status GiveUp(ActorContext& context, const absl::Status& cause);
  // The change is not stored, and the actor goes on. Answers the command with an ErrorReply.
  void Refuse(ActorContext& context, ActorRef sender, const absl::Status& cause);
  void Expect(ActorContext& context);
  void NoLongerExpect(ActorContext& context);

  const uint64_t fencing_token_;
  std::string persistence_id_;
  ActorRef store_;
  size_t max_message_bytes_ = 0;
  uint64_t instance_id_ = 0;
  WriterId writer_;
  uint64_t token_ = kNoEpoch;
  uint64_t revision_ = 0;
  uint64_t waits_ = 0;
  bool is_loaded_ = false;
  bool is_busy_ = true;
  ActorRef sender_;  // The sender of the command whose change is being stored.
  absl::AnyInvocable<absl::Status(ActorContext&)> then_;
  CommandStash stash_;
};

template <class Self, class State, class CommandList>
class DurableActor;

template <class Self, class StateType, class... Cs>
class DurableActor<Self, StateType, Commands<Cs...>> : public DurableStateActor, protected EffectWords<StateType> {
 public:
  using State = StateType;
  using Effect = fraktor::Effect<State>;
  template <class R>
  using ReplyEffect = fraktor::ReplyEffect<State, R>;
  using Ref = TypedRef<Cs...>;
  using Context = ActorContext;

 protected:
  DurableActor() = default;
  // `initial` is the state as long as nothing is stored.
  explicit DurableActor(State initial) : state_(initial), initial_(std::make_unique<const State>(std::move(initial))) {}

  static Effect Persist(State state) {
    Effect effect(Effect::Kind::kPersist);
    effect.envelopes().push_back(MakeEnvelope<State>(ActorRef(), std::move(state)));
    return effect;
  }
  // The state is what it was before anything was stored.
  static Effect Delete() { return Effect(Effect::Kind::kDelete); }
  using EffectWords<State>::Nothing;
  using EffectWords<State>::Reply;
  using EffectWords<State>::Unhandled;
  using EffectWords<State>::Stash;
  using EffectWords<State>::Stop;

  const State& state() const { return state_; }

 private:
  absl::Status OnCommand(ActorContext& context, Envelope& command) final {
    Effect effect;
    absl::Status status;
    if (!typed_internal::HandleAnyCommand<Self, State, Cs...>(static_cast<Self&>(*this), context, state_, command,
                                                              effect, status)) {
      return context.Unhandled(command);
    }
    if (!status.ok()) return status;
    switch (effect.kind()) {
      case Effect::Kind::kUnhandled:
        return context.Unhandled(command);
      case Effect::Kind::kStash:
        return StashCommand(context);
      case Effect::Kind::kNothing:
        return Finish(context, effect);
      case Effect::Kind::kPersist:
      case Effect::Kind::kDelete:
        break;
    }
    if (typed_internal::RefusesToStoreAndStop(context, TypeName<Self>(), command)) return absl::OkStatus();
    // One copy for the store's bytes, one to become the state.
    EnvelopePtr changed = effect.envelopes().empty() ? nullptr : std::move(effect.envelopes().front());
    State next = changed == nullptr ? Initial() : State(changed->template As<State>());
    Change(context, std::move(changed),
           [this, next = std::move(next), effect = std::move(effect)](ActorContext& then_context) mutable {
             state_ = std::move(next);
             return Finish(then_context, effect);
           });
    return absl::OkStatus();
  }
  absl::Status TakeState(Envelope& state) final {
    if (!state.Is<State>()) {
      return absl::FailedPreconditionError("the stored state is of another type: register the type, or an alias of it");
    }
    state_ = state.Take<State>();
    return absl::OkStatus();
  }
  absl::Status Finish(ActorContext& context, Effect& effect) {
    return effect.Run(context, state_, [this] { UnstashAll(); });
  }

  State Initial() const {
    if constexpr (std::is_default_constructible_v<State>) {
      if (initial_ == nullptr) return State{};
    }
    return State(*initial_);
  }

  State state_{};
  // Null: State{}.
  std::unique_ptr<const State> initial_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_DURABLE_DURABLE_ACTOR_H_
