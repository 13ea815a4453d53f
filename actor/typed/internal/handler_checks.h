// Compile-time checks of a class of typed actors: its handlers, their results, and its hooks.
//
// A class that fails a check does not compile. The error names one of the undefined types below,
// with the class and the message or hook.
#ifndef FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_CHECKS_H_
#define FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_CHECKS_H_

#include <concepts>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/typed/interleaving_task.h"
#include "fraktor/actor/typed/reply_later.h"
#include "fraktor/actor/typed/typed_ref.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

// These types have no definition: the error of a program that does not compile names them, and the
// compiler shows the line of the declaration, which says what to do. A hook appears with the
// signature that it should have: `hook::PreStart(TypedContext<Greet>&)`.
template <class Actor, class Message, class Reply, class Returned>
struct HandlerReturnsAnotherReply;  // Return the Reply that the message declares, or change its `using Reply`.
// The handler returns void, absl::Status or a Task<>, so an asker would wait until its timeout.
template <class Actor, class Message, class Instead>
struct HandlerReturnsNoReply;  // Return one of the types that the error names: see reply_later.h.
namespace reply {
template <class... Types>
struct ReturnOneOf;
}  // namespace reply
template <class Actor, class Hook>
struct HookHasAnotherSignature;  // Give the hook the signature that the error names, and make it public.
namespace hook {
struct PreStart;
struct PostStop;
struct PreRestart;
struct PostRestart;
struct OnChildFailure;
struct Supervision;
}  // namespace hook

namespace typed_internal {

template <class T>
inline constexpr bool kIsTask = false;
template <class T>
inline constexpr bool kIsTask<Task<T>> = true;
template <class T>
inline constexpr bool kIsTask<InterleavingTask<T>> = true;
template <class T>
inline constexpr actor_internal::AwaitMode kAwaitMode = actor_internal::AwaitMode::kExclusive;
template <class T>
inline constexpr actor_internal::AwaitMode kAwaitMode<InterleavingTask<T>> = actor_internal::AwaitMode::kInterleaving;
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
// Whether the handler has arranged that the reply comes from elsewhere.
template <class T>
inline constexpr bool kIsDeferred = false;
template <class R>
inline constexpr bool kIsDeferred<Deferred<R>> = true;
// Whether the handler has forwarded a message.
template <class T>
inline constexpr bool kIsForwarded = false;
template <class R>
inline constexpr bool kIsForwarded<Forwarded<R>> = true;
template <class M>
inline constexpr bool kIsForwarded<TheRecipientOwesNoReply<M>> = true;
template <class T>
inline constexpr bool kIsStatusOr = false;
template <class T>
inline constexpr bool kIsStatusOr<absl::StatusOr<T>> = true;

template <class A, class C, class M>
concept Handles = requires(A& actor, C& context, M& message) {
  actor.On(context, std::move(message));
}
|| requires(A& actor, C& context, M& message) { actor.On(context, message); };

// Converts to an M and to nothing else: an int would also convert to the double of another handler.
template <class M>
struct Exactly {
  template <std::same_as<M> T>
  operator T() const;  // NOLINT(google-explicit-constructor): a handler call converts implicitly.
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

// Calls the handler of M. A handler with `const M&` or `M&` gets the message in place, one with `M`
// or `M&&` gets it by move.
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

// The type of the reply of a handler that returns R; void if it does not reply.
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
template <class M>
struct AnswerIn<TheRecipientOwesNoReply<M>> {
  using Type = void;
};

// Whether a handler that returns R neither replies nor arranges a reply.
template <class R>
inline constexpr bool kReturnsNoReply = std::is_void_v<R> || std::is_same_v<R, absl::Status>;
template <class M>
inline constexpr bool kReturnsNoReply<TheRecipientOwesNoReply<M>> = true;
template <class T>
inline constexpr bool kReturnsNoReply<Task<T>> = kReturnsNoReply<T>;
template <class T>
inline constexpr bool kReturnsNoReply<InterleavingTask<T>> = kReturnsNoReply<T>;

// Variable templates instead of a function: local names of a function could shadow names of the
// program, and its compiler would warn.
template <class A, class Reply>
inline constexpr bool kIsAnswer = std::is_void_v<A> || std::is_same_v<A, Reply> || std::is_same_v<A, ErrorReply>;
template <class R, class Reply>
inline constexpr bool kMayAnswer = kIsAnswer<typename AnswerIn<std::decay_t<R>>::Type, Reply>;

// Does not compile unless the class has a handler for M, which returns the Reply that M declares.
template <class A, class C, class M>
constexpr bool CheckHandles() {
  if constexpr (!Handles<A, C, M> || !HandlesItself<A, C, M>) {
    return sizeof(ActorDoesNotHandle<A, M, AddPublic<handler::On(C&, const M&)>>) > 0;
  } else if constexpr (requires { typename M::Reply; }) {
    using Reply = typename AnswerOf<typename M::Reply>::Type;
    using Returned = HandlerResult<A, C, M>;
    if constexpr (!std::is_same_v<Reply, typename M::Reply>) {
      return CheckReply<M>();
    } else if constexpr (kReturnsNoReply<std::decay_t<Returned>>) {
      return sizeof(HandlerReturnsNoReply<A, M, reply::ReturnOneOf<Reply, Deferred<Reply>, Forwarded<Reply>>>) > 0;
    } else if constexpr (!kMayAnswer<Returned, Reply>) {
      return sizeof(HandlerReturnsAnotherReply<A, M, Reply, Returned>) > 0;
    } else {
      return true;
    }
  } else {
    return true;
  }
}
// A class need not handle a message of the runtime. A handler without the context parameter does
// not compile, because it would never be called.
template <class A, class C, class M>
constexpr bool CheckRuntimeMessage() {
  if constexpr (!Handles<A, C, M> && requires(A & actor, M & message) { actor.On(message); }) {
    return sizeof(ActorDoesNotHandle<A, M, AddPublic<handler::On(C&, const M&)>>) > 0;
  } else {
    return true;
  }
}

// Defines Has<Name><A>(): whether A has a member of that name, function or not. If it has, the name
// is ambiguous in a class that derives from A and from a class with the same name. A final class
// cannot be a base: there, only a member that is not overloaded is found.
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

// Whether a hook can be called with the arguments that the runtime has.
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
// Does not compile if a hook cannot be called: the runtime would ignore it.
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

// The messages that an actor may handle without listing them.
template <class M>
inline constexpr bool kIsRuntimeMessage =
    kIsOneOf<std::decay_t<M>, Terminated, ReceiveTimeout, ActorIdentity, ErrorReply>;

// The result of Forward to an actor that handles M.
template <class M>
struct ForwardedOf {
  using Type = TheRecipientOwesNoReply<M>;
};
template <class M>
requires requires { typename M::Reply; }
struct ForwardedOf<M> {
  using Type = Forwarded<typename M::Reply>;
};
template <class M>
using ForwardedFor = typename ForwardedOf<std::decay_t<M>>::Type;

}  // namespace typed_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_INTERNAL_HANDLER_CHECKS_H_
