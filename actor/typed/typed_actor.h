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
// `On` may return:
//   void             nothing.
//   absl::Status     an error is a failure of the actor, and its supervisor decides. An exception is a
//                    failure too. The default strategy escalates one that is no std::exception, and at
//                    /user that ends the system. An asker receives the error as well, unless
//                    PreRestart or PostStop replies.
//   R                the reply to the sender.
//   StatusOr<R>      the reply, or an error as the reply (ErrorReply). StatusOr<Done> if success has no
//                    further content: `FRAKTOR_RETURN_IF_ERROR(Save(order)); return Done{};`. Do not
//                    write `return Save(order);` there: if Save returns OK, the constructor of
//                    absl::StatusOr ends the process, and no supervisor can help. A coroutine
//                    (Task<R>) turns that mistake into an Internal error as the reply.
//   Task<>, Task<R>  the same from a coroutine, which may wait: `auto asking = context.Ask(stock,
//                    Reserve{1}, timeout); auto reserved = co_await asking;`. The actor handles no
//                    other message until the coroutine ends. The message lives as long as the
//                    coroutine, so `const M&` is as safe as `M`. A Task<> has no result: a coroutine
//                    that may fail is a Task<absl::Status>, and ends with `co_return status;`.
//   InterleavingTask<R>   a coroutine during whose waits the actor handles other messages. A
//                    PoisonPill is one of them: it ends the actor, and cancels the coroutine.
//   Deferred<R>      the reply comes later: a ReplyTo<R> has kept the asker, or the message is
//                    stashed. An error in it is a failure of the actor (reply_later.h).
//   Forwarded<R>     another actor replies: the result of context.Forward. The forwarded message must
//                    declare the same Reply, unless the recipient is an untyped ActorRef.
// If the message declares its Reply, R must be that type, and void, absl::Status and Task<> do not
// compile: a handler that replies by context.Reply, or that stashes the message, returns a
// Deferred<R>. A sender outside of actors that tells has not asked: its R is dropped, while an
// error as the reply becomes a dead letter, because nobody would notice the error otherwise. An
// actor that tells receives the reply as a message.
//
// The class may also have, with the same results, handlers for Terminated, ReceiveTimeout,
// ActorIdentity and ErrorReply, and the hooks
//   PreStart(Context&), PostStop(Context&),
//   PreRestart(Context&, const absl::Status& reason, Envelope* message),
//   PostRestart(Context&, const absl::Status& reason), OnChildFailure(const Failure&), and
//   `static const SupervisorStrategy& Supervision()`.
// PreStart, PreRestart and PostRestart return void or absl::Status, PostStop void, OnChildFailure a
// SupervisionDirective. A missing hook has its default (actor_instance.h). A hook of the class
// replaces the default. The default PreRestart stops all children and calls PostStop: a PreRestart
// that only adds something ends with `UsualPreRestart(context);`. Without that call the children
// live on, are restarted too, and keep their names.
//
// These mistakes do not compile, and the error names the actor, the mistake and what to write
// instead: a message of the list without an `On` (ActorDoesNotHandle), a message that the reference
// does not take (ThisReferenceDoesNotTake), a reply that is not the Reply of its message
// (HandlerReturnsAnotherReply), a handler that returns no reply although its message declares one
// (HandlerReturnsNoReply), a message without a Reply that is forwarded to let another actor reply
// (TheRecipientOwesNoReply), a hook with another signature (HookHasAnotherSignature).
//
// Thread safety: the functions and hooks of an actor run in its turns, one after the other and on
// changing threads, so its members need no locks. A Context is valid in these turns only; other
// threads send messages to the Ref.
//
// Further headers: spawn_options.h (mailbox, dispatcher and supervision of an actor),
// typed_context.h (everything that a handler may do; Become, Adapt), typed_props.h (recipes).
#ifndef FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_
#define FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_

#include "fraktor/actor/typed/interleaving_task.h"
#include "fraktor/actor/typed/internal/handler_checks.h"
#include "fraktor/actor/typed/reply_later.h"
#include "fraktor/actor/typed/spawn_options.h"
#include "fraktor/actor/typed/typed_context.h"
#include "fraktor/actor/typed/typed_props.h"
#include "fraktor/actor/typed/typed_ref.h"

namespace fraktor::inline v0 {

// The base class of typed actors: see the top.
template <class Self, class... Ms>
class Actor {
 public:
  using Context = TypedContext<Ms...>;
  using Ref = TypedRef<Ms...>;

 protected:
  // The default PreRestart: stops all children, and calls PostStop.
  void UsualPreRestart(Context& context) {
    context.StopChildren();
    if constexpr (requires(Self & self) { self.PostStop(context); }) static_cast<Self&>(*this).PostStop(context);
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_TYPED_ACTOR_H_
