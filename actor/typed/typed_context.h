// TypedContext<M...>: what a typed actor sees of the runtime. A handler gets it as `Context&`.
//
//   void On(Context& context, const Greet& greet) {
//     context.Tell(log_, Line{"Hello, " + greet.name});       // log_ is a TypedRef: it must take a Line
//     auto child = context.Spawn<Greeter>("helper");          // TypedRef<Greet>
//     context.Watch(child).IgnoreError();
//   }
//
// Thread safety: the turns of the actor, as for ActorContext.
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_CONTEXT_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_CONTEXT_H_

#include <memory>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_source.h"
#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/typed/internal/handler_checks.h"
#include "fraktor/actor/typed/internal/handler_dispatch.h"
#include "fraktor/actor/typed/internal/member_reply.h"
#include "fraktor/actor/typed/internal/message_adapter.h"
#include "fraktor/actor/typed/internal/typed_instance_base.h"
#include "fraktor/actor/typed/reply_later.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {

namespace typed_internal {

template <class B, class C>
class BehaviorOf;

}  // namespace typed_internal

template <class... Ms>
class TypedContext : public ActorContext {
 public:
  static TypedContext& Of(ActorContext& context) { return static_cast<TypedContext&>(context); }

  TypedRef<Ms...> self() const { return TypedRef<Ms...>::Unchecked(ActorContext::self()); }

  using ActorContext::Tell;
  template <class... Os, class M>
  [[gnu::always_inline]] void Tell(TypedRef<Os...> to, M&& message) {
    TypedRef<Os...>::template Check<M>();
    if constexpr (TypedRef<Os...>::template Handles<M>()) ActorContext::Tell(to.untyped(), std::forward<M>(message));
  }
  using ActorContext::TryTell;
  template <class... Os, class M>
  absl::Status TryTell(TypedRef<Os...> to, M&& message) {
    TypedRef<Os...>::template Check<M>();
    if constexpr (TypedRef<Os...>::template Handles<M>()) {
      return ActorContext::TryTell(to.untyped(), std::forward<M>(message));
    } else {
      return absl::OkStatus();
    }
  }

  using ActorContext::Ask;
  // The message declares its reply: `using Reply = ...`.
  template <int&... kDeduced, class... Os, class Q>
  Future<ReplyOf<Q>> Ask(TypedRef<Os...> to, Q&& message, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    actor_internal::CheckDeclaresReply<Q>();
    return ActorContext::Ask<ReplyOf<Q>>(to.untyped(), std::forward<Q>(message), timeout);
  }
  // The caller names the reply.
  template <class R, class... Os, class Q>
  Future<R> Ask(TypedRef<Os...> to, Q&& message, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    return ActorContext::Ask<R>(to.untyped(), std::forward<Q>(message), timeout);
  }

  // Both with a stop token: a request to stop makes the future Cancelled. See ActorContext::Ask.
  template <int&... kDeduced, class... Os, class Q>
  Future<ReplyOf<Q>> Ask(TypedRef<Os...> to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(message), timeout), std::move(stop));
  }
  template <class R, class... Os, class Q>
  Future<R> Ask(TypedRef<Os...> to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<Q>(message), timeout), std::move(stop));
  }

  // Asks without a coroutine, while the actor goes on with other messages. The reply, or the error
  // that Ask would give, is the argument of a member function of the actor, which returns void or
  // absl::Status as a handler does:
  //
  //   context.AskOnReply<&Shop::OnReserved>(stock, Reserve{1}, absl::Seconds(1));
  //   ...
  //   absl::Status OnReserved(Context& context, absl::StatusOr<Reserved> reserved) { ... }
  //
  // The call comes in a later turn, after a restart to the new object, and never if the actor has
  // ended. Returns an error if the message was not sent: then no call comes. The error is
  // FailedPrecondition if the actor is of another class, otherwise one that Ask gives at once.
  using ActorContext::AskOnReply;
  template <auto kFunction, class... Os, class Q>
  absl::Status AskOnReply(TypedRef<Os...> to, Q&& message, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    return AskOnReply<kFunction>(to.untyped(), std::forward<Q>(message), timeout);
  }
  template <auto kFunction, class Q>
  absl::Status AskOnReply(ActorRef to, Q&& message, absl::Duration timeout) {
    using Reply = typed_internal::MemberReply<kFunction>;
    static_assert(std::is_same_v<typename Reply::Function::Context, TypedContext>,
                  "the function for replies takes the context of another actor");
    if constexpr (requires { typename std::decay_t<Q>::Reply; }) {
      static_assert(std::is_same_v<typename Reply::R, ReplyOf<Q>>,
                    "the function for replies takes another type than the Reply that the message declares");
    }
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("AskOnReply");
    if (Reply::ActorOf(*this) == nullptr) return typed_internal::AskedByAnotherClass();
    actor_internal::ActorWorker& asking = worker();
    EnvelopePtr envelope(asking.Make(ActorRef(), std::forward<Q>(message)));
    auto* const completion = new Reply(envelope->type(), timeout);
    absl::Status sent = actor_internal::SendAsk(asking, to, std::move(envelope), *completion);
    if (!sent.ok()) completion->Abandon();
    return sent;
  }

  using ActorContext::Spawn;
  using ActorContext::TrySpawn;
  // Spawns a child A(args...). Without a name it gets one. Throws SpawnError: see
  // ActorContext::Spawn.
  template <class A, class... Args>
  RefOf<A> Spawn(std::string_view name = {}, Args&&... args) {
    return spawn_internal::OrThrow(TrySpawn<A>(name, std::forward<Args>(args)...));
  }
  template <class A, class... Args>
  RefOf<A> Spawn(std::string_view name, const SpawnOptions& options, Args&&... args) {
    return spawn_internal::OrThrow(TrySpawn<A>(name, options, std::forward<Args>(args)...));
  }
  // The same, but returns an error instead of throwing.
  template <class A, class... Args>
  absl::StatusOr<RefOf<A>> TrySpawn(std::string_view name = {}, Args&&... args);
  template <class A, class... Args>
  absl::StatusOr<RefOf<A>> TrySpawn(std::string_view name, const SpawnOptions& options, Args&&... args);
  // Spawns a child that `factory()` makes, again for each restart: for actors whose state cannot be
  // copied.
  //
  //   context.Spawn("alice", [] { return Account(std::make_unique<Ledger>()); });
  //
  // The factory runs in turns of the child, so its captures must be safe to use there. An exception
  // is a failure of the child, as an exception of a constructor is.
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> Spawn(std::string_view name, Factory factory) {
    return spawn_internal::OrThrow(TrySpawn(name, std::move(factory)));
  }
  template <int&... kDeduced, ActorFactory Factory>
  RefOf<MadeBy<Factory>> Spawn(std::string_view name, const SpawnOptions& options, Factory factory) {
    return spawn_internal::OrThrow(TrySpawn(name, options, std::move(factory)));
  }
  template <int&... kDeduced, ActorFactory Factory>
  absl::StatusOr<RefOf<MadeBy<Factory>>> TrySpawn(std::string_view name, Factory factory);
  template <int&... kDeduced, ActorFactory Factory>
  absl::StatusOr<RefOf<MadeBy<Factory>>> TrySpawn(std::string_view name, const SpawnOptions& options, Factory factory);

  using ActorContext::Stop;
  template <class... Os>
  void Stop(TypedRef<Os...> actor) {
    ActorContext::Stop(actor.untyped());
  }
  using ActorContext::Watch;
  template <class... Os>
  absl::Status Watch(TypedRef<Os...> actor) {
    return ActorContext::Watch(actor.untyped());
  }
  // The actor must handle the message.
  template <class M>
  absl::Status WatchWith(ActorRef actor, M&& message) {
    CheckOwn<M>();
    return ActorContext::WatchWith(actor, std::forward<M>(message));
  }
  template <class... Os, class M>
  absl::Status WatchWith(TypedRef<Os...> actor, M&& message) {
    return WatchWith(actor.untyped(), std::forward<M>(message));
  }
  using ActorContext::Unwatch;
  template <class... Os>
  void Unwatch(TypedRef<Os...> actor) {
    ActorContext::Unwatch(actor.untyped());
  }
  // As ActorContext::Forward. A handler may return the result: then the recipient replies. For a
  // typed recipient, that compiles only if the message declares the Reply that the handler owes.
  Forwarded<void> Forward(ActorRef to) {
    ActorContext::Forward(to);
    return Forwarded<void>();
  }
  template <class M>
  Forwarded<void> Forward(ActorRef to, M&& message) {
    ActorContext::Forward(to, std::forward<M>(message));
    return Forwarded<void>();
  }
  template <class... Os, class M>
  typed_internal::ForwardedFor<M> Forward(TypedRef<Os...> to, M&& message) {
    TypedRef<Os...>::template Check<M>();
    if constexpr (TypedRef<Os...>::template Handles<M>()) {
      ActorContext::Forward(to.untyped(), std::forward<M>(message));
    }
    return typed_internal::ForwardedFor<M>();
  }

  // Lets this actor receive messages of type F, which it does not handle. `adapt(F)` returns a
  // message that it handles, which is handled at once, with the same sender. Returns the reference
  // to which others send an F. It is that of the actor itself, so an F keeps its order among all
  // other messages, and the mailbox counts it once.
  //
  //   const TypedRef<Quote> quotes =
  //       context.Adapt<Quote>([](const Quote& quote) { return PriceChanged{quote.cents}; });
  //   context.Tell(exchange, SubscribeTo{"ACME", quotes});
  //
  // Each type has one function: a later one replaces it. `adapt` runs in the turns of the actor,
  // and an exception is a failure of the actor. A restart forgets the functions, so call Adapt in
  // PreStart. An F that arrives before Adapt is unhandled.
  template <class F, class Function>
  TypedRef<F> Adapt(Function adapt);

  // Does not compile unless this actor handles M. For code that makes the actor send messages to
  // itself, such as timers.
  template <class M>
  static constexpr void CheckOwn() {
    if constexpr (!typed_internal::kIsRuntimeMessage<M>) TypedRef<Ms...>::template Check<M>();
  }

  // From the next message on, a B(args...) handles the messages of this actor. B has an `On` for
  // each of them. Meanwhile the actor keeps its hooks, and handles only those messages of the
  // runtime (Terminated, ReceiveTimeout, ActorIdentity, ErrorReply) for which B has no `On`. A B
  // that needs the actor takes a reference to it. Become replaces the behaviour on top of the
  // stack, BecomeStacked puts one above it, and Unbecome removes it. A restart clears the stack. A
  // replaced B lives until the last handler and the last task (context.Run) that it began have
  // ended. So its coroutines may use its members after Become and Unbecome, and their results are
  // still the replies.
  template <class B, class... Args>
  void Become(Args&&... args) {
    if (CheckTurn("Become").ok()) Instance().Replace(MakeBehavior<B>(std::forward<Args>(args)...));
  }
  // ResourceExhausted above BehaviorStack::kMaxStacked (1000): then nothing changes.
  template <class B, class... Args>
  absl::Status BecomeStacked(Args&&... args) {
    if (absl::Status misuse = CheckTurn("BecomeStacked"); !misuse.ok()) return misuse;
    return Instance().Push(MakeBehavior<B>(std::forward<Args>(args)...));
  }
  // False if the stack was empty.
  bool Unbecome() { return CheckTurn("Unbecome").ok() && Instance().Pop(); }

 private:
  typed_internal::TypedInstanceBase& Instance();
  template <class B, class... Args>
  std::unique_ptr<typed_internal::TypedBehavior> MakeBehavior(Args&&... args);
};

namespace typed_internal {

template <class B, class... Ms>
class BehaviorOf<B, TypedContext<Ms...>> final : public TypedBehavior {
 public:
  template <class... Args>
  explicit BehaviorOf(Args&&... args) : object_{std::forward<Args>(args)...} {}

  bool Receive(ActorContext& context, Envelope& message, absl::Status& status) override {
    return ReceiveBy<B, TypedContext<Ms...>, Ms...>(object_, context, message, status);
  }

 private:
  B object_;
};

}  // namespace typed_internal

template <class... Ms>
template <class F, class Function>
TypedRef<F> TypedContext<Ms...>::Adapt(Function adapt) {
  static_assert(!typed_internal::kIsOneOf<F, Ms...> && !typed_internal::kIsRuntimeMessage<F>,
                "the actor handles this message itself; an adapter would never be called");
  static_assert(std::is_invocable_v<Function&, F&&>, "the function for Adapt<F> takes an F");
  CheckOwn<std::invoke_result_t<Function&, F&&>>();
  static_cast<void>(here("Adapt"));
  Instance().Add(std::make_unique<typed_internal::FunctionAdapter<F, Function>>(std::move(adapt)));
  return TypedRef<F>::Unchecked(ActorContext::self());
}

template <class... Ms>
typed_internal::TypedInstanceBase& TypedContext<Ms...>::Instance() {
  return static_cast<typed_internal::TypedInstanceBase&>(*slot().instance);
}

template <class... Ms>
template <class B, class... Args>
std::unique_ptr<typed_internal::TypedBehavior> TypedContext<Ms...>::MakeBehavior(Args&&... args) {
  // The check is here so that the error says where Become was called.
  static_assert((typed_internal::CheckHandles<B, TypedContext, Ms>() && ...));
  return std::make_unique<typed_internal::BehaviorOf<B, TypedContext>>(std::forward<Args>(args)...);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_CONTEXT_H_
