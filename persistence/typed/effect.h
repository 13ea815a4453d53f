// Effect: what a command of an event-sourced or durable actor leads to: what is stored, and what happens then.
//
//   return Persist(Deposited{10}).ThenReply([](const State& state) { return Balance{state.balance}; });
//   return Persist(Closed{}).ThenRun([this] { ++closings_; }).ThenStop();
//   return Reply(Balance{state.balance});                     // nothing is stored
//
// A Handle that returns a ReplyEffect<Balance> rather than an Effect (or auto, if it has one return) answers each command
// with a Balance, or an ErrorReply, or leaves it (Stash, Unhandled): another answer, or none, does not compile. Of one that
// returns an Effect the answer is looked at when it has run: one that is not the Reply of the command is an error for the
// sender, and nothing is stored.
//
// What comes then runs when all is stored and the state has changed, in the order in which it was said; it sees the new
// state, and its sender is that of the command. It does not run if nothing could be stored, and not in a recovery.
//
// An actor that is to end says so by ThenStop, which comes after the answer. A Handle that calls Stop() of its context and
// returns something to store is refused: nothing is stored, the sender gets an ErrorReply, and the actor ends.
//
// Thread safety: a value that a handler returns.
#ifndef FRAKTOR_PERSISTENCE_TYPED_EFFECT_H_
#define FRAKTOR_PERSISTENCE_TYPED_EFFECT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/message/type_name.h"
#include "fraktor/actor/typed/typed_actor.h"

namespace fraktor::inline v0 {

// The commands and the events of an actor.
template <class... Cs>
struct Commands {
  using Ref = TypedRef<Cs...>;
};
template <class... Es>
struct Events {};

// It has no definition: it is there to be named in the error of a program that does not compile. A Handle returns an
// Effect; what it has to wait for goes into ThenRun.
template <class Actor, class Command>
struct HandleIsACoroutine;
// The same: ThenReply answers with `Given`, and Handle returns a ReplyEffect<Declared>.
template <class Given, class Declared>
struct ThenReplyAnswersWithAnother;

template <class State, class R>
class ReplyEffect;

template <class State>
class [[nodiscard]] Effect {
 public:
  using SideEffect = absl::AnyInvocable<absl::Status(ActorContext& context, const State& state)>;

  // What the command leads to by itself.
  enum class Kind : uint8_t {
    kNothing,
    kPersist,
    kDelete,     // of durable states
    kUnhandled,  // the command is not meant for this actor, as it is now
    kStash,      // the command is put aside, until ThenUnstashAll
  };

  Effect() = default;
  explicit Effect(Kind kind) : kind_(kind) {}

  // `run` is called with (const State&), with (ActorContext&, const State&), or with nothing; returns void or a Status,
  // whose error is a failure of the actor.
  template <class Run>
  Effect ThenRun(Run run) && {
    side_effects_.push_back([run = std::move(run)](ActorContext& context, const State& state) mutable -> absl::Status {
      if constexpr (std::is_void_v<decltype(Call(run, context, state))>) {
        Call(run, context, state);
        return absl::OkStatus();
      } else {
        return Call(run, context, state);
      }
    });
    return std::move(*this);
  }

  // Answers the sender of the command. `make` is called as above, and returns the answer, a StatusOr of it, an ErrorReply,
  // or a Status, whose error is a failure of the actor.
  template <class Make>
  auto ThenReply(Make make) && {
    using Result = std::decay_t<decltype(Call(make, std::declval<ActorContext&>(), std::declval<const State&>()))>;
    using Answered = typename typed_internal::AnswerIn<Result>::Type;
    if constexpr (!std::is_void_v<Answered> && !std::is_same_v<Answered, ErrorReply>) {
      answer_ = MessageTypeOf<Answered>();
    }
    side_effects_.push_back(
        [make = std::move(make)](ActorContext& context, const State& state) mutable -> absl::Status {
          return typed_internal::Answer(context, Call(make, context, state));
        });
    return ReplyEffect<State, Answered>(std::move(*this));
  }

  // Ends the actor.
  Effect ThenStop() && {
    side_effects_.push_back([](ActorContext& context, const State&) {
      context.Stop();
      return absl::OkStatus();
    });
    return std::move(*this);
  }

  // Takes back what was put aside, before the commands that wait.
  Effect ThenUnstashAll() && {
    unstashes_ = true;
    return std::move(*this);
  }

  // For the actor that runs it. `unstash_all` is called if it is to take back what was put aside, whatever fails.
  Kind kind() const { return kind_; }
  // What it answers with, if it is known; null otherwise.
  const MessageType* answer() const { return answer_; }
  std::vector<EnvelopePtr>& envelopes() { return envelopes_; }
  template <class UnstashAll>
  absl::Status Run(ActorContext& context, const State& state, UnstashAll unstash_all) {
    absl::Status status;
    for (size_t i = 0; i < side_effects_.size() && status.ok(); ++i) status = side_effects_[i](context, state);
    if (unstashes_) unstash_all();
    return status;
  }

 private:
  template <class F>
  static decltype(auto) Call(F& f, ActorContext& context, const State& state) {
    if constexpr (std::is_invocable_v<F&, ActorContext&, const State&>) {
      return f(context, state);
    } else if constexpr (std::is_invocable_v<F&, const State&>) {
      return f(state);
    } else {
      return f();
    }
  }

  Kind kind_ = Kind::kNothing;
  bool unstashes_ = false;
  const MessageType* answer_ = nullptr;
  // Events, or the new state.
  std::vector<EnvelopePtr> envelopes_;
  std::vector<SideEffect> side_effects_;
};

// An effect without an answer, as the command is not handled, or not now.
template <class State>
class [[nodiscard]] NoReplyEffect : public Effect<State> {
 public:
  explicit NoReplyEffect(typename Effect<State>::Kind kind) : Effect<State>(kind) {}
};

// An effect that answers with an R, a StatusOr of it, or an ErrorReply.
template <class State, class R>
class [[nodiscard]] ReplyEffect : public Effect<State> {
 public:
  explicit ReplyEffect(Effect<State> effect) : Effect<State>(std::move(effect)) {}
  // NOLINTBEGIN(google-explicit-constructor): a Handle returns them in its place.
  ReplyEffect(NoReplyEffect<State> effect) : Effect<State>(std::move(effect)) {}
  template <class Other>
  requires(!std::is_same_v<Other, R> && !std::is_same_v<R, ErrorReply>) ReplyEffect(ReplyEffect<State, Other> effect)
      : Effect<State>(std::move(effect)) {
    if constexpr (!std::is_same_v<Other, ErrorReply>) {
      static_assert(sizeof(ThenReplyAnswersWithAnother<Other, R>) > 0);
    }
  }
  // NOLINTEND(google-explicit-constructor)

  template <class Run>
  ReplyEffect ThenRun(Run run) && {
    return ReplyEffect(static_cast<Effect<State>&&>(*this).ThenRun(std::move(run)));
  }
  ReplyEffect ThenStop() && { return ReplyEffect(static_cast<Effect<State>&&>(*this).ThenStop()); }
  ReplyEffect ThenUnstashAll() && { return ReplyEffect(static_cast<Effect<State>&&>(*this).ThenUnstashAll()); }
};

// What handlers of commands say. The base of the actors that have them.
template <class State>
class EffectWords {
 protected:
  using Effect = fraktor::Effect<State>;
  template <class R>
  using ReplyEffect = fraktor::ReplyEffect<State, R>;

  static Effect Nothing() { return Effect(); }
  template <class R>
  static auto Reply(R answer) {
    return Effect().ThenReply([answer = std::move(answer)]() mutable { return std::move(answer); });
  }
  static NoReplyEffect<State> Unhandled() { return NoReplyEffect<State>(Effect::Kind::kUnhandled); }
  static NoReplyEffect<State> Stash() { return NoReplyEffect<State>(Effect::Kind::kStash); }
  static Effect Stop() { return Effect().ThenStop(); }
};

namespace typed_internal {

// An actor that is an ActorInstance itself needs no bridge from the typed world.
template <class A, class... Ms>
requires std::is_base_of_v<ActorInstance, A>
struct InstanceFor<A, TypedRef<Ms...>> {
  using Type = A;
};

template <class T>
inline constexpr bool kIsEffect = false;
template <class State>
inline constexpr bool kIsEffect<Effect<State>> = true;
template <class State>
inline constexpr bool kIsEffect<NoReplyEffect<State>> = true;
template <class State, class R>
inline constexpr bool kIsEffect<ReplyEffect<State, R>> = true;

// What a handler that returns T answers with, as far as that shows.
template <class T>
struct EffectAnswer {
  using Type = T;
};
template <class State, class R>
struct EffectAnswer<ReplyEffect<State, R>> {
  using Type = R;
};
template <class T>
inline constexpr bool kHidesAnswer = false;
template <class State>
inline constexpr bool kHidesAnswer<Effect<State>> = true;
template <class State>
inline constexpr bool kHidesAnswer<NoReplyEffect<State>> = true;

// A handler of a command answers with the command's Reply, and at once. Its effects do when they have happened.
template <class Self, class C, class R>
constexpr bool CheckAnswer() {
  if constexpr (kIsTask<R>) {
    return sizeof(HandleIsACoroutine<Self, C>) > 0;
  } else if constexpr (!kHidesAnswer<R> && requires { typename C::Reply; }) {
    if constexpr (!kMayAnswer<typename EffectAnswer<R>::Type, typename C::Reply>) {
      return sizeof(HandlerReturnsAnotherReply<Self, C, typename C::Reply, typename EffectAnswer<R>::Type>) > 0;
    } else {
      return true;
    }
  } else {
    return true;
  }
}

// That the handler of a command has answered with something else than its Reply.
absl::Status AnswersOtherwise(std::string_view actor, std::string_view command, std::string_view reply,
                              std::string_view given);

// Whether the handler of a command, which is to be stored for, has stopped the actor: what is stored would be answered to
// nobody. Then it has logged that, and told the sender.
bool RefusesToStoreAndStop(ActorContext& context, std::string_view actor, const Envelope& command);

// Calls the handler of a command: Handle(const State&, const C&) or Handle(ActorContext&, const State&, const C&). What
// it returns becomes an effect: nothing, an answer, an answer or an error as the answer; a Status is the actor's.
template <class Self, class State, class C>
absl::Status HandleCommand(Self& self, ActorContext& context, const State& state, const C& command,
                           Effect<State>& effect) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (requires { self.Handle(context, state, command); }) {
      return self.Handle(context, state, command);
    } else if constexpr (requires { self.Handle(state, command); }) {
      return self.Handle(state, command);
    } else {
      static_assert(sizeof(ActorDoesNotHandle<Self, C>) > 0);
    }
  };
  using R = std::decay_t<decltype(call())>;
  static_assert(CheckAnswer<Self, C, R>());
  if constexpr (kIsEffect<R>) {
    effect = call();
    if constexpr (kHidesAnswer<R> && requires { typename C::Reply; }) {
      const MessageType* const answer = effect.answer();
      if (answer != nullptr && answer != MessageTypeOf<typename C::Reply>()) {
        effect = Effect<State>();
        return Answer(context, ErrorReply{AnswersOtherwise(TypeName<Self>(), TypeName<C>(),
                                                           TypeName<typename C::Reply>(), answer->name())});
      }
    }
    return absl::OkStatus();
  } else if constexpr (std::is_void_v<R>) {
    call();
    return absl::OkStatus();
  } else {
    return Answer(context, call());
  }
}

// Calls the handler of whichever of Cs the command is. False if it is none of them.
template <class Self, class State, class... Cs>
bool HandleAnyCommand(Self& self, ActorContext& context, const State& state, Envelope& command, Effect<State>& effect,
                      absl::Status& status) {
  const auto try_one = [&]<class C>(const C* typed) {
    if (typed == nullptr) return false;
    status = HandleCommand<Self, State, C>(self, context, state, *typed, effect);
    return true;
  };
  return (try_one(std::as_const(command).TryAs<Cs>()) || ...);
}

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TYPED_EFFECT_H_
