// Actor<Self, M...>: an actor with one function for each message.
//
//   struct Greeted { std::string text; };
//   struct Greet { using Reply = Greeted; std::string name; };
//
//   class Greeter : public Actor<Greeter, Greet> {
//    public:
//     Greeted On(Context& context, const Greet& greet) { return {"Hello, " + greet.name}; }   // the answer
//   };
//
// What `On` may return:
//   void             nothing more.
//   absl::Status     an error is a failure of the actor, and goes to its supervisor. So is whatever it throws; what is no
//                    std::exception is escalated by the usual strategy, and at /user ends the system. Who has asked
//                    gets the error too, unless PreRestart or PostStop answers.
//   R                an answer to the sender.
//   StatusOr<R>      an answer, or an error as the answer (ErrorReply). StatusOr<Done>, if there is nothing else to say.
//   Task<>, Task<R>  the same by a coroutine, which may wait: `auto asking = context.Ask(stock, Reserve{1}, timeout);
//                    auto reserved = co_await asking;`. The actor takes no other message until it is done. The message
//                    is kept meanwhile, so `const M&` is as good as `M`.
//   InterleavingTask<R>   a coroutine that lets other messages in while it waits. A PoisonPill is
//                    one of them: it ends the actor, and cancels the coroutine.
//   Deferred<R>      the reply comes later: a ReplyTo<R> has kept the asker, or the message is
//                    stashed. An error in it is a failure of the actor (reply_later.h).
//   Forwarded<R>     another actor replies: what context.Forward returns.
// If the message declares its Reply, R is that, and void, absl::Status and Task<> do not compile: a
// handler that replies by context.Reply, or that stashes the message, returns a Deferred<R>. A
// thread that tells from outside has not asked: an R goes nowhere then, while an error as the reply
// is a dead letter, since nobody would hear of it otherwise. An actor that tells gets the reply as
// a message.
//
// It may also have, with the same returns, handlers for Terminated and ReceiveTimeout, and the hooks
//   PreStart(Context&), PostStop(Context&), PreRestart(Context&, const absl::Status& reason, Envelope* message),
//   PostRestart(Context&, const absl::Status& reason), OnChildFailure(const Failure&), and
//   `static const SupervisorStrategy& Supervision()`.
// PreStart, PreRestart and PostRestart return void or absl::Status, PostStop void, OnChildFailure a SupervisionDirective.
// A hook that is missing does what is usual (actor_instance.h). A hook of the class replaces that. The usual PreRestart
// stops all children and calls PostStop: a PreRestart that only adds something ends with `UsualPreRestart(context);`.
// Without that call the children live on, are restarted too, and keep their names.
//
// What does not compile, with an error that names the actor and the matter: a message that is promised in the list and
// has no `On` (ActorDoesNotHandle), one that is sent to a reference that does not take it (ThisReferenceDoesNotTake), a
// reply that is not the Reply of its message (HandlerReturnsAnotherReply), a handler that returns no reply although its
// message declares one (HandlerReturnsNoReply), a hook that cannot be called like that (HookHasAnotherSignature).
//
// Mailbox, dispatcher and supervision of an actor: see SpawnOptions. Become: see Context::Become. Messages of other
// actors' protocols: see Context::Adapt.
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/pooled_memory.h"
#include "fraktor/actor/scheduler/dispatcher_choice.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/actor/turn/ask_source.h"
#include "fraktor/actor/turn/awaiting_handler.h"
#include "fraktor/actor/turn/behavior_stack.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/actor/turn/spawn_error.h"
#include "fraktor/actor/typed/reply_later.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {

// The future of a handler that lets other messages in while it waits.
template <class T = void>
class InterleavingTask : public Task<T> {
 public:
  using promise_type = typename Task<T>::promise_type;
  InterleavingTask(Task<T>&& task)
      : Task<T>(std::move(task)) {}  // NOLINT(google-explicit-constructor): what the
                                     // compiler makes of the promise.
};

// These have no definition: they are there to be named in the error of a program that does not compile, see the top. The
// hook is named as it should be: `hook::PreStart(TypedContext<Greet>&)`.
template <class Actor, class Message, class Reply, class Returned>
struct HandlerReturnsAnotherReply;
// The handler returns void, absl::Status or a Task<>, so that an asker would wait until its
// timeout. Return the Reply, or say who replies: Deferred<Reply> or Forwarded<Reply>
// (reply_later.h).
template <class Actor, class Message, class Reply>
struct HandlerReturnsNoReply;
template <class Actor, class Hook>
struct HookHasAnotherSignature;
namespace hook {
struct PreStart;
struct PostStop;
struct PreRestart;
struct PostRestart;
struct OnChildFailure;
struct Supervision;
}  // namespace hook

template <class... Ms>
class TypedContext;
namespace typed_internal {
class TypedBehavior;
class TypedInstanceBase;
}  // namespace typed_internal

// See the top.
template <class Self, class... Ms>
class Actor {
 public:
  using Context = TypedContext<Ms...>;
  using Ref = TypedRef<Ms...>;

 protected:
  // For a PreRestart of the class: stops all children, and calls PostStop.
  void UsualPreRestart(Context& context) {
    context.StopChildren();
    if constexpr (requires(Self & self) { self.PostStop(context); }) static_cast<Self&>(*this).PostStop(context);
  }
};

// The reference to an actor of type A: TypedRef<Greet> for a Greeter.
template <class A>
using RefOf = typename A::Ref;

namespace typed_internal {

template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;
template <class T>
inline constexpr bool kIsTask<InterleavingTask<T>> = true;
template <class T>
inline constexpr AwaitMode kAwaitMode = AwaitMode::kExclusive;
template <class T>
inline constexpr AwaitMode kAwaitMode<InterleavingTask<T>> = AwaitMode::kInterleaving;
template <class T>
struct TaskValue;
template <class T>
struct TaskValue<Task<T>> {
  using Type = T;
};
template <class T>
struct TaskValue<InterleavingTask<T>> {
  using Type = T;
};
// What says that the reply comes from elsewhere.
template <class T>
inline constexpr bool kIsDeferred = false;
template <class R>
inline constexpr bool kIsDeferred<Deferred<R>> = true;
template <class T>
inline constexpr bool kIsForwarded = false;
template <class R>
inline constexpr bool kIsForwarded<Forwarded<R>> = true;
template <class T>
inline constexpr bool kIsStatusOr = false;
template <class T>
inline constexpr bool kIsStatusOr<absl::StatusOr<T>> = true;

template <class A, class C, class M>
concept Handles = requires(A& actor, C& context, M& message) {
  actor.On(context, std::move(message));
}
|| requires(A& actor, C& context, M& message) { actor.On(context, message); };

// What becomes an M and nothing else: an int would also become the double of another handler.
template <class M>
struct Exactly {
  template <std::same_as<M> T>
  operator T() const;  // NOLINT(google-explicit-constructor): that is what it is for.
};
template <class M>
struct ExactlyInPlace {
  template <std::same_as<M> T>
  operator T&() const;  // NOLINT(google-explicit-constructor)
};
template <class A, class C, class M>
concept HandlesItself =
    !(std::is_arithmetic_v<M> || std::is_enum_v<M>) || requires(A & actor, C& context, Exactly<M> message) {
  actor.On(context, message);
}
|| requires(A& actor, C& context, ExactlyInPlace<M> message) { actor.On(context, message); };

// Calls the handler of M. `const M&` and `M&` get the message where it is, `M` and `M&&` a moved one.
template <class A, class C, class M>
[[gnu::always_inline]] inline decltype(auto) CallHandler(A& actor, C& context, M& message) {
  if constexpr (requires { actor.On(context, std::move(message)); }) {
    return actor.On(context, std::move(message));
  } else {
    return actor.On(context, message);
  }
}
template <class A, class C, class M>
using HandlerResult = decltype(CallHandler(std::declval<A&>(), std::declval<C&>(), std::declval<M&>()));

// The message that a handler answers with which returns R; void for none.
template <class R>
struct AnswerIn {
  using Type = FutureValue<R>;
};
template <class T>
struct AnswerIn<Task<T>> : AnswerIn<T> {};
template <class T>
struct AnswerIn<InterleavingTask<T>> : AnswerIn<T> {};
template <class T>
struct AnswerIn<absl::StatusOr<T>> : AnswerIn<T> {};
template <class R>
struct AnswerIn<Deferred<R>> {
  using Type = R;
};
template <class R>
struct AnswerIn<Forwarded<R>> {
  using Type = R;
};

// Whether a handler that returns R can neither reply nor say who does.
template <class R>
inline constexpr bool kReturnsNoReply = std::is_void_v<R> || std::is_same_v<R, absl::Status>;
template <class T>
inline constexpr bool kReturnsNoReply<Task<T>> = kReturnsNoReply<T>;
template <class T>
inline constexpr bool kReturnsNoReply<InterleavingTask<T>> = kReturnsNoReply<T>;

// Without names of its own in a function: a program's may be the same, and its compiler would warn.
template <class A, class Reply>
inline constexpr bool kIsAnswer = std::is_void_v<A> || std::is_same_v<A, Reply> || std::is_same_v<A, ErrorReply>;
template <class R, class Reply>
inline constexpr bool kMayAnswer = kIsAnswer<typename AnswerIn<std::decay_t<R>>::Type, Reply>;

// What a handler has come to: an answer, an error for the sender, or an error of the actor.
template <class R>
absl::Status Answer(ActorContext& context, R&& result) {
  using Result = std::decay_t<R>;
  if constexpr (std::is_same_v<Result, absl::Status>) {
    return std::forward<R>(result);
  } else if constexpr (kIsStatusOr<Result>) {
    if (!result.ok()) {
      context.Reply(ErrorReply{result.status()});
      return absl::OkStatus();
    }
    return Answer(context, *std::forward<R>(result));
  } else if constexpr (kIsDeferred<Result>) {
    return result.status();
  } else if constexpr (kIsForwarded<Result>) {
    return absl::OkStatus();
  } else {
    const ActorRef asker = context.sender();
    if (std::is_same_v<Result, ErrorReply> || !asker.IsNoOne()) context.Tell(asker, std::forward<R>(result));
    return absl::OkStatus();
  }
}

// A handler that is a coroutine.
template <class T>
class TypedTaskHandler final : public AwaitingHandler {
 public:
  explicit TypedTaskHandler(Task<T> task) : running_(std::move(task), static_cast<TaskDriver&>(*this)) {}

  bool Step() override { return running_.Resume(); }
  absl::Status Finish(ActorContext& context) override {
    if (std::exception_ptr thrown = running_.exception()) std::rethrow_exception(thrown);
    return Answer(context, running_.TakeResult());
  }

 private:
  RunningTask<T> running_;
};

// Calls the handler of M, and does with its result what is to be done.
template <class C, class A, class M>
absl::Status Dispatch(A& actor, ActorContext& context, Envelope& envelope) {
  C& typed = C::Of(context);
  M& message = envelope.As<M>();
  using R = HandlerResult<A, C, M>;
  if constexpr (std::is_void_v<R>) {
    CallHandler(actor, typed, message);
    return absl::OkStatus();
  } else if constexpr (kIsTask<R>) {
    using T = typename TaskValue<R>::Type;
    return RunHandler(context, std::make_unique<TypedTaskHandler<T>>(CallHandler(actor, typed, message)),
                      kAwaitMode<R>);
  } else {
    return Answer(context, CallHandler(actor, typed, message));
  }
}

// Makes one of the actor's own messages of a message that it does not handle.
class MessageAdapter {
 public:
  explicit MessageAdapter(const MessageType* type) : from(type) {}
  virtual ~MessageAdapter() = default;
  // `message` is a `from`, which ends after the call. Throws what the program's function throws.
  virtual EnvelopePtr Adapt(ActorRef sender, Envelope& message) = 0;

  const MessageType* const from;
};

template <class F, class Function>
class FunctionAdapter final : public MessageAdapter {
 public:
  explicit FunctionAdapter(Function function) : MessageAdapter(MessageTypeOf<F>()), function_(std::move(function)) {}

  EnvelopePtr Adapt(ActorRef sender, Envelope& message) override {
    using M = std::decay_t<std::invoke_result_t<Function&, F&&>>;
    return MakeEnvelope<M>(sender, function_(std::move(message.As<F>())));
  }

 private:
  Function function_;
};

// An object that handles messages in place of the actor.
class TypedBehavior : public HandlerOwner {
 public:
  // False if it has no handler for the message.
  virtual bool Receive(ActorContext& context, Envelope& message, absl::Status& status) = 0;
};

template <class A, class C, class M>
bool TryOne(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  if (!message.Is<M>()) return false;
  status = Dispatch<C, A, M>(actor, context, message);
  return true;
}

// The messages of the runtime that a class may handle.
template <class A, class C>
[[gnu::noinline]] bool TryRuntimeMessages(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  if constexpr (Handles<A, C, Terminated>) {
    if (TryOne<A, C, Terminated>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ReceiveTimeout>) {
    if (TryOne<A, C, ReceiveTimeout>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ActorIdentity>) {
    if (TryOne<A, C, ActorIdentity>(actor, context, message, status)) return true;
  }
  if constexpr (Handles<A, C, ErrorReply>) {
    if (TryOne<A, C, ErrorReply>(actor, context, message, status)) return true;
  }
  return false;
}

// Each promised message has a handler, which answers as the message says, or the program does not compile.
template <class A, class C, class M>
constexpr bool CheckHandles() {
  if constexpr (!Handles<A, C, M> || !HandlesItself<A, C, M>) {
    return sizeof(ActorDoesNotHandle<A, M>) > 0;
  } else if constexpr (requires { typename M::Reply; }) {
    using Reply = typename AnswerOf<typename M::Reply>::Type;
    using Returned = HandlerResult<A, C, M>;
    if constexpr (!std::is_same_v<Reply, typename M::Reply>) {
      return CheckReply<M>();
    } else if constexpr (kReturnsNoReply<std::decay_t<Returned>>) {
      return sizeof(HandlerReturnsNoReply<A, M, Reply>) > 0;
    } else if constexpr (!kMayAnswer<Returned, Reply>) {
      return sizeof(HandlerReturnsAnotherReply<A, M, Reply, Returned>) > 0;
    } else {
      return true;
    }
  } else {
    return true;
  }
}
// A message of the runtime may have none; but not one that forgets the context, and would never be called.
template <class A, class C, class M>
constexpr bool CheckRuntimeMessage() {
  if constexpr (!Handles<A, C, M> && requires(A & actor, M & message) { actor.On(message); }) {
    return sizeof(ActorDoesNotHandle<A, M>) > 0;
  } else {
    return true;
  }
}

// Whether a class has a member of a name, whatever it is: then the name is ambiguous in a class that has another one by
// a second base. Of a final class only what has one address is seen.
#define FRAKTOR_HAS_MEMBER(Name)                  \
  struct Other##Name {                            \
    int Name;                                     \
  };                                              \
  template <class A>                              \
  struct Both##Name : A, Other##Name {};          \
  template <class A>                              \
  constexpr bool Has##Name() {                    \
    if constexpr (std::is_final_v<A>) {           \
      return requires { &A::Name; };              \
    } else {                                      \
      return !requires { &Both##Name<A>::Name; }; \
    }                                             \
  }
FRAKTOR_HAS_MEMBER(PreStart)
FRAKTOR_HAS_MEMBER(PostStop)
FRAKTOR_HAS_MEMBER(PreRestart)
FRAKTOR_HAS_MEMBER(PostRestart)
FRAKTOR_HAS_MEMBER(OnChildFailure)
FRAKTOR_HAS_MEMBER(Supervision)
#undef FRAKTOR_HAS_MEMBER

template <class R>
concept VoidOrStatus = std::is_void_v<R> || std::is_same_v<std::remove_cvref_t<R>, absl::Status>;

// Hooks that can be called.
template <class A, class C>
concept CanPreStart = requires(A& a, C& c) {
  { a.PreStart(c) } -> VoidOrStatus;
};
template <class A, class C>
concept CanPostStop = requires(A& a, C& c) {
  { a.PostStop(c) } -> std::same_as<void>;
};
template <class A, class C>
concept CanPreRestart = requires(A& a, C& c, const absl::Status& reason, Envelope* message) {
  { a.PreRestart(c, reason, message) } -> VoidOrStatus;
};
template <class A, class C>
concept CanPostRestart = requires(A& a, C& c, const absl::Status& reason) {
  { a.PostRestart(c, reason) } -> VoidOrStatus;
};
template <class A>
concept CanDecideOnFailure = requires(A& a, const Failure& failure) {
  { a.OnChildFailure(failure) } -> std::same_as<SupervisionDirective>;
};
template <class A>
concept HasStrategy = requires {
  { &A::Supervision() } -> std::convertible_to<const SupervisorStrategy*>;
};

template <class A, class Hook, bool kHas, bool kCan>
constexpr bool CheckHook() {
  if constexpr (kHas && !kCan) {
    return sizeof(HookHasAnotherSignature<A, Hook>) > 0;
  } else {
    return true;
  }
}
// A hook that cannot be called would be as good as none, so the program does not compile.
template <class A, class C>
constexpr bool CheckHooks() {
  return CheckHook<A, hook::PreStart(C&), HasPreStart<A>(), CanPreStart<A, C>>() &&
         CheckHook<A, hook::PostStop(C&), HasPostStop<A>(), CanPostStop<A, C>>() &&
         CheckHook<A, hook::PreRestart(C&, const absl::Status&, Envelope*), HasPreRestart<A>(),
                   CanPreRestart<A, C>>() &&
         CheckHook<A, hook::PostRestart(C&, const absl::Status&), HasPostRestart<A>(), CanPostRestart<A, C>>() &&
         CheckHook<A, hook::OnChildFailure(const Failure&), HasOnChildFailure<A>(), CanDecideOnFailure<A>>() &&
         CheckHook<A, hook::Supervision(), HasSupervision<A>(), HasStrategy<A>>();
}

// What an actor may handle beside what it promises.
template <class M>
inline constexpr bool kIsRuntimeMessage =
    kIsOneOf<std::decay_t<M>, Terminated, ReceiveTimeout, ActorIdentity, ErrorReply>;

template <class A, class C, class... Ms>
[[gnu::always_inline]] inline bool ReceiveBy(A& actor, ActorContext& context, Envelope& message, absl::Status& status) {
  static_assert((CheckHandles<A, C, Ms>() && ...));
  static_assert(CheckRuntimeMessage<A, C, Terminated>() && CheckRuntimeMessage<A, C, ReceiveTimeout>() &&
                CheckRuntimeMessage<A, C, ActorIdentity>() && CheckRuntimeMessage<A, C, ErrorReply>());
  return (TryOne<A, C, Ms>(actor, context, message, status) || ...) ||
         TryRuntimeMessages<A, C>(actor, context, message, status);
}

template <class B, class C>
class BehaviorOf;

// What M declares as its Reply; void if it declares none.
template <class M>
struct DeclaredReplyOf {
  using Type = void;
};
template <class M>
requires requires { typename M::Reply; }
struct DeclaredReplyOf<M> {
  using Type = typename M::Reply;
};
template <class M>
using DeclaredReply = typename DeclaredReplyOf<std::decay_t<M>>::Type;

// Names a class by its address.
template <class A>
inline constexpr char kClassTag = 0;
absl::Status AskedByAnotherClass();

// A member function that takes answers.
template <class F>
struct ReplyFunction;
template <class Returned, class A, class C, class Answer>
struct ReplyFunction<Returned (A::*)(C&, Answer)> {
  using Actor = A;
  using Context = C;
  using Result = Returned;
  using Value = FutureValue<std::remove_cvref_t<Answer>>;
  static_assert(std::is_same_v<std::remove_cvref_t<Answer>, absl::StatusOr<Value>> && !std::is_void_v<Value>,
                "a function for answers takes the context and an absl::StatusOr of the answer");
  static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, absl::Status>,
                "a function for answers returns void or absl::Status");
};

// Hands the answer to a member function of whatever object is the actor then.
template <auto kFunction>
class MemberReply final : public AskCompletion {
 public:
  using Function = ReplyFunction<decltype(kFunction)>;
  using A = typename Function::Actor;
  using R = typename Function::Value;
  using AskCompletion::AskCompletion;

  static void* operator new(size_t size) { return AllocatePooled(size); }
  static void operator delete(void* memory, size_t size) noexcept { FreePooled(memory, size); }

  static A* ActorOf(ActorContext& context) { return static_cast<A*>(context.slot().instance->ObjectOf(&kClassTag<A>)); }

  void Answer(Envelope& answer) noexcept override { Call(ReadAnswer<R>(question, answer), &answer); }
  void Fail(absl::Status error) noexcept override { Call(std::move(error), nullptr); }
  void Abandon() noexcept override { delete this; }

 private:
  ~MemberReply() = default;

  void Call(absl::StatusOr<R> result, Envelope* answer) noexcept {
    const MessageType* const asked = question;
    delete this;
    CallForReply(asked, answer, [&]() -> absl::Status {
      using C = typename Function::Context;
      C& context = C::Of(ActorContext::Of(*ActorContext::worker().turn.running()));
      A* const actor = ActorOf(context);
      // It could not be made again, and is about to be tried once more or to end.
      if (actor == nullptr) return absl::OkStatus();
      if constexpr (std::is_void_v<typename Function::Result>) {
        (actor->*kFunction)(context, std::move(result));
        return absl::OkStatus();
      } else {
        return (actor->*kFunction)(context, std::move(result));
      }
    });
  }
};

}  // namespace typed_internal

// How an actor is spawned, if not as usual: between its name and its arguments.
//
//   auto sink = context.Spawn<Sink>("sink", {.dispatcher = DispatcherChoice::kPinned, .mailbox = {.capacity = 9}});
struct SpawnOptions {
  // Where it runs: a DispatcherChoice, or the name of a pool of ActorSystemOptions::dispatchers
  // (dispatchers.h). Its children run on the default pool, unless their own options say otherwise.
  DispatcherSelector dispatcher = {};
  MailboxOptions mailbox = {};
  // How it supervises its children, instead of what its class says in Supervision(). The recipe of the actor keeps a
  // copy.
  std::optional<SupervisorStrategy> supervision = std::nullopt;
};

// What a typed actor sees of the runtime.
template <class... Ms>
class TypedContext : public ActorContext {
 public:
  static TypedContext& Of(ActorContext& context) { return static_cast<TypedContext&>(context); }

  TypedRef<Ms...> self() const { return TypedRef<Ms...>::Unchecked(ActorContext::self()); }

  using ActorContext::Tell;
  template <class... Os, class M>
  void Tell(TypedRef<Os...> to, M&& message) {
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
  // The question says what its answer is: `using Reply = ...`.
  template <int&... kDeduced, class... Os, class Q>
  Future<ReplyOf<Q>> Ask(TypedRef<Os...> to, Q&& question, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    CheckDeclaresReply<Q>();
    return ActorContext::Ask<ReplyOf<Q>>(to.untyped(), std::forward<Q>(question), timeout);
  }
  // Or the caller does.
  template <class R, class... Os, class Q>
  Future<R> Ask(TypedRef<Os...> to, Q&& question, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    return ActorContext::Ask<R>(to.untyped(), std::forward<Q>(question), timeout);
  }

  // Both, and the future is Cancelled as soon as a stop is requested: see ActorContext::Ask.
  template <int&... kDeduced, class... Os, class Q>
  Future<ReplyOf<Q>> Ask(TypedRef<Os...> to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(question), timeout), std::move(stop));
  }
  template <class R, class... Os, class Q>
  Future<R> Ask(TypedRef<Os...> to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<Q>(question), timeout), std::move(stop));
  }

  // The same for an actor that goes on with other messages meanwhile, and without a coroutine: the answer, or the error
  // that Ask would give, comes to a member function of the actor, which returns void or absl::Status as a handler does:
  //
  //   context.AskOnReply<&Shop::OnReserved>(stock, Reserve{1}, absl::Seconds(1));
  //   ...
  //   absl::Status OnReserved(Context& context, absl::StatusOr<Reserved> reserved) { ... }
  //
  // After a restart it is a function of the new object. It comes in a later turn, and never if the actor has ended.
  // An error if the question was not asked: then nothing comes. FailedPrecondition if the actor is of another class,
  // otherwise what Ask gives at once.
  using ActorContext::AskOnReply;
  template <auto kFunction, class... Os, class Q>
  absl::Status AskOnReply(TypedRef<Os...> to, Q&& question, absl::Duration timeout) {
    TypedRef<Os...>::template Check<Q>();
    return AskOnReply<kFunction>(to.untyped(), std::forward<Q>(question), timeout);
  }
  template <auto kFunction, class Q>
  absl::Status AskOnReply(ActorRef to, Q&& question, absl::Duration timeout) {
    using Reply = typed_internal::MemberReply<kFunction>;
    static_assert(std::is_same_v<typename Reply::Function::Context, TypedContext>,
                  "the function for answers takes the context of another actor");
    if constexpr (requires { typename std::decay_t<Q>::Reply; }) {
      static_assert(std::is_same_v<typename Reply::R, ReplyOf<Q>>,
                    "the function for answers takes another one than the question says that it has");
    }
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("AskOnReply");
    if (Reply::ActorOf(*this) == nullptr) return typed_internal::AskedByAnotherClass();
    ActorWorker& asking = worker();
    EnvelopePtr message(asking.Make(ActorRef(), std::forward<Q>(question)));
    auto* const completion = new Reply(message->type(), timeout);
    absl::Status sent = SendQuestion(asking, to, std::move(message), *completion);
    if (!sent.ok()) completion->Abandon();
    return sent;
  }

  using ActorContext::Spawn;
  using ActorContext::TrySpawn;
  // A child of type A, made of `args`; without a name it gets one. Throws SpawnError: see ActorContext::Spawn.
  template <class A, class... Args>
  RefOf<A> Spawn(std::string_view name = {}, Args&&... args) {
    return spawn_internal::OrThrow(TrySpawn<A>(name, std::forward<Args>(args)...));
  }
  template <class A, class... Args>
  RefOf<A> Spawn(std::string_view name, const SpawnOptions& options, Args&&... args) {
    return spawn_internal::OrThrow(TrySpawn<A>(name, options, std::forward<Args>(args)...));
  }
  // The same without throwing.
  template <class A, class... Args>
  absl::StatusOr<RefOf<A>> TrySpawn(std::string_view name = {}, Args&&... args);
  template <class A, class... Args>
  absl::StatusOr<RefOf<A>> TrySpawn(std::string_view name, const SpawnOptions& options, Args&&... args);
  // A child that `factory()` makes, again for each restart: for actors whose state cannot be copied.
  //
  //   context.Spawn("alice", [] { return Account(std::make_unique<Ledger>()); });
  //
  // It is called in turns of the child, so what it captures must be safe to use there. What it throws is a failure of
  // the child, as what a constructor throws.
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
  // With a message that this actor handles.
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
  // As ActorContext::Forward. A handler may return what it returns: the recipient replies.
  Forwarded<void> Forward(ActorRef to) {
    ActorContext::Forward(to);
    return {};
  }
  template <class M>
  Forwarded<void> Forward(ActorRef to, M&& message) {
    ActorContext::Forward(to, std::forward<M>(message));
    return {};
  }
  template <class... Os, class M>
  Forwarded<typed_internal::DeclaredReply<M>> Forward(TypedRef<Os...> to, M&& message) {
    TypedRef<Os...>::template Check<M>();
    if constexpr (TypedRef<Os...>::template Handles<M>()) {
      ActorContext::Forward(to.untyped(), std::forward<M>(message));
    }
    return {};
  }

  // Lets this actor take messages of type F, which it does not handle: `adapt(F)` makes one of its own messages of each,
  // which is handled at once, with the same sender. Returns the reference under which others may send an F: the actor's
  // own. So the messages keep their order among all others, and the mailbox counts each once.
  //
  //   const TypedRef<Quote> quotes = context.Adapt<Quote>([](const Quote& quote) { return PriceChanged{quote.cents}; });
  //   context.Tell(exchange, SubscribeTo{"ACME", quotes});
  //
  // One function for each type: a later one takes its place. `adapt` runs in the actor's turns, and what it throws is a
  // failure of the actor. A restart forgets the functions, so PreStart is a good place for them; an F that comes before
  // is not handled.
  template <class F, class Function>
  TypedRef<F> Adapt(Function adapt);

  // Does not compile unless this actor handles M: for what sends it a message of its own, as timers do.
  template <class M>
  static constexpr void CheckOwn() {
    if constexpr (!typed_internal::kIsRuntimeMessage<M>) TypedRef<Ms...>::template Check<M>();
  }

  // From the next message on, a B(args...) handles the messages of this actor, with `On`s of its own for all of them;
  // the actor itself handles none meanwhile, but keeps its hooks. A B that needs the actor takes a reference to it.
  // Become replaces what is on top; BecomeStacked puts it above, and Unbecome goes back. A restart forgets all.
  // A B that was replaced lives until the last handler and the last task (context.Run) that it began have ended. So its
  // coroutines may use its members after Become and Unbecome; what they return is still the reply.
  template <class B, class... Args>
  void Become(Args&&... args) {
    if (CheckTurn("Become").ok()) Instance().Replace(MakeBehavior<B>(std::forward<Args>(args)...));
  }
  // ResourceExhausted beyond BehaviorStack::kMaxStacked (1000): then nothing changes.
  template <class B, class... Args>
  absl::Status BecomeStacked(Args&&... args) {
    if (absl::Status misuse = CheckTurn("BecomeStacked"); !misuse.ok()) return misuse;
    return Instance().Push(MakeBehavior<B>(std::forward<Args>(args)...));
  }
  // False if there was nothing to go back from.
  bool Unbecome() { return CheckTurn("Unbecome").ok() && Instance().Pop(); }

 private:
  typed_internal::TypedInstanceBase& Instance();
  template <class B, class... Args>
  std::unique_ptr<typed_internal::TypedBehavior> MakeBehavior(Args&&... args);
};

namespace typed_internal {

// The argument of an actor that a function of the program makes.
template <class Factory>
struct ByFactory {
  Factory factory;
};

// The instance that runs an actor of type A: the bridge from the untyped world.
class TypedInstanceBase : public ActorInstance {
 public:
  TypedInstanceBase() = default;
  TypedInstanceBase(const TypedInstanceBase&) = delete;
  TypedInstanceBase& operator=(const TypedInstanceBase&) = delete;
  ~TypedInstanceBase() override = default;

  void Replace(std::unique_ptr<TypedBehavior> behavior);
  absl::Status Push(std::unique_ptr<TypedBehavior> behavior);
  bool Pop() { return behaviors_ != nullptr && behaviors_->Pop(); }
  void Add(std::unique_ptr<MessageAdapter> adapter);

 protected:
  // For a message that the actor does not handle: adapts it and handles the result, or it is unhandled.
  [[gnu::noinline, gnu::cold]] absl::Status ReceiveOther(ActorContext& context, Envelope& message);
  // Before the actor itself ends: behaviours refer to it.
  void EndBehaviors() { behaviors_.reset(); }
  // The behaviour that handles messages in place of the actor, or null.
  TypedBehavior* behavior() const {
    return behaviors_ == nullptr ? nullptr : static_cast<TypedBehavior*>(behaviors_->top());
  }

 private:
  // Null until the first Become: few actors have behaviours.
  std::unique_ptr<BehaviorStack> behaviors_;
  // Null until the first Adapt.
  std::unique_ptr<std::vector<std::shared_ptr<MessageAdapter>>> adapters_;
};

template <class A, class C, class... Ms>
class TypedInstance : public TypedInstanceBase {
  static_assert(CheckHooks<A, C>());

 public:
  template <class... Args>
  explicit TypedInstance(const Args&... args) : actor_(args...) {}
  template <class Factory>
  explicit TypedInstance(const ByFactory<Factory>& by) : actor_(by.factory()) {}
  ~TypedInstance() override { EndBehaviors(); }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    absl::Status status;
    if (TypedBehavior* const replacing = behavior()) [[unlikely]]
      return ReceiveByBehavior(*replacing, context, message);
    if (ReceiveBy<A, C, Ms...>(actor_, context, message, status)) [[likely]]
      return status;
    return ReceiveOther(context, message);
  }

  absl::Status PreStart(ActorContext& context) override {
    if constexpr (CanPreStart<A, C>) {
      return CallHook([&] { return actor_.PreStart(C::Of(context)); });
    } else {
      return absl::OkStatus();
    }
  }
  void PostStop(ActorContext& context) override {
    if constexpr (CanPostStop<A, C>) actor_.PostStop(C::Of(context));
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    if constexpr (CanPreRestart<A, C>) {
      return CallHook([&] { return actor_.PreRestart(C::Of(context), reason, message); });
    } else {
      return ActorInstance::PreRestart(context, reason, message);
    }
  }
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) override {
    if constexpr (CanPostRestart<A, C>) {
      return CallHook([&] { return actor_.PostRestart(C::Of(context), reason); });
    } else {
      return ActorInstance::PostRestart(context, reason);
    }
  }
  const SupervisorStrategy& supervision() const override {
    if constexpr (HasStrategy<A>) {
      return A::Supervision();
    } else {
      return ActorInstance::supervision();
    }
  }
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override {
    if constexpr (CanDecideOnFailure<A>) {
      return actor_.OnChildFailure(failure);
    } else {
      return ActorInstance::OnChildFailure(context, failure);
    }
  }

  void* ObjectOf(const void* type) override { return type == &kClassTag<A> ? &actor_ : nullptr; }

  static constexpr bool kHasStart = CanPreStart<A, C>;

 private:
  template <class Hook>
  static absl::Status CallHook(Hook hook) {
    if constexpr (std::is_void_v<decltype(hook())>) {
      hook();
      return absl::OkStatus();
    } else {
      return hook();
    }
  }

  [[gnu::noinline]] absl::Status ReceiveByBehavior(TypedBehavior& top, ActorContext& context, Envelope& message) {
    absl::Status status;
    {
      const OwnerScope scope(top);
      if (top.Receive(context, message, status)) return status;
    }
    return TryRuntimeMessages<A, C>(actor_, context, message, status) ? status : ReceiveOther(context, message);
  }

  A actor_;
};

template <class A, class R>
struct InstanceFor;
template <class A, class... Ms>
struct InstanceFor<A, TypedRef<Ms...>> {
  using Type = TypedInstance<A, TypedContext<Ms...>, Ms...>;
};
template <class A>
using InstanceOf = typename InstanceFor<A, RefOf<A>>::Type;

// One that was spawned with a supervision of its own.
template <class A>
class SupervisingInstance final : public InstanceOf<A> {
 public:
  template <class... Args>
  explicit SupervisingInstance(const SupervisorStrategy& strategy, const Args&... args)
      : InstanceOf<A>(args...), strategy_(strategy) {}

  const SupervisorStrategy& supervision() const override { return strategy_; }

 private:
  // The recipe's, which lives as long as the actor.
  const SupervisorStrategy& strategy_;
};

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

// The recipe of a typed actor: as MakeProps (actor_props.h), for ActorContext::Spawn and routers.
template <class A, class... Args>
PropsPtr MakeTypedProps(const PropsOptions& options, Args&&... args) {
  return MakePropsFor<A, typed_internal::InstanceOf<A>>(options, std::forward<Args>(args)...);
}
// The one without arguments.
template <class A>
const ActorProps& TypedPropsOf() {
  static const ActorProps& props = *MakeTypedProps<A>(PropsOptions()).release();
  return props;
}

namespace typed_internal {

template <class A, class... Args>
PropsPtr MakePropsWith(const SpawnOptions& options, Args&&... args) {
  const PropsOptions usual{.dispatcher = options.dispatcher, .mailbox = options.mailbox};
  if (!options.supervision.has_value()) return MakeTypedProps<A>(usual, std::forward<Args>(args)...);
  return MakePropsFor<A, SupervisingInstance<A>>(usual, *options.supervision, std::forward<Args>(args)...);
}

template <class... Args>
inline constexpr bool kBeginsWithOptions = false;
template <class First, class... Rest>
inline constexpr bool kBeginsWithOptions<First, Rest...> = std::is_same_v<std::decay_t<First>, SpawnOptions>;

// Whether an A can be made of copies of the arguments, without the options if they begin with them.
template <class A, class... Args>
inline constexpr bool kCanBeMadeOf = std::is_constructible_v<A, const std::decay_t<Args>&...>;
template <class A, class First, class... Rest>
requires(kBeginsWithOptions<First, Rest...>) inline constexpr bool kCanBeMadeOf<A, First, Rest...> =
    kCanBeMadeOf<A, Rest...>;

template <class A, class Factory>
inline constexpr bool kCanBeMadeOf<A, ByFactory<Factory>> = true;

template <class A, class... Args>
constexpr void CheckArguments() {
  static_assert(kCanBeMadeOf<A, Args...>,
                "the actor has no public constructor for these arguments; they are kept, and copied for each start and "
                "restart, so it is called with const references to what they are by value");
}

// The recipe for an A(args...), without the options if `args` begin with them.
template <class A, class... Args>
PropsPtr MakePropsOf(Args&&... args) {
  CheckArguments<A, Args...>();
  if constexpr (kBeginsWithOptions<Args...>) {
    return MakePropsWith<A>(std::forward<Args>(args)...);
  } else {
    return MakeTypedProps<A>(PropsOptions(), std::forward<Args>(args)...);
  }
}

// Calls `spawn` with that recipe.
template <class A, class Spawn, class... Args>
absl::StatusOr<RefOf<A>> SpawnBy(Spawn spawn, Args&&... args) {
  CheckArguments<A, Args...>();
  absl::StatusOr<ActorRef> ref = [&] {
    if constexpr (sizeof...(Args) == 0) {
      return spawn(TypedPropsOf<A>());
    } else {
      return spawn(*MakePropsOf<A>(std::forward<Args>(args)...));
    }
  }();
  if (!ref.ok()) return ref.status();
  return RefOf<A>::Unchecked(*ref);
}

}  // namespace typed_internal

template <class... Ms>
template <class A, class... Args>
absl::StatusOr<RefOf<A>> TypedContext<Ms...>::TrySpawn(std::string_view name, Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return ActorContext::TrySpawn(props, name); },
                                    std::forward<Args>(args)...);
}
template <class... Ms>
template <class A, class... Args>
absl::StatusOr<RefOf<A>> TypedContext<Ms...>::TrySpawn(std::string_view name, const SpawnOptions& options,
                                                       Args&&... args) {
  return typed_internal::SpawnBy<A>([&](const ActorProps& props) { return ActorContext::TrySpawn(props, name); },
                                    options, std::forward<Args>(args)...);
}

template <class... Ms>
template <int&... kDeduced, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TypedContext<Ms...>::TrySpawn(std::string_view name, Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, typed_internal::ByFactory<Factory>{std::move(factory)});
}
template <class... Ms>
template <int&... kDeduced, ActorFactory Factory>
absl::StatusOr<RefOf<MadeBy<Factory>>> TypedContext<Ms...>::TrySpawn(std::string_view name, const SpawnOptions& options,
                                                                     Factory factory) {
  return TrySpawn<MadeBy<Factory>>(name, options, typed_internal::ByFactory<Factory>{std::move(factory)});
}

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
  // Here, so that the error says where Become was called.
  static_assert((typed_internal::CheckHandles<B, TypedContext, Ms>() && ...));
  return std::make_unique<typed_internal::BehaviorOf<B, TypedContext>>(std::forward<Args>(args)...);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_
