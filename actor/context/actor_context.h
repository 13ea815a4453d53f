// ActorContext: what an actor can do while it handles a message: send, ask, reply, spawn, watch,
// stop. Typed actors get a TypedContext (actor/typed/typed_context.h), which derives from it.
//
//   absl::Status Receive(ActorContext& context, Envelope& message) override {
//     context.Tell(context.sender(), Pong{});
//     return absl::OkStatus();
//   }
//
// A context is part of the slot of its actor. It has no members, and finds its worker by the
// current thread. A reference to it stays valid while the actor lives, but only the actor's own
// turns may use it. Other threads, timers and callbacks send to context.self() instead.
//
// Without NDEBUG any other use ends the program with a text that names the call. With NDEBUG, calls
// that return a status or a future (Ask, AskOnReply, Spawn, Watch, WatchWith, Run, Delay) fail with
// FailedPrecondition and the same text. Functions that take a context (Timers, Stash,
// SetReceiveTimeout, Log), and Become, fail in the same way, or do nothing. Any other call is
// undefined behaviour then: a check in Tell would cost each message.
#ifndef FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_
#define FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_

#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_source.h"
#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/stoppable_task.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

class ActorContext;

namespace actor_internal {

// Runs a task as the handler that runs does: see awaiting_handler.h.
absl::Status RunTask(ActorContext& context, Task<void> task);

// The task that `make` returns. `make` lives as long as the coroutine.
template <class Make>
Task<void> RunKept(Make make) {
  Task<void> task = make();
  co_await task;
}

}  // namespace actor_internal

// The type that a message declares as its reply: Ask returns a Future<ReplyOf<Message>>.
using actor_internal::ReplyOf;

class ActorContext {
 public:
  ActorContext(const ActorContext&) = delete;
  ActorContext& operator=(const ActorContext&) = delete;

  // The context of an actor, and back. The slot is one of ProcessSlots.
  static ActorContext& Of(actor_internal::ActorSlot& slot);
  actor_internal::ActorSlot& slot();

  ActorRef self() const { return here("self").turn_state.self(); }
  // The sender of the current message. No one if a thread has sent it, or no message is being
  // handled.
  ActorRef sender() const {
    const Envelope* const current = here("sender").turn_state.current;
    return current == nullptr ? ActorRef() : current->sender();
  }

  // Sends a message. A message that cannot be delivered becomes a dead letter.
  template <class M>
  [[gnu::always_inline]] void Tell(ActorRef to, M&& message) {
    here("Tell").Tell(to, std::forward<M>(message));
  }

  // The same. ResourceExhausted if the target's mailbox is full and its overflow policy rejects the
  // message; NotFound if the target is no one or has ended. See mailing.h for further errors.
  template <class M>
  absl::Status TryTell(ActorRef to, M&& message) {
    return here("TryTell").TryTell(to, std::forward<M>(message));
  }

  // Sends a message whose sender is a reply promise, and returns the promise.
  // ActorInstance::OnReply gets the promise with the first message that is sent to it, or with an
  // error if none arrives in time. The actor handles other messages meanwhile. ResourceExhausted if
  // the process has no slot or no timer left.
  template <class M>
  absl::StatusOr<ActorRef> AskOnReply(ActorRef to, M&& message, absl::Duration timeout) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("AskOnReply");
    actor_internal::ActorWorker& asking = worker();
    // Makes the envelope first, since that may throw.
    EnvelopePtr envelope(asking.Make(ActorRef(), std::forward<M>(message)));
    FRAKTOR_ASSIGN_OR_RETURN(const ActorRef ask,
                             actor_internal::OpenPromise(asking, {.timeout = timeout, .target = to}));
    envelope->set_sender(ask);
    if constexpr (kIsInterceptedMessage<std::decay_t<M>>) {
      asking.SendIntercepted(to, envelope.release());
    } else {
      asking.Send(to, envelope.release());
    }
    return ask;
  }

  // Sends a message, and returns a future of the reply, which is an R. A future that is dropped or
  // cancelled before it is ready ends the ask: a later reply is a dead letter (late_reply).
  //
  //   auto asking = context.Ask<Sum>(adder, Add{1, 2}, absl::Seconds(1));
  //   absl::StatusOr<Sum> sum = co_await asking;
  //
  // Errors: DeadlineExceeded if no reply arrives in time or the target has ended; InvalidArgument
  // for a timeout that is not positive or a reply of another type; kAskCircle if the target waits
  // for this very handler; or the error that the target sent (ErrorReply). The runtime sends an
  // ErrorReply at once if the target's handler fails (with its error), if the target does not
  // handle the message (Unimplemented), or if its mailbox is full (ResourceExhausted). The same
  // holds for a target on another node. There the error is Unavailable, with the reason, if the
  // message cannot be delivered. An ask that was on its way when the link broke fails only by its
  // timeout.
  //
  // `explain(absl::Status)` rewords an error of the runtime, such as a timeout, but not the error
  // that the target sent. A layer between asker and target uses it to say what is missing. It costs
  // a reply nothing.
  template <class R, class M, class Explain = actor_internal::AsItIs>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    if (!IsInTurn()) [[unlikely]]
      return MakeReadyFuture<R>(OutOfTurn("Ask"));
    actor_internal::ActorWorker& asking = worker();
    EnvelopePtr envelope(asking.Make(ActorRef(), std::forward<M>(message)));
    auto* const source = new actor_internal::AskSource<R, actor_internal::AskedBy::kActor, Explain>(
        envelope->type(), timeout, asking.turn_state.running(), std::move(explain));
    Future<R> answer = Future<R>::FromSource(*source);
    if (absl::Status sent = actor_internal::SendAsk(asking, to, std::move(envelope), *source); !sent.ok()) [[unlikely]]
      source->Fail(std::move(sent));
    return answer;
  }
  // The same for a message that declares its reply type: `using Reply = ...`.
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& message, absl::Duration timeout) {
    actor_internal::CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to, std::forward<Q>(message), timeout);
  }

  // The same with a stop token: a requested stop cancels the future (utils/future/with_stop.h) and
  // ends the ask. Any thread may request the stop.
  template <class R, class M>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<M>(message), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(message), timeout), std::move(stop));
  }

  // Returns a future that is ready after `delay`.
  Future<void> Delay(absl::Duration delay);

  // Runs a coroutine in this actor's turns, between its messages. An error of the coroutine is a
  // failure of the actor. A lambda that is a coroutine uses its captures while it runs: pass the
  // lambda itself, and not the task that it returns.
  //
  //   context.Run([this, id]() -> Task<void> { ... }).IgnoreError();
  absl::Status Run(Task<void> task) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Run");
    return actor_internal::RunTask(*this, std::move(task));
  }
  // Calls `make`, which returns the coroutine. `make` lives until the coroutine has ended.
  template <class Make>
  requires std::is_invocable_r_v<Task<void>, Make&> absl::Status Run(Make make) {
    return Run(actor_internal::RunKept(std::move(make)));
  }
  // Both with a stop token: a request to stop ends the coroutine at its present co_await, in a turn
  // of the actor. That is no failure. Cancelled if the stop was requested before the call.
  absl::Status Run(Task<void> task, std::stop_token stop) {
    if (stop.stop_requested()) return absl::CancelledError("Run: a stop was requested before the task began");
    return Run(RunUntilStopped(std::move(task), std::move(stop)));
  }
  template <class Make>
  requires std::is_invocable_r_v<Task<void>, Make&> absl::Status Run(Make make, std::stop_token stop) {
    return Run(actor_internal::RunKept(std::move(make)), std::move(stop));
  }

  // Replies to the current message.
  template <class M>
  void Reply(M&& message) {
    Tell(sender(), std::forward<M>(message));
  }

  // Forwards the current message, as if its sender had sent it to `to`. Must be called in a
  // handler, which must not touch the message afterwards.
  void Forward(ActorRef to);
  // The same with another message, or with a copy.
  template <class M>
  void Forward(ActorRef to, M&& message) {
    actor_internal::ActorWorker& forwarding = here("Forward");
    Envelope* const current = forwarding.turn_state.current;
    // From now on another actor replies to it.
    if (current != nullptr) current->set_target_word(current->target_word() | kForwarded);
    forwarding.Send(to, forwarding.Make(sender(), std::forward<M>(message)));
  }

  // The actor does not handle the current message. The message is published as an UnhandledMessage,
  // and an asker gets Unimplemented. An unhandled Terminated is a failure of the actor: kDeathPact.
  absl::Status Unhandled(Envelope& message) { return here("Unhandled").lifecycle.OnUnhandled(*this, message); }

  // Spawns a child. An empty name means a generated one. Errors: ResourceExhausted if there is no
  // slot or thread left; InvalidArgument for bad options or a bad name (kInvalidName);
  // AlreadyExists if a child has the name (kNameTaken); FailedPrecondition if the actor is stopping
  // its children (kTerminating), from when it stops or restarts until PostStop has returned. A
  // constructor that throws is a failure of the child, not of this call.
  absl::StatusOr<ActorRef> TrySpawn(const ActorProps& props, std::string_view name = {}) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Spawn");
    return lifecycle().Spawn(*this, props, name);
  }
  // The same, but throws the error as a SpawnError.
  ActorRef Spawn(const ActorProps& props, std::string_view name = {}) {
    return spawn_internal::OrThrow(TrySpawn(props, name));
  }

  // Stops an actor, usually a child. A running handler returns first. A handler that waits in
  // co_await is cancelled, and its asker gets an error at once. The messages in the mailbox become
  // dead letters. A PoisonPill stops the actor after it has handled them and has finished the
  // waiting handler.
  void Stop(ActorRef actor) { here("Stop").lifecycle.Stop(*this, actor); }
  // Unwatches and stops all children. The usual PreRestart calls it, and PostStop.
  void StopChildren();

  // The actor gets a Terminated when `actor` has ended; at once, if it has ended already. A second
  // Watch changes nothing. FailedPrecondition if WatchWith watches it already.
  absl::Status Watch(ActorRef actor) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Watch");
    return lifecycle().Watch(*this, actor, nullptr, nullptr);
  }
  // The same with `message` instead of Terminated. FailedPrecondition if the actor is watched
  // already with another message: one of another type, or one that is not equal, if the type has
  // operator==.
  template <class M>
  absl::Status WatchWith(ActorRef actor, M&& message) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("WatchWith");
    using Message = std::decay_t<M>;
    actor_internal::ActorLifecycle::SameMessage same = nullptr;
    if constexpr (requires(const Message& m) { static_cast<bool>(m == m); }) {
      same = [](const void* a, const void* b) {
        return static_cast<bool>(*static_cast<const Message*>(a) == *static_cast<const Message*>(b));
      };
    }
    return lifecycle().Watch(*this, actor, EnvelopePtr(worker().Make(self(), std::forward<M>(message))), same);
  }
  // From now on the actor gets no Terminated of `actor`, also not one that is in its mailbox.
  void Unwatch(ActorRef actor) { here("Unwatch").lifecycle.Unwatch(*this, actor); }

  // The parent; no one for the root.
  ActorRef parent() { return here("parent").lifecycle.ParentOf(self()); }
  // The living child of that name, or no one.
  ActorRef Child(std::string_view name) { return here("Child").lifecycle.ChildOf(self(), name); }
  // The living children.
  std::vector<ActorRef> Children() { return here("Children").lifecycle.ChildrenOf(self()); }

  // The path of this actor, or of another, for logs and error texts.
  std::string Path() { return here("Path").lifecycle.PathOf(self()); }
  std::string PathOf(ActorRef actor) { return here("PathOf").lifecycle.PathOf(actor); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string PathOf(const Ref& actor) { return PathOf(actor.untyped()); }

  // The system that the actor lives in.
  ActorSystem& system() { return *here("system").lifecycle.system(); }

  // Takes the current message out of the handler: the caller owns it, and returns it by Unstash, or
  // destroys it. Receive must not touch the message afterwards. Returns null outside of Receive.
  // For programs, actor/pattern/stash.h is simpler.
  EnvelopePtr Stash();

  // Puts messages back to the front of the mailbox, in this order. They do not count against a
  // mailbox limit.
  void Unstash(actor_internal::EnvelopeList messages);

  // Pushes messages that the worker has not pushed yet: it chains several messages to one actor.
  // Call it before the handler blocks until another actor has handled its messages.
  void Flush() { here("Flush").outbox.Flush(); }

  // Stops this actor when the handler returns, or waits in co_await, where it is cancelled. The
  // actor handles no further message.
  void Stop() { here("Stop").turn_state.Set(actor_internal::Gate::kStopping); }

  // OK in the actor's turn. Otherwise the call is misuse: see the top. `call` is the name for the
  // error text. For functions that take a context.
  absl::Status CheckTurn(const char* call) const {
    if (IsInTurn()) [[likely]]
      return absl::OkStatus();
    return OutOfTurn(call);
  }

  static actor_internal::ActorWorker& worker() { return *actor_internal::ActorWorker::Current(); }
  static actor_internal::ActorLifecycle& lifecycle() { return worker().lifecycle; }

 protected:
  // The worker of the current thread. Without NDEBUG it checks that this is the actor's turn;
  // `call` is the name for the error text.
  actor_internal::ActorWorker& here([[maybe_unused]] const char* call) const {
#ifndef NDEBUG
    if (!IsInTurn()) OutOfTurn(call).IgnoreError();
#endif
    return worker();
  }
  // True in the actor's turn.
  bool IsInTurn() const {
    const actor_internal::ActorWorker* const current = actor_internal::ActorWorker::Current();
    return current != nullptr && current->turn_state.running() == &const_cast<ActorContext*>(this)->slot();
  }
  // Returns FailedPrecondition with a text that says what is wrong. Without NDEBUG it ends the
  // program with that text.
  absl::Status OutOfTurn(const char* call) const;

  // Only SlotWithContext has one.
  ActorContext() = default;
};

// The class of all slots of ProcessSlots: a slot with its context, which adds no bytes.
class SlotWithContext final : public actor_internal::ActorSlot, public ActorContext {
 public:
  static actor_internal::ActorSlot* Make(void* memory) { return ::new (memory) SlotWithContext(); }
};
static_assert(sizeof(SlotWithContext) == sizeof(actor_internal::ActorSlot));

inline ActorContext& ActorContext::Of(actor_internal::ActorSlot& slot) { return static_cast<SlotWithContext&>(slot); }
inline actor_internal::ActorSlot& ActorContext::slot() { return static_cast<SlotWithContext&>(*this); }

// The table of all actor slots of the process.
actor_internal::ActorSlotTable& ProcessSlots();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_
