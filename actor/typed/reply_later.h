// ReplyTo, Deferred, Forwarded: a handler whose message declares a Reply, and that does not return
// it.
//
//   class Kitchen : public Actor<Kitchen, Order, Cooked, Bill> {
//    public:
//     explicit Kitchen(RefOf<Till> till) : till_(till) {}
//
//     Deferred<Meal> On(Context& context, const Order&) {           // replies later
//       const ReplyTo<Meal> reply_to(context);
//       waiting_.push_back(reply_to);
//       return reply_to;
//     }
//     void On(Context&, const Cooked& cooked) {
//       for (const ReplyTo<Meal>& reply_to : std::exchange(waiting_, {})) reply_to.Reply(Meal{cooked.name});
//     }
//     Forwarded<Sum> On(Context& context, const Bill& bill) { return context.Forward(till_, bill); }  // till_ replies
//
//    private:
//     const RefOf<Till> till_;
//     std::vector<ReplyTo<Meal>> waiting_;
//   };
//
// A handler that returns void, absl::Status or a Task<> for a message with a Reply does not compile
// (HandlerReturnsNoReply). One that stashes the message, or fails, returns a Deferred too:
//
//   Deferred<Meal> On(Context& context, const Order&) { return Stash(context); }
//   Deferred<Meal> On(Context&, const Order&) { return absl::InternalError("the oven is broken"); }
//
// A Forwarded<R> is the result of Forward only: the recipient must owe an R, so the message that is
// forwarded must declare it. An untyped recipient (ActorRef) is not checked.
//
// Thread safety: values. A ReplyTo is made in a turn of the actor; any thread may reply by it.
#ifndef FRAKTOR_ACTOR_TYPED_REPLY_LATER_H_
#define FRAKTOR_ACTOR_TYPED_REPLY_LATER_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0 {

// The asker of a message, which waits for an R. The first reply counts; later ones become dead
// letters. If the actor ends or restarts without a reply, the asker waits until its timeout.
//
// Thread safety: a value. Any thread may reply.
template <class R>
class ReplyTo {
 public:
  // Has no asker: replies are dropped.
  ReplyTo() = default;
  // The sender of the current message. Call it in a handler.
  explicit ReplyTo(ActorContext& context) : to_(context.sender()) {}

  // The reply is dropped if the message was told from outside of actors, as the result of a handler
  // is.
  void Reply(R reply) const {
    if (!to_.IsNoOne()) Tell(to_, std::move(reply));
  }
  // An error becomes an ErrorReply, or a dead letter if there is no asker.
  void Reply(absl::StatusOr<R> reply) const {
    if (reply.ok()) return Reply(*std::move(reply));
    Fail(reply.status());
  }
  void Fail(absl::Status error) const { Tell(to_, ErrorReply{std::move(error)}); }

  ActorRef asker() const { return to_; }

 private:
  ActorRef to_;
};

template <class... Ms>
class TypedContext;

// The result of Forward: the recipient replies with an R, or with any type if R is void.
template <class R>
class Forwarded {
 public:
  template <class Any>
  requires(std::is_void_v<Any> && !std::is_void_v<R>) Forwarded(Forwarded<Any>) {
  }  // NOLINT(google-explicit-constructor): an untyped recipient may reply with an R.

 private:
  template <class... Ms>
  friend class TypedContext;
  Forwarded() = default;
};

// The result of Forward to a typed recipient, for a message that declares no Reply. It is no
// Forwarded<R>, because an asker would wait until its timeout. If the recipient replies all the
// same, forward to `recipient.untyped()`.
template <class Message>
class TheRecipientOwesNoReply {};

// The result of a handler that does not reply itself: the reply comes later, from another actor, or
// not at all because the handler fails. It is made of a ReplyTo, of the result of Forward, or of a
// status.
template <class R>
class Deferred {
 public:
  Deferred(const ReplyTo<R>&) {}    // NOLINT(google-explicit-constructor): `return reply_to;`
  Deferred(const Forwarded<R>&) {}  // NOLINT(google-explicit-constructor): `return context.Forward(...);`
  template <class Any>
  requires(std::is_void_v<Any> && !std::is_void_v<R>) Deferred(const Forwarded<Any>&) {
  }  // NOLINT(google-explicit-constructor): an untyped recipient may reply with an R.
  // OK: somebody replies later. An error is a failure of the actor, which the asker gets too.
  Deferred(absl::Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor): see the top

  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_REPLY_LATER_H_
