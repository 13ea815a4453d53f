// What an actor sees of the runtime while it handles a message.
//
//   absl::Status Receive(ActorContext& context, Envelope& message) override {
//     context.Tell(context.sender(), Pong{});
//     return absl::OkStatus();
//   }
//
// A context stays with its actor: it is a part of the actor's slot without members of its own, and
// finds the worker by the thread. So a reference to it is good for as long as the actor lives, but
// to be used in the actor's own turns only: not on other threads, nor in callbacks, which send to
// context.self() instead. Without NDEBUG any other use ends the program with a text that names the
// call. With NDEBUG, calls that return a status or a future (Ask, AskOnReply, Spawn, Watch,
// WatchWith, Run, Delay) fail with FailedPrecondition and the same text. Functions that take a
// context (Timers, Stash, SetReceiveTimeout, Log), and Become, fail in the same way, or do nothing.
// Any other call is undefined behaviour then: a check in Tell would cost each message.
#ifndef FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_
#define FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_

#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/ask_source.h"
#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/await/awaiting_handler.h"
#include "fraktor/actor/context/spawn_error.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/actor_lifecycle.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

class ActorContext {
 public:
  ActorContext(const ActorContext&) = delete;
  ActorContext& operator=(const ActorContext&) = delete;

  // The context of an actor, and its slot, which is one of ProcessSlots.
  static ActorContext& Of(ActorSlot& slot);
  ActorSlot& slot();

  ActorRef self() const { return here("self").turn.self(); }
  // Who sent the message that is being handled; no one if it came from outside, or there is none.
  ActorRef sender() const {
    const Envelope* const current = here("sender").turn.current;
    return current == nullptr ? ActorRef() : current->sender();
  }

  template <class M>
  [[gnu::always_inline]] void Tell(ActorRef to, M&& message) {
    here("Tell").Tell(to, std::forward<M>(message));
  }

  // The same; ResourceExhausted if the target's mailbox is full and its options say that the sender is told.
  template <class M>
  absl::Status TryTell(ActorRef to, M&& message) {
    return here("TryTell").TryTell(to, std::forward<M>(message));
  }

  // Sends a message whose sender is a promise. The first message that is sent to it comes to ActorInstance::OnReply,
  // under the name that is returned here; or a failure, if none has come in time. Other messages are handled meanwhile.
  // ResourceExhausted if the process has no slot or no timer left.
  template <class M>
  absl::StatusOr<ActorRef> AskOnReply(ActorRef to, M&& message, absl::Duration timeout) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("AskOnReply");
    ActorWorker& asking = worker();
    // First, since it may throw.
    EnvelopePtr question(asking.Make(ActorRef(), std::forward<M>(message)));
    FRAKTOR_ASSIGN_OR_RETURN(const ActorRef ask, OpenPromise(asking, {.timeout = timeout, .target = to}));
    question->set_sender(ask);
    if constexpr (kIsInterceptedMessage<std::decay_t<M>>) {
      asking.SendMarked(to, question.release());
    } else {
      asking.Send(to, question.release());
    }
    return ask;
  }

  // Sends a message, and gives the future of the answer, which is an R. A future that is dropped,
  // or cancelled, before it is ready ends the ask: an answer that comes later is a dead letter
  // (late_reply).
  //
  //   auto asking = context.Ask<Sum>(adder, Add{1, 2}, absl::Seconds(1));
  //   absl::StatusOr<Sum> sum = co_await asking;
  //
  // The error is DeadlineExceeded if no answer comes in time or the target has ended, InvalidArgument for a timeout
  // that is not positive or an answer of another type, kAskCircle if the target waits for this very handler, or what
  // the target answered instead (ErrorReply). That comes by itself, without waiting for the time to be over, if the
  // target's handler fails (with its error), if it does not handle the message (Unimplemented), or if its mailbox is
  // full (ResourceExhausted). So it does of a target on another node; there it is Unavailable, with the reason, too, if
  // the question cannot be delivered. What was on its way when the link broke has only its timeout.
  //
  // `explain(absl::Status)` returns what the future says in place of an error that is no answer, such as that of a
  // timeout: who stands between the asker and the target knows better what is missing. It costs an answer nothing.
  template <class R, class M, class Explain = AsItIs>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, Explain explain = {}) {
    if (!IsInTurn()) [[unlikely]]
      return MakeReadyFuture<R>(OutOfTurn("Ask"));
    ActorWorker& asking = worker();
    EnvelopePtr question(asking.Make(ActorRef(), std::forward<M>(message)));
    auto* const source = new AskSource<R, AskedBy::kActor, Explain>(question->type(), timeout, asking.turn.running(),
                                                                    std::move(explain));
    Future<R> answer = Future<R>::FromSource(*source);
    if (absl::Status sent = SendQuestion(asking, to, std::move(question), *source); !sent.ok()) [[unlikely]]
      source->Fail(std::move(sent));
    return answer;
  }
  // Where the question says what its answer is: `using Reply = ...`.
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& question, absl::Duration timeout) {
    CheckDeclaresReply<Q>();
    return Ask<ReplyOf<Q>>(to, std::forward<Q>(question), timeout);
  }

  // The same, and the future is Cancelled as soon as a stop is requested
  // (utils/future/with_stop.h), which ends the ask. Any thread may request the stop.
  template <class R, class M>
  Future<R> Ask(ActorRef to, M&& message, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask<R>(to, std::forward<M>(message), timeout), std::move(stop));
  }
  template <int&... kDeduced, class Q>
  Future<ReplyOf<Q>> Ask(ActorRef to, Q&& question, absl::Duration timeout, std::stop_token stop) {
    return WithStop(Ask(to, std::forward<Q>(question), timeout), std::move(stop));
  }

  // A future that is ready after `delay`.
  Future<void> Delay(absl::Duration delay);

  // Runs a coroutine in this actor's turns, beside its messages. An error that it comes to is a failure of the actor.
  absl::Status Run(Task<void> task) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Run");
    return RunTask(*this, std::move(task));
  }

  // Answers the message that is being handled.
  template <class M>
  void Reply(M&& message) {
    Tell(sender(), std::forward<M>(message));
  }

  // Passes the message that is being handled on, as if its sender had sent it there. Only within a handler, which must
  // not touch the message afterwards.
  void Forward(ActorRef to);
  // The same with another message, or a copy of it.
  template <class M>
  void Forward(ActorRef to, M&& message) {
    ActorWorker& forwarding = here("Forward");
    Envelope* const current = forwarding.turn.current;
    // From now on it is somebody else who answers.
    if (current != nullptr) current->set_target_word(current->target_word() | kForwarded);
    forwarding.Send(to, forwarding.Make(sender(), std::forward<M>(message)));
  }

  // The message that is being handled is not for this actor: published, and of no further consequence, but for a
  // Terminated, which is then a failure: kDeathPact. Who has asked is told so: Unimplemented.
  absl::Status Unhandled(Envelope& message) { return here("Unhandled").lifecycle.OnUnhandled(*this, message); }

  // Spawns a child. Without a name it gets one by itself. ResourceExhausted if there is no slot or thread left, InvalidArgument
  // for bad options or a bad name (kInvalidName), AlreadyExists if a child has the name (kNameTaken), FailedPrecondition
  // if the actor is ending its children (kTerminating): as one that stops or is restarted does, from when they are told
  // until PostStop is over. A constructor that throws is a failure of the child, not of this call.
  absl::StatusOr<ActorRef> TrySpawn(const ActorProps& props, std::string_view name = {}) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Spawn");
    return lifecycle().Spawn(*this, props, name);
  }
  // The same; throws SpawnError with that status.
  ActorRef Spawn(const ActorProps& props, std::string_view name = {}) {
    return spawn_internal::OrThrow(TrySpawn(props, name));
  }

  // Ends an actor, mostly a child. A handler that runs returns first. A handler that waits in
  // co_await does not run, and is cancelled: its asker gets an error at once. The messages
  // in the mailbox become dead letters. To let the actor handle them, and finish the handler that
  // waits, send a PoisonPill.
  void Stop(ActorRef actor) { here("Stop").lifecycle.Stop(*this, actor); }
  // All children, of which it wants to hear nothing more: what the usual PreRestart does, and calls PostStop.
  void StopChildren();

  // A Terminated comes when the actor has ended: at once, if it has already. Watching again changes nothing.
  // FailedPrecondition if it is being watched with a message of its own.
  absl::Status Watch(ActorRef actor) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("Watch");
    return lifecycle().Watch(*this, actor, nullptr, nullptr);
  }
  // The same with `message` instead of Terminated. FailedPrecondition if it is being watched already for something
  // else: for a message of another type, or, if messages of the type can be compared, for one that is not equal.
  template <class M>
  absl::Status WatchWith(ActorRef actor, M&& message) {
    if (!IsInTurn()) [[unlikely]]
      return OutOfTurn("WatchWith");
    using Message = std::decay_t<M>;
    ActorLifecycle::SameMessage same = nullptr;
    if constexpr (requires(const Message& m) { static_cast<bool>(m == m); }) {
      same = [](const void* a, const void* b) {
        return static_cast<bool>(*static_cast<const Message*>(a) == *static_cast<const Message*>(b));
      };
    }
    return lifecycle().Watch(*this, actor, EnvelopePtr(worker().Make(self(), std::forward<M>(message))), same);
  }
  // No Terminated of it is handled from now on.
  void Unwatch(ActorRef actor) { here("Unwatch").lifecycle.Unwatch(*this, actor); }

  // No one for the root.
  ActorRef parent() { return here("parent").lifecycle.ParentOf(self()); }
  // The living child of that name, or no one.
  ActorRef Child(std::string_view name) { return here("Child").lifecycle.ChildOf(self(), name); }
  std::vector<ActorRef> Children() { return here("Children").lifecycle.ChildrenOf(self()); }

  // The path of this actor, or of another, for people and logs.
  std::string Path() { return here("Path").lifecycle.PathOf(self()); }
  std::string PathOf(ActorRef actor) { return here("PathOf").lifecycle.PathOf(actor); }
  template <class Ref>
  requires requires(const Ref& ref) { ref.untyped(); }
  std::string PathOf(const Ref& actor) { return PathOf(actor.untyped()); }

  // The system that the actor lives in.
  ActorSystem& system() { return *here("system").lifecycle.system(); }

  // Puts the message that is being handled aside: the caller has it, and gives it back by Unstash, or ends it. Only
  // within Receive, which must not touch the message afterwards; elsewhere there is none, and the answer is null.
  EnvelopePtr Stash();

  // Puts messages back before all others, in this order; they do not count against a limit.
  void Unstash(EnvelopeList messages);

  // Lets go of what was sent: some messages to one actor are kept together for a moment. Before a handler waits, in
  // whatever way, for what others do with its messages.
  void Flush() { here("Flush").outbox.Flush(); }

  // Ends this actor when the handler returns, or waits in co_await, where it is cancelled. No
  // further message is handled.
  void Stop() { here("Stop").turn.Set(Gate::kStopping); }

  // OK in the actor's turn. Otherwise it is misuse: see the top. `call` is named in the text. For
  // functions that take a context.
  absl::Status CheckTurn(const char* call) const {
    if (IsInTurn()) [[likely]]
      return absl::OkStatus();
    return OutOfTurn(call);
  }

  static ActorWorker& worker() { return *ActorWorker::Current(); }
  static ActorLifecycle& lifecycle() { return worker().lifecycle; }

 protected:
  // The worker, in the actor's turn. `call` is the function that was called, for the text of misuse.
  ActorWorker& here([[maybe_unused]] const char* call) const {
#ifndef NDEBUG
    if (!IsInTurn()) OutOfTurn(call).IgnoreError();
#endif
    return worker();
  }
  // Whether this is called in the actor's turn.
  bool IsInTurn() const {
    const ActorWorker* const current = ActorWorker::Current();
    return current != nullptr && current->turn.running() == &const_cast<ActorContext*>(this)->slot();
  }
  // FailedPrecondition that says what was wrong. Without NDEBUG the program ends with that.
  absl::Status OutOfTurn(const char* call) const;

  // Only as a part of a slot.
  ActorContext() = default;
};

// The class of all slots of ProcessSlots: a slot with its context, which adds nothing to it.
class SlotWithContext final : public ActorSlot, public ActorContext {
 public:
  static ActorSlot* Make(void* memory) { return ::new (memory) SlotWithContext(); }
};
static_assert(sizeof(SlotWithContext) == sizeof(ActorSlot));

inline ActorContext& ActorContext::Of(ActorSlot& slot) { return static_cast<SlotWithContext&>(slot); }
inline ActorSlot& ActorContext::slot() { return static_cast<SlotWithContext&>(*this); }

// All slots of actors of the process.
ActorSlotTable& ProcessSlots();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_ACTOR_CONTEXT_H_
