// TypedRef<M...>: a reference to an actor that handles these messages, and no others.
//
//   TypedRef<Add, Get> both = system.Spawn<Counter>("counter");
//   TypedRef<Add> adder = both;                        // narrowed; the other way round does not compile
//   adder.Tell(Add{1});                                // adder.Tell(Get{}): ThisReferenceDoesNotTake<Get, ...>
//
// It is an ActorRef with a type: 16 bytes, trivially copyable, and may outlive its actor. Every
// reference takes the messages of the runtime (PoisonPill, Kill, Identify).
//
// Thread safety: a value.
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_REF_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_REF_H_

#include <ostream>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/typed/done.h"

namespace fraktor::inline v0 {

// These types have no definition: the error of a program that does not compile names them, and the
// compiler shows the line of the declaration, which says what to do.
template <class Message, class Takes>
struct ThisReferenceDoesNotTake;  // Send one of the messages that ItTakes, or add this one to Actor<Self, ...>.
template <class... Messages>
struct ItTakes;
template <class Actor, class Message, class... Advice>
struct ActorDoesNotHandle;  // Add a public `On(Context&, const Message&)` to the actor.
template <class Handler>
struct AddPublic;
namespace handler {
struct On;
}  // namespace handler

// The same for a message whose `Reply` is a Status or a StatusOr: a reply is a message, and the
// result of an ask is a StatusOr of it anyway. Done (done.h) is the reply without content.
template <class Reply, class Message, class Instead>
struct ReplyMustNotBe;
namespace reply {
template <class Message>
struct Of;
template <class Reply>
struct DeclareInstead;
}  // namespace reply

template <class... Ms>
class TypedRef;

namespace typed_internal {

// The Reply that the message should declare instead.
template <class Reply>
struct AnswerOf {
  using Type = Reply;
};
template <>
struct AnswerOf<absl::Status> {
  using Type = Done;
};
template <>
struct AnswerOf<absl::StatusOr<absl::Status>> {
  using Type = Done;
};
template <class R>
struct AnswerOf<absl::StatusOr<R>> {
  using Type = R;
};

// Does not compile if M declares a Status or a StatusOr as its Reply.
template <class M>
constexpr bool CheckReply() {
  if constexpr (requires { typename M::Reply; }) {
    using Declared = typename M::Reply;
    using Instead = typename AnswerOf<Declared>::Type;
    if constexpr (!std::is_same_v<Declared, Instead>) {
      return sizeof(ReplyMustNotBe<Declared, reply::Of<M>, reply::DeclareInstead<Instead>>) > 0;
    }
  }
  return true;
}

template <class M, class... Ms>
inline constexpr bool kIsOneOf = (std::is_same_v<M, Ms> || ...);

template <class M>
inline constexpr bool kIsForAll = kIsInterceptedMessage<M>;

// Whether an actor that handles Wide handles all of Ms.
template <class Wide, class... Ms>
inline constexpr bool kHasAll = false;
template <class... Wide, class... Ms>
inline constexpr bool kHasAll<TypedRef<Wide...>, Ms...> = (kIsOneOf<Ms, Wide...> && ...);

}  // namespace typed_internal

template <class... Ms>
class TypedRef {
 public:
  // Refers to no one.
  constexpr TypedRef() = default;
  // For callers that know what the actor handles: after a mistake the message is unhandled.
  static constexpr TypedRef Unchecked(ActorRef ref) { return TypedRef(ref); }

  // Fewer messages, or the same in another order.
  template <class... Others>
  requires(
      sizeof...(Others) > 0 && typed_internal::kHasAll<TypedRef<Others...>, Ms...> &&
      !std::is_same_v<
          TypedRef<Others...>,
          TypedRef>) constexpr TypedRef(TypedRef<Others...>
                                            wider)  // NOLINT(google-explicit-constructor): narrowing is always safe.
      : ref_(wider.untyped()) {}

  template <class M>
  static constexpr bool Handles() {
    return typed_internal::kIsOneOf<std::decay_t<M>, Ms...> || typed_internal::kIsForAll<std::decay_t<M>>;
  }
  // Does not compile unless the actor handles M, and the Reply of M can be a message.
  template <class M>
  static constexpr void Check() {
    if constexpr (!Handles<M>()) {
      static_cast<void>(sizeof(ThisReferenceDoesNotTake<std::decay_t<M>, ItTakes<Ms...>>));
    } else {
      static_cast<void>(typed_internal::CheckReply<std::decay_t<M>>());
    }
  }

  // The sender is the actor whose turn calls this, or no one.
  template <class M>
  void Tell(M&& message) const {
    Check<M>();
    if constexpr (Handles<M>()) fraktor::Tell(ref_, std::forward<M>(message));
  }
  // ResourceExhausted if the mailbox is full and its overflow policy rejects messages; NotFound if
  // the actor has ended, or this refers to no one. See mailing.h for further errors.
  template <class M>
  absl::Status TryTell(M&& message) const {
    Check<M>();
    if constexpr (Handles<M>()) {
      return fraktor::TryTell(ref_, std::forward<M>(message));
    } else {
      return absl::OkStatus();
    }
  }

  constexpr ActorRef untyped() const { return ref_; }
  constexpr bool IsNoOne() const { return ref_.IsNoOne(); }

  // Prints the reference as an ActorRef.
  friend std::ostream& operator<<(std::ostream& out, TypedRef ref) { return out << ref.ref_; }
  template <class Sink>
  friend void AbslStringify(Sink& sink, TypedRef ref) {
    AbslStringify(sink, ref.ref_);
  }
  friend constexpr bool operator==(TypedRef a, TypedRef b) { return a.ref_ == b.ref_; }
  template <typename H>
  friend H AbslHashValue(H state, TypedRef ref) {
    return H::combine(std::move(state), ref.ref_);
  }

 private:
  constexpr explicit TypedRef(ActorRef ref) : ref_(ref) {}

  ActorRef ref_;
};

// The reference to an actor of class A: TypedRef<Greet> for a Greeter.
template <class A>
using RefOf = typename A::Ref;

static_assert(std::is_trivially_copyable_v<TypedRef<int>> && sizeof(TypedRef<int>) == 16);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_REF_H_
