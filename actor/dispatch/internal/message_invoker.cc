#include "fraktor/actor/dispatch/internal/message_invoker.h"

#include <cxxabi.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/internal/ask_completion.h"
#include "fraktor/actor/ask/internal/ask_deadlines.h"
#include "fraktor/actor/ask/internal/ask_diagnosis.h"
#include "fraktor/actor/ask/internal/reply_promise.h"
#include "fraktor/actor/await/internal/awaiting_handler.h"
#include "fraktor/actor/await/internal/room_wait.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::Inbox;

namespace {

// Returns the exception that is being handled as an error. `cause` becomes kThrown or
// kThrownUnknown. It is not inlined, which keeps the callers small.
template <class Describe>
[[gnu::noinline, gnu::cold]] absl::Status ThrownError(Describe&& describe, FailureCause& cause) {
  std::string what = std::forward<Describe>(describe)();
  try {
    throw;
  } catch (const std::exception& e) {
    cause = FailureCause::kThrown;
    return MakeError(absl::StatusCode::kInternal, ActorErrorKind::kThrown, absl::StrCat(what, " threw: ", e.what()));
  } catch (...) {
    cause = FailureCause::kThrownUnknown;
    return MakeError(absl::StatusCode::kInternal, ActorErrorKind::kThrownUnknown,
                     absl::StrCat(what, " threw something that is no std::exception"));
  }
}

// Calls code of the program. An exception becomes an error and sets `cause`.
template <class Call, class Describe>
[[gnu::always_inline]] inline absl::Status Guarded(Call&& call, Describe&& describe, FailureCause& cause) {
  try {
    return std::forward<Call>(call)();
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled, which must go on.
  } catch (...) {
    return ThrownError(std::forward<Describe>(describe), cause);
  }
}

std::string HandlerOf(const Envelope& message) { return absl::StrCat("a handler of ", ToAbsl(message.type()->name())); }

[[gnu::always_inline]] inline absl::Status Receive(Turn turn, Envelope& message) {
  return Guarded([&] { return turn.slot.instance->Receive(ActorContext::Of(turn.slot), message); },
                 [&] { return HandlerOf(message); }, turn.state().cause);
}

// The bits that a middleware may have set, and a signal clears.
constexpr uint8_t kSignalledGates = Gate::kRateLimited | Gate::kUserDefined;

// User messages get at least one in so many messages of a turn that signals fill.
constexpr uint32_t kUserShare = 4;

// The system messages of an actor without an extension that are searched in one turn, at most.
constexpr uint32_t kMostSearched = 1000;

// Whether HandleSignal, or the receiver of replies, handles the system message.
bool IsSignal(const Envelope& message) {
  return message.sender().IsPromise() || message.Is<HandlerWoken>() || message.Is<SignalArrived>() ||
         message.Is<PromiseOpened>() || message.Is<StatusRequest>() || message.Is<StatusReport>() ||
         message.Is<StatusReportOverdue>() || message.Is<MoreLateAsks>() || message.Is<AskDeadlineReached>() ||
         message.Is<RoomFound>() || message.Is<RoomTimedOut>();
}

// The gate of a turn as the slot keeps it.
uint8_t GateToKeep(const TurnState& state) {
  return state.gate & static_cast<uint8_t>(~static_cast<uint8_t>(Gate::kMiddleware));
}

// Measures a sampled message: how long it has waited, and how long its handler takes.
class Timing {
 public:
  Timing(Turn turn, Envelope& message)
      : worker_(turn.worker),
        is_on_(turn.worker.metrics != nullptr && turn.worker.toolbox != nullptr && message.has_trace()) {
    if (!is_on_) return;
    type_ = turn.slot.type.load(std::memory_order_relaxed);
    begin_ns_ = turn.worker.toolbox->Now().nanoseconds();
    waited_ns_ = begin_ns_ - message.trace()->enqueued_ns;
  }

  // Call it after the handler. The message may have ended.
  void Record() {
    if (!is_on_) return;
    worker_.metrics->RecordLatency(waited_ns_);
    worker_.metrics->RecordDuration(type_, worker_.toolbox->Now().nanoseconds() - begin_ns_);
  }

 private:
  ActorWorker& worker_;
  const bool is_on_;
  ObservedId type_ = 0;
  int64_t begin_ns_ = 0;
  int64_t waited_ns_ = 0;
};

}  // namespace

inline void MessageInvoker::BeginTurn(Turn turn) const {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  // Release: pairs with the acquire of WorkerWatch, which reads the type of a slot that may be new.
  state.slot.store(&slot, std::memory_order_release);
  state.word = slot.word();
  // Loaded one by one, as they were stored just before: a wider load would have to wait until the
  // stores are in the cache.
  Envelope* first = slot.mailbox.lists.user.first;
  asm("" : "+r"(first));
  state.lists.user.first = first;
  state.lists.user.last = slot.mailbox.lists.user.last;
  state.lists.system = slot.mailbox.lists.system;
  state.failures = slot.failures;
  state.gate = slot.gate | run_gate_;
  slot.mailbox.lists.user.first = nullptr;
}

inline InvokeResult MessageInvoker::EndTurn(ActorWorker& worker, uint32_t handled, InvokeResult kind) {
  worker.CountRun(worker.turn_state.running()->type.load(std::memory_order_relaxed), handled);
  worker.turn_state.slot.store(nullptr, std::memory_order_relaxed);
  return kind;
}

// The same for an actor that has handled messages and gone idle.
inline InvokeResult MessageInvoker::EndShortTurn(Turn turn, uint32_t handled) {
  const ObservedId type = turn.slot.type.load(std::memory_order_relaxed);
  // Usually it was one message, which had not waited.
  if (handled == turn.state().uncounted) [[likely]] {
    turn.worker.passes->Count(type);
  } else {
    turn.worker.CountRun(type, handled);
  }
  turn.state().slot.store(nullptr, std::memory_order_relaxed);
  return InvokeResult::kCompleted;
}

inline void MessageInvoker::WriteBack(Turn turn) {
  turn.slot.mailbox.lists = turn.state().lists;
  turn.slot.failures = turn.state().failures;
  turn.slot.gate = GateToKeep(turn.state());
}

// The budget is used up. The caller of Run still holds the mailbox, which may have more messages.
inline InvokeResult MessageInvoker::Yield(Turn turn, uint32_t handled) {
  WriteBack(turn);
  return EndTurn(turn.worker, handled, InvokeResult::kYielded);
}

InvokeResult MessageInvoker::Run(ActorWorker& worker, ActorSlot& slot) {
  const Turn turn{worker, slot};
  BeginTurn(turn);
  TurnState& state = turn.state();
  Inbox& inbox = slot.mailbox.inbox;
  uint32_t used = 0;    // The messages of this turn.
  uint32_t system = 0;  // The system messages among them, which metrics do not count.

  // Between two messages the worker reads the hint, and not the word that senders contend for.
  bool look_for_system = state.lists.system != nullptr || inbox.HasSystem();
  for (;;) {
    if (look_for_system) [[unlikely]] {
      if (system == 0) state.waiting.reset();
      const uint32_t handled = HandleSystemMessages(turn, used);
      used += handled;
      system += handled;
      if (state.lists.system != nullptr) return Yield(turn, used - system + HandleUserShare(turn));
    }
    if (state.gated()) [[unlikely]] {
      const Step step = StepGated(turn);
      if (step == Step::kIdle) return EndTurn(worker, used - system, InvokeResult::kCompleted);
      if (step == Step::kEnded)
        return EndTurn(worker, used - system + std::exchange(state.dropped, 0), InvokeResult::kStopped);
      if (step == Step::kParked) {
        return EndTurn(worker, used - system, state.failures == 0 ? InvokeResult::kSuspended : InvokeResult::kFailed);
      }
      look_for_system = state.lists.system != nullptr || inbox.HasSystem();
      if (step == Step::kGoOn) continue;
    } else {
      Envelope* const envelope = state.lists.user.PopFront();
      if (envelope == nullptr) {
        // TryGoIdle also fails if there is a system message.
        if (inbox.TryGoIdle()) return EndTurn(worker, used - system, InvokeResult::kCompleted);
        slot.system_hint.store(false, std::memory_order_relaxed);
        state.lists.Take(inbox);
        look_for_system = state.lists.system != nullptr;
        continue;
      }
      if (envelope->target_word() == state.word) [[likely]] {
        const bool more = envelope->has_trace() ? HandleTraced(turn, envelope) : Handle(turn, envelope);
        // Usually there was one message. TryGoIdle fails if a system message has come meanwhile.
        if (!more && !state.gated() && inbox.TryGoIdle()) return EndShortTurn(turn, used - system + 1);
      } else if (!HandleFlagged(turn, envelope)) {
        worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
      }
      look_for_system = slot.system_hint.load(std::memory_order_relaxed);
    }
    // A suspended actor goes through the loop once more, to park.
    if (++used >= worker.slice.messages() && !state.suspended()) return Yield(turn, used - system);
  }
}

// Calls the handler. Returns whether the mailbox has messages afterwards.
[[gnu::always_inline]] inline bool MessageInvoker::Handle(Turn turn, Envelope* envelope) {
  TurnState& state = turn.state();
  state.current = envelope;
  absl::Status status = Receive(turn, *envelope);
  const bool more = !state.lists.user.empty() || turn.slot.mailbox.inbox.HasNodes();
  turn.worker.outbox.EndHandler(more);
  if (!status.ok()) [[unlikely]]
    Fail(turn, status, state.current);
  // Null if the handler has stashed it.
  if (Envelope* const ended = std::exchange(state.current, nullptr)) EndEnvelope(turn.worker.cache(), ended);
  return more;
}

// Handles a message whose target word is not plainly that of this actor. False if the message was
// for an earlier actor of the slot.
[[gnu::noinline]] bool MessageInvoker::HandleFlagged(Turn turn, Envelope* envelope) {
  if (static_cast<uint32_t>(envelope->target_word()) != static_cast<uint32_t>(turn.state().word)) return false;
  Envelope* const received =
      (envelope->target_word() & kIntercepted) == 0 ? envelope : lifecycle_.OnInterceptedMessage(turn, envelope);
  if (received == nullptr) {
    turn.worker.outbox.EndHandler(true);
  } else {
    HandleTraced(turn, received);
  }
  return true;
}

// Resumes the handlers that have been woken, unless the actor waits for its supervisor. If the
// slice is over, one handler resumes, and the others in the next turns.
void MessageInvoker::ResumeHandlers(Turn turn) {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  HandlerQueue& handlers = slot.extension->handlers;
  const auto may_resume = [&] { return handlers.has_woken() && state.failures == 0 && !state.Has(Gate::kStopping); };
  while (may_resume()) {
    EnvelopePtr message;
    HandlerEndListener* listener = nullptr;
    absl::Status status =
        Guarded([&] { return handlers.ResumeWoken(ActorContext::Of(slot), state, message, listener); },
                [&] { return message == nullptr ? std::string("a task") : HandlerOf(*message); }, state.cause);
    if (listener != nullptr) [[unlikely]]
      status = listener->OnHandlerEnd(state, *message, std::move(status));
    if (state.Has(Gate::kAwaiting) && !handlers.HasExclusive()) state.Clear(Gate::kAwaiting);
    // A handler that waits again leaves the user messages in the mailbox.
    turn.worker.outbox.EndHandler(
        handlers.has_woken() || state.lists.system != nullptr ||
        (!state.Has(Gate::kAwaiting) && (!state.lists.user.empty() || slot.mailbox.inbox.HasNodes())));
    if (slot.extension->watches_activity) turn.worker.lifecycle.OnActivity(slot);
    if (!status.ok()) {
      // A restart passes the message to PreRestart.
      Envelope* const outer = std::exchange(state.current, message.release());
      Fail(turn, status, state.current);
      if (Envelope* const ended = std::exchange(state.current, outer)) EndEnvelope(turn.worker.cache(), ended);
    }
    // The budget may be used up, by the messages that have woken the handlers. That ends no slice.
    if (turn.worker.slice.messages() == 0 && may_resume()) [[unlikely]] {
      ResumeInNextTurn(turn);
      return;
    }
  }
}

// Lets this turn end and the next one resume woken handlers: both happen if a system message is
// left. Without one, the message that has woken the next handler is sent again.
void MessageInvoker::ResumeInNextTurn(Turn turn) {
  TurnState& state = turn.state();
  if (state.lists.system != nullptr) return;
  Envelope* const again =
      MakeEnvelope<HandlerWoken>(turn.worker.cache(), ActorRef(), turn.slot.extension->handlers.FirstWoken()).release();
  again->set_target_word(state.word);
  again->MarkAsSystem();
  state.lists.PushSystem(again);
}

[[gnu::noinline]] bool MessageInvoker::HandleTraced(Turn turn, Envelope* envelope) {
  Timing timing(turn, *envelope);
  const bool more = Handle(turn, envelope);
  timing.Record();
  return more;
}

// Handles system messages, also those that come meanwhile, until the budget is used up, but at
// least one in each turn. `used` messages of the budget are used already. Returns the number of
// handled messages. The others stay in the list of the turn.
uint32_t MessageInvoker::HandleSystemMessages(Turn turn, uint32_t used) {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  Inbox& inbox = slot.mailbox.inbox;
  uint32_t handled = 0;
  for (; used + handled == 0 || used + handled < turn.worker.slice.messages();) {
    if (state.lists.system == nullptr) {
      if (handled != 0 && !inbox.HasSystem()) break;
      slot.system_hint.store(false, std::memory_order_relaxed);
      state.lists.Take(inbox);
      if (state.lists.system == nullptr) break;
      if (slot.extension != nullptr) slot.extension->has_only_signals = false;
    }
    // A new instance starts before it sees a system message: also after a restart, which may be the
    // message before this one.
    if (state.Has(Gate::kStarting)) [[unlikely]]
      Start(turn);
    Envelope* const envelope = state.lists.PopSystem();
    if (static_cast<uint32_t>(envelope->target_word()) == static_cast<uint32_t>(state.word)) {
      state.current = envelope;
      if (run_gate_ != 0) [[unlikely]]
        TellMiddleware(turn, *envelope);
      // An actor without an extension never waits on the scheduler, but it can still be signalled.
      uint32_t counted = 1;
      if (slot.extension == nullptr) {
        counted = HandleAnybodysSignal(turn, *envelope);
      } else if (!ReceiveReply(turn, *envelope)) {
        counted = HandleSignal(turn, *envelope, used + handled);
      }
      if (counted == 0) {
        lifecycle_.OnSystemMessage(turn, *envelope);
        counted = 1;
      }
      handled += counted;
      turn.worker.outbox.EndHandler(!state.lists.empty() || slot.mailbox.inbox.HasNodes());
      state.current = nullptr;
      EndEnvelope(turn.worker.cache(), envelope);
    } else {
      turn.worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
      ++handled;
    }
  }
  if (slot.extension != nullptr) {
    if (state.lists.system == nullptr) slot.extension->has_only_signals = false;
    if (slot.extension->handlers.has_woken()) ResumeHandlers(turn);
  }
  // The slot must have the changes of failures and gate before the actor goes idle.
  slot.mailbox.lists.system = nullptr;
  slot.failures = state.failures;
  slot.gate = GateToKeep(state);
  return handled;
}

// A middleware that throws does not fail the actor: the verdict on the failure would be a system
// message too, on which the middleware may throw again.
void MessageInvoker::TellMiddleware(Turn turn, Envelope& message) {
  const Interception at{turn.state().self(), message};
  for (const auto& part : middleware_) {
    const absl::Status told = Call("a middleware that was told of a system message", [&] {
      part->OnSystemMessage(at);
      return absl::OkStatus();
    });
    if (!told.ok()) lifecycle_.OnThrown(at.actor, told);
  }
}

// The system messages have used up the budget of the turn. While only signals are left, user
// messages that were taken out of the inbox with them are handled too: a quarter of the budget, but
// at least one message, until a new system message comes. Otherwise an actor whose waits never end
// would never handle another message. Stopping, supervision and watching stay before user messages.
// Returns the number of handled messages.
[[gnu::noinline, gnu::cold]] uint32_t MessageInvoker::HandleUserShare(Turn turn) {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  const auto may_handle = [&] { return !state.suspended() && !state.Has(Gate::kStarting); };
  if (!may_handle() || !HasOnlySignals(turn)) return 0;
  uint32_t handled = 0;
  do {
    Envelope* const envelope = NextOrdered(turn);
    if (envelope == nullptr) break;
    ++handled;
    if (HandleGated(turn, envelope) == Step::kGoOn) --handled;
    // Schedules the deferred target, because the next message of this actor may come before it.
    turn.worker.outbox.EndHandler(true);
  } while (may_handle() && !slot.system_hint.load(std::memory_order_relaxed) &&
           handled < turn.worker.slice.messages() / kUserShare);
  return handled;
}

// Whether all system messages of the turn are signals of the scheduler, or replies. Each list is
// searched once, also if it lasts for many turns. An actor without an extension cannot note that:
// its list is searched in each turn, and one that is longer than kMostSearched counts as false.
bool MessageInvoker::HasOnlySignals(Turn turn) {
  SlotExtension* const extension = turn.slot.extension;
  if (extension != nullptr && extension->has_only_signals) return true;
  uint32_t searched = 0;
  for (const Envelope* message = turn.state().lists.system; message != nullptr; message = Envelope::Of(message->next)) {
    if (!IsSignal(*message)) return false;
    if (extension == nullptr && ++searched > kMostSearched) return false;
  }
  if (extension != nullptr) extension->has_only_signals = true;
  return true;
}

// Not inlined: GCC 12 would copy the turn through memory in both callers.
[[gnu::noinline]] uint32_t MessageInvoker::HandleAnybodysSignal(Turn turn, Envelope& message) {
  if (message.Is<SignalArrived>()) return 1;
  if (auto* opened = message.TryAs<PromiseOpened>()) {
    ReceiveOpened(turn, *opened);
    return 1;
  }
  const auto* const request = message.TryAs<StatusRequest>();
  if (request == nullptr) return 0;
  SendStatusReport(turn, *request);
  return 1;
}

uint32_t MessageInvoker::HandleSignal(Turn turn, Envelope& message, uint32_t used) {
  if (const auto* signal = message.TryAs<SignalArrived>()) {
    TurnState& state = turn.state();
    const SlotExtension* const extension = turn.slot.extension;
    if ((state.gate & kSignalledGates) != 0 && extension != nullptr && extension->resume_key == signal->key) {
      state.gate &= static_cast<uint8_t>(~kSignalledGates);
    }
    return 1;
  }
  if (const auto* found = message.TryAs<RoomFound>()) {
    GoOnAfterRoom(turn, *found);
    return 1;
  }
  if (const auto* late = message.TryAs<RoomTimedOut>()) {
    GiveUpRoom(turn, *late);
    return 1;
  }
  if (const auto* woken = message.TryAs<HandlerWoken>()) {
    turn.slot.extension->handlers.MarkWoken(woken->wait);
    return 1;
  }
  if (const auto* reached = message.TryAs<AskDeadlineReached>()) return ExpireAsks(turn, *reached, used);
  if (const auto* report = message.TryAs<StatusReport>()) return ReceiveStatusReport(turn, *report, used);
  if (const auto* over = message.TryAs<StatusReportOverdue>()) return GiveUpStatusReport(turn, over->request, used);
  if (message.Is<MoreLateAsks>()) return FailMoreLateAsks(turn, used);
  return HandleAnybodysSignal(turn, message);
}

MessageInvoker::Step MessageInvoker::StepGated(Turn turn) {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  if (state.Has(Gate::kStarting)) {
    Start(turn);
    return Step::kGoOn;
  }
  if (state.suspended()) {
    if (state.Has(Gate::kStopping)) {
      // Askers get their errors now, and do not wait until the children have ended.
      CancelHandlers(turn);
      if (lifecycle_.StopChildrenFirst(slot)) {
        End(turn);
        return Step::kEnded;
      }
    }
    return Park(turn);
  }
  if (state.Has(Gate::kOrdered) && HasOrder(slot) && slot.mailbox.inbox.HasNodes()) {
    // The first message in order is known only if all messages are out of the inbox.
    slot.system_hint.store(false, std::memory_order_relaxed);
    state.lists.Take(slot.mailbox.inbox);
    if (state.lists.system != nullptr) return Step::kGoOn;
  }
  Envelope* envelope = NextOrdered(turn);
  if (envelope == nullptr) {
    if (slot.mailbox.inbox.TryGoIdle()) return Step::kIdle;
    slot.system_hint.store(false, std::memory_order_relaxed);
    state.lists.Take(slot.mailbox.inbox);
    return Step::kGoOn;
  }
  return HandleGated(turn, envelope);
}

// Handles a user message that is out of the mailbox. kGoOn: the message is in the mailbox again.
MessageInvoker::Step MessageInvoker::HandleGated(Turn turn, Envelope* envelope) {
  ActorSlot& slot = turn.slot;
  if (static_cast<uint32_t>(envelope->target_word()) != static_cast<uint32_t>(turn.state().word)) {
    turn.worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
    return Step::kHandled;
  }
  if ((envelope->target_word() & kIntercepted) != 0) {
    envelope = lifecycle_.OnInterceptedMessage(turn, envelope);
    if (envelope == nullptr) {
      turn.worker.outbox.EndHandler(true);
      return Step::kHandled;
    }
  }
  const bool is_activity = !envelope->type()->leaves_receive_timeout();
  if (middleware_.empty()) {
    HandleTraced(turn, envelope);
  } else if (!HandleThroughMiddleware(turn, envelope)) {
    return Step::kGoOn;
  }
  if (is_activity && slot.extension != nullptr && slot.extension->watches_activity) lifecycle_.OnActivity(slot);
  return Step::kHandled;
}

bool MessageInvoker::HasOrder(const ActorSlot& slot) {
  return slot.extension != nullptr && slot.extension->order != nullptr;
}

// Parks the mailbox until a system message comes, unless there is one.
MessageInvoker::Step MessageInvoker::Park(Turn turn) {
  ActorSlot& slot = turn.slot;
  WriteBack(turn);
  if (slot.mailbox.inbox.TryPark()) return Step::kParked;
  slot.mailbox.lists.user.first = nullptr;
  slot.system_hint.store(false, std::memory_order_relaxed);
  turn.state().lists.Take(slot.mailbox.inbox);
  return Step::kGoOn;
}

Envelope* MessageInvoker::NextOrdered(Turn turn) {
  EnvelopeList& user = turn.state().lists.user;
  OrderedEnvelopes* const order = HasOrder(turn.slot) ? turn.slot.extension->order.get() : nullptr;
  if (order != nullptr) {
    while (Envelope* const envelope = user.PopFront()) order->Add(envelope);
  }
  while (Envelope* const envelope = order != nullptr ? order->PopFront() : user.PopFront()) {
    if ((turn.slot.flags() & kLimitedFlag) == 0) return envelope;
    if (Envelope* const taken = TakeLimited(turn, envelope)) return taken;
  }
  return nullptr;
}

void MessageInvoker::Start(Turn turn) {
  turn.state().Clear(Gate::kStarting);
  turn.slot.gate = GateToKeep(turn.state());  // A turn that ends idle does not write it back.
  absl::Status started = Call("starting an actor", [&] { return lifecycle_.OnStart(turn.slot); });
  turn.worker.outbox.EndHandler(true);
  if (!started.ok()) Fail(turn, started, FailureCause::kInitialization, nullptr);
}

// False if a middleware has broken the chain: the message is in the mailbox again.
bool MessageInvoker::HandleThroughMiddleware(Turn turn, Envelope* envelope) {
  TurnState& state = turn.state();
  const Interception at{state.self(), *envelope};
  size_t entered = 0;
  MiddlewareFlow flow = MiddlewareFlow::Continue();
  state.current = envelope;
  Timing timing(turn, *envelope);
  absl::Status status = Guarded(
      [&] {
        for (; entered < middleware_.size(); ++entered) {
          flow = middleware_[entered]->BeforeReceive(at);
          if (flow.breaks()) return absl::AbortedError("a middleware suspended the actor before this message");
        }
        state.end_listener = this;
        return turn.slot.instance->Receive(ActorContext::Of(turn.slot), *envelope);
      },
      [&] {
        // The handler was called only if all middlewares returned Continue.
        return entered < middleware_.size() ? absl::StrCat("a middleware before ", HandlerOf(*envelope))
                                            : HandlerOf(*envelope);
      },
      state.cause);
  // Null if the handler waits, or has stashed or forwarded its message.
  const bool has_ended = std::exchange(state.end_listener, nullptr) != nullptr;
  if (has_ended || entered < middleware_.size()) status = CallAfter(state, *envelope, entered, std::move(status));
  turn.worker.outbox.EndHandler(true);
  if (flow.breaks()) {
    state.current = nullptr;
    EnvelopeList front;
    front.PushBack(envelope);
    ActorContext::Of(turn.slot).Unstash(front);
    Suspend(turn, flow);
    return false;
  }
  timing.Record();
  if (!status.ok()) Fail(turn, status, state.current);
  if (Envelope* const ended = std::exchange(state.current, nullptr)) EndEnvelope(turn.worker.cache(), ended);
  return true;
}

absl::Status MessageInvoker::CallAfter(TurnState& state, Envelope& message, size_t entered, absl::Status status) const {
  const Interception at{state.self(), message};
  while (entered > 0) {
    --entered;
    FailureCause cause{};
    absl::Status after = Guarded(
        [&] {
          middleware_[entered]->AfterReceive(at, status);
          return absl::OkStatus();
        },
        [&] { return absl::StrCat("a middleware after ", HandlerOf(message)); }, cause);
    // The first error stays.
    if (!status.ok() || after.ok()) continue;
    status = std::move(after);
    state.cause = cause;
  }
  return status;
}

absl::Status MessageInvoker::OnHandlerEnd(TurnState& state, Envelope& message, absl::Status status) {
  return CallAfter(state, message, middleware_.size(), std::move(status));
}

void MessageInvoker::Suspend(Turn turn, const MiddlewareFlow& flow) {
  // The other reasons have gates that only their own signals clear, and those would not come.
  turn.state().Set(flow.reason() == SuspendReason::kRateLimit ? Gate::kRateLimited : Gate::kUserDefined);
  SlotExtension& extension = SlotExtension::Of(turn.slot);
  extension.suspended_for = flow.reason();
  extension.resume_on = flow.resume_on();
  if (flow.resume_on().kind() != ResumeCondition::Kind::kAfter) {
    extension.resume_key = flow.resume_on().key();
    return;
  }
  // A key that no program uses, different each time.
  extension.resume_key = SignalKey{UINT64_MAX - extension.waits++};
  const auto signal = [actor = turn.state().self(), key = extension.resume_key] { Signal(actor, key); };
  // Without a timer the actor would wait for ever. So it resumes at once, and the middleware is
  // called again.
  if (turn.worker.toolbox == nullptr || !turn.worker.toolbox->ScheduleAfter(flow.resume_on().delay(), signal).ok())
    signal();
}

void MessageInvoker::Fail(Turn turn, const absl::Status& error, Envelope* message) {
  const FailureCause cause = std::exchange(turn.state().cause, FailureCause::kReturned);
  Fail(turn, error, cause, message);
}

void MessageInvoker::Fail(Turn turn, const absl::Status& error, FailureCause cause, Envelope* message) {
  ++turn.state().failures;
  turn.worker.lifecycle.OnFailure(turn, error, cause, message);
  turn.worker.outbox.EndHandler(true);
}

absl::Status MessageInvoker::Call(std::string_view what, absl::FunctionRef<absl::Status()> code, FailureCause* cause) {
  FailureCause unused{};
  return Guarded([&] { return code(); }, [&] { return std::string(what); }, cause == nullptr ? unused : *cause);
}

void MessageInvoker::HandleAnswer(Turn turn, ActorRef ask, Envelope& answer) {
  absl::Status status = Guarded([&] { return turn.slot.instance->OnReply(ActorContext::Of(turn.slot), ask, &answer); },
                                [&] { return HandlerOf(answer); }, turn.state().cause);
  if (!status.ok()) Fail(turn, status, &answer);
}

void MessageInvoker::HandleAskFailure(Turn turn, ActorRef ask, absl::Status error) {
  absl::Status status =
      Guarded([&] { return turn.slot.instance->OnReply(ActorContext::Of(turn.slot), ask, std::move(error)); },
              [] { return std::string("a handler of a failed ask"); }, turn.state().cause);
  if (!status.ok()) Fail(turn, status, nullptr);
}

void MessageInvoker::CallForReply(Turn turn, const MessageType* asked, Envelope* answer,
                                  absl::FunctionRef<absl::Status()> code) {
  absl::Status status =
      Guarded([&] { return code(); }, [&] { return absl::StrCat("a handler of the reply to ", ToAbsl(asked->name())); },
              turn.state().cause);
  if (!status.ok()) Fail(turn, status, answer);
}

void MessageInvoker::CancelHandlers(Turn turn) {
  if (turn.slot.extension == nullptr || turn.slot.extension->handlers.empty()) return;
  const ActorRef self = turn.state().self();
  turn.slot.extension->handlers.Clear([&](const Envelope& message) {
    return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                     absl::StrCat(ToAbsl(message.type()->name()), " gets no reply: ", lifecycle_.PathOf(self),
                                  " is stopped while its handler waits; a PoisonPill would let the handler finish"));
  });
}

void MessageInvoker::End(Turn turn) {
  ActorSlot& slot = turn.slot;
  TurnState& state = turn.state();
  // The frames of handlers end before the last hook and before the objects that they point to.
  CancelHandlers(turn);
  lifecycle_.OnEnding(turn);
  turn.worker.outbox.EndHandler(false);
  // After the last hook, which may have asked and sent.
  if (slot.extension != nullptr) {
    CloseAsks(turn);
    ForgetFullTargets(turn);
  }
  slot.gate = 0;
  slot.failures = 0;
  slot.mailbox.lists.system = nullptr;
  if ((slot.flags() & kLimitedFlag) != 0) CloseLimits(turn);
  if (SlotExtension* const extension = std::exchange(slot.extension, nullptr)) {
    if (extension->order != nullptr) DeadLetters(turn, extension->order->TakeAll());
    state.ended_state = std::move(extension->lifecycle);
    delete extension;  // NOLINT(cppcoreguidelines-owning-memory): the slot owned it.
  }
  if (!state.lists.user.empty()) DeadLetters(turn, std::exchange(state.lists.user, {}));
  while (!slot.mailbox.inbox.TryGoIdle()) {
    state.lists.Take(slot.mailbox.inbox);
    EnvelopeList left;
    left.first = std::exchange(state.lists.system, nullptr);
    DeadLetters(turn, left);
    DeadLetters(turn, std::exchange(state.lists.user, {}));
  }
  lifecycle_.OnEnded(turn);
  turn.worker.outbox.EndHandler(false);
}

void MessageInvoker::DeadLetters(Turn turn, EnvelopeList list) {
  while (Envelope* const envelope = list.PopFront()) {
    if (!envelope->is_system() && !IsMailboxBell(*envelope)) ++turn.state().dropped;
    turn.worker.DeadLetter(envelope, &turn.slot, DeadLetterReason::kStopped);
  }
}

void CallForReply(const MessageType* asked, Envelope* answer, absl::FunctionRef<absl::Status()> code) {
  ActorWorker& worker = *ActorWorker::Current();
  MessageInvoker::CallForReply(worker.turn(), asked, answer, code);
}

namespace {

// Runs before main, when no actor runs yet.
[[maybe_unused]] const bool installs_on_reply =
    (InstallOnReply({.reply = &MessageInvoker::HandleAnswer, .error = &MessageInvoker::HandleAskFailure}), true);

}  // namespace

}  // namespace fraktor::inline v0::actor_internal
