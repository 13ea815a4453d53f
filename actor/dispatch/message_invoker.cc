#include "fraktor/actor/dispatch/message_invoker.h"

#include <cxxabi.h>

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/ask/reply_promise.h"
#include "fraktor/actor/await/awaiting_handler.h"
#include "fraktor/actor/await/room_wait.h"
#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/send/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/scheduler_signals.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// The exception that is being handled, as an error. `cause` becomes kThrown or kThrownUnknown. A
// function of its own keeps the callers small.
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

// Calls code that is not ours. Something thrown becomes an error, and sets `cause`.
template <class Call, class Describe>
[[gnu::always_inline]] inline absl::Status Guarded(Call&& call, Describe&& describe, FailureCause& cause) {
  try {
    return std::forward<Call>(call)();
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (...) {
    return ThrownError(std::forward<Describe>(describe), cause);
  }
}

std::string HandlerOf(const Envelope& message) { return absl::StrCat("a handler of ", ToAbsl(message.type()->name())); }

[[gnu::always_inline]] inline absl::Status Receive(Turn& turn, ActorSlot& slot, Envelope& message) {
  return Guarded([&] { return slot.instance->Receive(ActorContext::Of(slot), message); },
                 [&] { return HandlerOf(message); }, turn.cause);
}

// The bits that a middleware may have set, and a signal clears.
constexpr uint8_t kSignalledGates = Gate::kRateLimited | Gate::kUserDefined;

// The gate of a turn as the slot keeps it.
uint8_t GateToKeep(const Turn& turn) {
  return turn.gate & static_cast<uint8_t>(~static_cast<uint8_t>(Gate::kIntercepted));
}

// Times a message that was sampled: how long it has waited, and how long it is being handled.
class Timing {
 public:
  Timing(ActorWorker& worker, const ActorSlot& slot, Envelope& message)
      : worker_(worker), is_on_(worker.metrics != nullptr && worker.toolbox != nullptr && message.has_trace()) {
    if (!is_on_) return;
    type_ = slot.type.load(std::memory_order_relaxed);
    begin_ns_ = worker.toolbox->Now().nanoseconds();
    waited_ns_ = begin_ns_ - message.trace()->enqueued_ns;
  }

  // The message has been handled, and may have ended.
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

inline void MessageInvoker::BeginTurn(ActorWorker& worker, ActorSlot& slot) const {
  Turn& turn = worker.turn;
  turn.slot.store(&slot, std::memory_order_relaxed);
  turn.word = slot.word();
  // One by one: they were written so a moment ago, and a wider load would have to wait until that is in the cache.
  Envelope* first = slot.mailbox.lists.user.first;
  asm("" : "+r"(first));
  turn.lists.user.first = first;
  turn.lists.user.last = slot.mailbox.lists.user.last;
  turn.lists.system = slot.mailbox.lists.system;
  turn.failures = slot.failures;
  turn.gate = slot.gate | run_gate_;
  slot.mailbox.lists.user.first = nullptr;
}

inline InvokeResult MessageInvoker::EndTurn(ActorWorker& worker, uint32_t handled, InvokeResult kind) {
  worker.CountRun(worker.turn.running()->type.load(std::memory_order_relaxed), handled);
  worker.turn.slot.store(nullptr, std::memory_order_relaxed);
  return kind;
}

// The same for an actor that has handled something and gone idle.
inline InvokeResult MessageInvoker::EndShortTurn(ActorWorker& worker, const ActorSlot& slot, uint32_t handled) {
  const ObservedId type = slot.type.load(std::memory_order_relaxed);
  // Mostly it was one message, which had not waited.
  if (handled == worker.turn.uncounted) [[likely]] {
    worker.passes->Count(type);
  } else {
    worker.CountRun(type, handled);
  }
  worker.turn.slot.store(nullptr, std::memory_order_relaxed);
  return InvokeResult::kCompleted;
}

inline void MessageInvoker::WriteBack(const Turn& turn, ActorSlot& slot) {
  slot.mailbox.lists = turn.lists;
  slot.failures = turn.failures;
  slot.gate = GateToKeep(turn);
}

// The budget is used. The caller of Run holds the mailbox, in which there may be more.
inline InvokeResult MessageInvoker::Yield(ActorWorker& worker, ActorSlot& slot, uint32_t handled) {
  WriteBack(worker.turn, slot);
  return EndTurn(worker, handled, InvokeResult::kYielded);
}

InvokeResult MessageInvoker::Run(ActorWorker& worker, ActorSlot& slot) {
  BeginTurn(worker, slot);
  Turn& turn = worker.turn;
  Inbox& inbox = slot.mailbox.inbox;
  uint32_t used = 0;    // Messages of this turn,
  uint32_t system = 0;  // and the system messages among them, which metrics do not count.

  // Between two messages the hint is looked at and not the senders' word, for which they fight.
  bool look_for_system = turn.lists.system != nullptr || inbox.HasSystem();
  for (;;) {
    if (look_for_system) [[unlikely]] {
      const uint32_t handled = HandleSystemMessages(worker, slot, used);
      used += handled;
      system += handled;
      if (turn.lists.system != nullptr) return Yield(worker, slot, used - system);
    }
    if (turn.gated()) [[unlikely]] {
      const Step step = StepGated(worker, slot);
      if (step == Step::kIdle) return EndTurn(worker, used - system, InvokeResult::kCompleted);
      if (step == Step::kEnded)
        return EndTurn(worker, used - system + std::exchange(turn.dropped, 0), InvokeResult::kStopped);
      if (step == Step::kParked) {
        return EndTurn(worker, used - system, turn.failures == 0 ? InvokeResult::kSuspended : InvokeResult::kFailed);
      }
      look_for_system = turn.lists.system != nullptr || inbox.HasSystem();
      if (step == Step::kGoOn) continue;
    } else {
      Envelope* const envelope = turn.lists.user.PopFront();
      if (envelope == nullptr) {
        // Not if a system message is there either.
        if (inbox.TryGoIdle()) return EndTurn(worker, used - system, InvokeResult::kCompleted);
        slot.system_hint.store(false, std::memory_order_relaxed);
        turn.lists.Take(inbox);
        look_for_system = turn.lists.system != nullptr;
        continue;
      }
      if (envelope->target_word() == turn.word) [[likely]] {
        const bool more = envelope->has_trace() ? HandleTraced(worker, slot, envelope) : Handle(worker, slot, envelope);
        // Mostly there was one message. Not if a system message has come meanwhile.
        if (!more && !turn.gated() && inbox.TryGoIdle()) return EndShortTurn(worker, slot, used - system + 1);
      } else if (!HandleMarked(worker, slot, envelope)) {
        worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
      }
      look_for_system = slot.system_hint.load(std::memory_order_relaxed);
    }
    // A suspended actor goes round once more, to park.
    if (++used >= worker.slice.messages() && !turn.suspended()) return Yield(worker, slot, used - system);
  }
}

// Whether there is anything in the mailbox afterwards.
[[gnu::always_inline]] inline bool MessageInvoker::Handle(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  Turn& turn = worker.turn;
  turn.current = envelope;
  absl::Status status = Receive(turn, slot, *envelope);
  const bool more = !turn.lists.user.empty() || slot.mailbox.inbox.HasNodes();
  worker.outbox.EndHandler(more);
  if (!status.ok()) [[unlikely]]
    Fail(worker, slot, status, turn.current);
  // Null if the handler has put it aside.
  if (Envelope* const ended = std::exchange(turn.current, nullptr)) EndEnvelope(worker.cache(), ended);
  return more;
}

// False if the message was for another actor.
[[gnu::noinline]] bool MessageInvoker::HandleMarked(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  if (static_cast<uint32_t>(envelope->target_word()) != static_cast<uint32_t>(worker.turn.word)) return false;
  Envelope* const received =
      (envelope->target_word() & kMarked) == 0 ? envelope : lifecycle_.OnMarkedMessage(worker, slot, envelope);
  if (received == nullptr) {
    worker.outbox.EndHandler(true);
  } else {
    HandleTraced(worker, slot, received);
  }
  return true;
}

// Lets the handlers go on that have been woken, unless the actor waits for a verdict.
void MessageInvoker::ResumeHandlers(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  HandlerQueue& handlers = slot.extension->handlers;
  while (handlers.has_woken() && turn.failures == 0 && !turn.Has(Gate::kStopping)) {
    EnvelopePtr message;
    absl::Status status =
        Guarded([&] { return handlers.ResumeWoken(ActorContext::Of(slot), turn, message); },
                [&] { return message == nullptr ? std::string("a task") : HandlerOf(*message); }, turn.cause);
    if (turn.Has(Gate::kAwaiting) && !handlers.HasExclusive()) turn.Clear(Gate::kAwaiting);
    // One that waits again leaves the user messages where they are.
    worker.outbox.EndHandler(
        handlers.has_woken() || turn.lists.system != nullptr ||
        (!turn.Has(Gate::kAwaiting) && (!turn.lists.user.empty() || slot.mailbox.inbox.HasNodes())));
    if (slot.extension->watches_activity) worker.lifecycle.OnActivity(worker, slot);
    if (!status.ok()) {
      // Whoever restarts the actor may want the message.
      Envelope* const outer = std::exchange(turn.current, message.release());
      Fail(worker, slot, status, turn.current);
      if (Envelope* const ended = std::exchange(turn.current, outer)) EndEnvelope(worker.cache(), ended);
    }
  }
}

[[gnu::noinline]] bool MessageInvoker::HandleTraced(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  Timing timing(worker, slot, *envelope);
  const bool more = Handle(worker, slot, envelope);
  timing.Record();
  return more;
}

// Handles system messages, also those that come meanwhile, as far as the budget goes, of which
// `used` are used; but one in each turn. Returns how many. Those that are left are in the turn's
// list.
uint32_t MessageInvoker::HandleSystemMessages(ActorWorker& worker, ActorSlot& slot, uint32_t used) {
  Turn& turn = worker.turn;
  Inbox& inbox = slot.mailbox.inbox;
  uint32_t handled = 0;
  for (; used + handled == 0 || used + handled < worker.slice.messages(); ++handled) {
    if (turn.lists.system == nullptr) {
      if (handled != 0 && !inbox.HasSystem()) break;
      slot.system_hint.store(false, std::memory_order_relaxed);
      turn.lists.Take(inbox);
      if (turn.lists.system == nullptr) break;
    }
    Envelope* const envelope = turn.lists.PopSystem();
    if (static_cast<uint32_t>(envelope->target_word()) == static_cast<uint32_t>(turn.word)) {
      turn.current = envelope;
      if (run_gate_ != 0) [[unlikely]] {
        for (const auto& part : middleware_) part->OnSystemMessage({turn.self(), *envelope});
      }
      // Who has no extension waits for nothing of the scheduler; but anybody may be signalled.
      const bool is_signal = slot.extension == nullptr ? HandleAnybodysSignal(worker, slot, *envelope)
                                                       : HandleSignal(worker, slot, *envelope);
      if (!is_signal) lifecycle_.OnSystemMessage(worker, slot, *envelope);
      worker.outbox.EndHandler(!turn.lists.empty() || slot.mailbox.inbox.HasNodes());
      turn.current = nullptr;
      EndEnvelope(worker.cache(), envelope);
    } else {
      worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
    }
  }
  if (slot.extension != nullptr && slot.extension->handlers.has_woken()) ResumeHandlers(worker, slot);
  // What a system message opened or closed must be in the slot when the actor goes idle.
  slot.mailbox.lists.system = nullptr;
  slot.failures = turn.failures;
  slot.gate = GateToKeep(turn);
  return handled;
}

bool MessageInvoker::HandleAnybodysSignal(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  if (message.Is<SignalArrived>()) return true;
  if (auto* opened = message.TryAs<PromiseOpened>()) {
    ReceiveOpened(worker, slot, *opened);
    return true;
  }
  const auto* const inquiry = message.TryAs<DescribeBusiness>();
  if (inquiry == nullptr) return false;
  SendReport(worker, slot, *inquiry);
  return true;
}

bool MessageInvoker::HandleSignal(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  if (ReceiveAnswer(worker, slot, message)) return true;
  if (const auto* signal = message.TryAs<SignalArrived>()) {
    Turn& turn = worker.turn;
    const SlotExtension* const extension = slot.extension;
    if ((turn.gate & kSignalledGates) != 0 && extension != nullptr && extension->resume_key == signal->key) {
      turn.gate &= static_cast<uint8_t>(~kSignalledGates);
    }
    return true;
  }
  if (const auto* found = message.TryAs<RoomFound>()) {
    GoOnAfterRoom(worker, slot, *found);
    return true;
  }
  if (const auto* late = message.TryAs<RoomTimedOut>()) {
    GiveUpRoom(worker, slot, *late);
    return true;
  }
  if (const auto* woken = message.TryAs<HandlerWoken>()) {
    slot.extension->handlers.MarkWoken(woken->wait);
    return true;
  }
  if (const auto* reached = message.TryAs<AskDeadlineReached>()) {
    ExpireAsks(worker, slot, reached->deadline);
    return true;
  }
  if (const auto* report = message.TryAs<BusinessReport>()) {
    ReceiveReport(worker, slot, *report);
    return true;
  }
  if (const auto* over = message.TryAs<InquiryOver>()) {
    EndInquiry(worker, slot, over->inquiry);
    return true;
  }
  return HandleAnybodysSignal(worker, slot, message);
}

MessageInvoker::Step MessageInvoker::StepGated(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  if (turn.Has(Gate::kStarting)) {
    Start(worker, slot);
    return Step::kGoOn;
  }
  if (turn.suspended()) {
    if (turn.Has(Gate::kStopping)) {
      // Those who ask need not wait until the children have ended.
      CancelHandlers(worker, slot);
      if (lifecycle_.MayEnd(worker, slot)) {
        End(worker, slot);
        return Step::kEnded;
      }
    }
    return Park(turn, slot);
  }
  if (turn.Has(Gate::kOrdered) && HasOrder(slot) && slot.mailbox.inbox.HasNodes()) {
    // Only who knows all messages knows the first.
    slot.system_hint.store(false, std::memory_order_relaxed);
    turn.lists.Take(slot.mailbox.inbox);
    if (turn.lists.system != nullptr) return Step::kGoOn;
  }
  Envelope* envelope = NextOrdered(worker, slot);
  if (envelope == nullptr) {
    if (slot.mailbox.inbox.TryGoIdle()) return Step::kIdle;
    slot.system_hint.store(false, std::memory_order_relaxed);
    turn.lists.Take(slot.mailbox.inbox);
    return Step::kGoOn;
  }
  if (static_cast<uint32_t>(envelope->target_word()) != static_cast<uint32_t>(turn.word)) {
    worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
    return Step::kHandled;
  }
  if ((envelope->target_word() & kMarked) != 0) {
    envelope = lifecycle_.OnMarkedMessage(worker, slot, envelope);
    if (envelope == nullptr) {
      worker.outbox.EndHandler(true);
      return Step::kHandled;
    }
  }
  const bool is_activity = !envelope->type()->leaves_receive_timeout();
  if (middleware_.empty()) {
    HandleTraced(worker, slot, envelope);
  } else if (!HandleIntercepted(worker, slot, envelope)) {
    return Step::kGoOn;
  }
  if (is_activity && slot.extension != nullptr && slot.extension->watches_activity) lifecycle_.OnActivity(worker, slot);
  return Step::kHandled;
}

bool MessageInvoker::HasOrder(const ActorSlot& slot) {
  return slot.extension != nullptr && slot.extension->order != nullptr;
}

// Gives the mailbox up until a system message comes, unless there is one.
MessageInvoker::Step MessageInvoker::Park(Turn& turn, ActorSlot& slot) {
  WriteBack(turn, slot);
  if (slot.mailbox.inbox.TryPark()) return Step::kParked;
  slot.mailbox.lists.user.first = nullptr;
  slot.system_hint.store(false, std::memory_order_relaxed);
  turn.lists.Take(slot.mailbox.inbox);
  return Step::kGoOn;
}

Envelope* MessageInvoker::NextOrdered(ActorWorker& worker, ActorSlot& slot) {
  EnvelopeList& user = worker.turn.lists.user;
  OrderedEnvelopes* const order = HasOrder(slot) ? slot.extension->order.get() : nullptr;
  if (order != nullptr) {
    while (Envelope* const envelope = user.PopFront()) order->Add(envelope);
  }
  while (Envelope* const envelope = order != nullptr ? order->PopFront() : user.PopFront()) {
    if ((slot.flags() & kLimitedFlag) == 0) return envelope;
    if (Envelope* const taken = TakeLimited(worker, slot, envelope)) return taken;
  }
  return nullptr;
}

void MessageInvoker::Start(ActorWorker& worker, ActorSlot& slot) {
  worker.turn.Clear(Gate::kStarting);
  slot.gate = GateToKeep(worker.turn);  // Whoever goes idle writes nothing back.
  absl::Status started = Call("starting an actor", [&] { return lifecycle_.OnStart(worker, slot); });
  worker.outbox.EndHandler(true);
  if (!started.ok()) Fail(worker, slot, started, FailureCause::kInitialization, nullptr);
}

// False if a middleware has broken the chain: the message is in the mailbox again.
bool MessageInvoker::HandleIntercepted(ActorWorker& worker, ActorSlot& slot, Envelope* envelope) {
  Turn& turn = worker.turn;
  const Interception at{turn.self(), *envelope};
  size_t entered = 0;
  MiddlewareFlow flow = MiddlewareFlow::Continue();
  turn.current = envelope;
  Timing timing(worker, slot, *envelope);
  absl::Status status = Guarded(
      [&] {
        for (; entered < middleware_.size(); ++entered) {
          flow = middleware_[entered]->BeforeReceive(at);
          if (flow.breaks()) return absl::AbortedError("a middleware held the message back");
        }
        return slot.instance->Receive(ActorContext::Of(slot), *envelope);
      },
      [&] {
        // Only where all have let the message through was it the handler.
        return entered < middleware_.size() ? absl::StrCat("a middleware before ", HandlerOf(*envelope))
                                            : HandlerOf(*envelope);
      },
      turn.cause);
  const bool stashed = turn.current == nullptr;
  while (entered > 0 && !stashed) {
    --entered;
    FailureCause cause{};
    absl::Status after = Guarded(
        [&] {
          middleware_[entered]->AfterReceive(at, status);
          return absl::OkStatus();
        },
        [&] { return absl::StrCat("a middleware after ", HandlerOf(*envelope)); }, cause);
    // The first error counts.
    if (!status.ok()) continue;
    status = std::move(after);
    turn.cause = cause;
  }
  worker.outbox.EndHandler(true);
  if (flow.breaks()) {
    turn.current = nullptr;
    EnvelopeList front;
    front.PushBack(envelope);
    ActorContext::Of(slot).Unstash(front);
    Suspend(worker, slot, flow);
    return false;
  }
  timing.Record();
  if (!status.ok()) Fail(worker, slot, status, turn.current);
  if (Envelope* const ended = std::exchange(turn.current, nullptr)) EndEnvelope(worker.cache(), ended);
  return true;
}

void MessageInvoker::Suspend(ActorWorker& worker, ActorSlot& slot, const MiddlewareFlow& flow) {
  // The other reasons have signals of their own, which would not come.
  worker.turn.Set(flow.reason() == SuspendReason::kRateLimit ? Gate::kRateLimited : Gate::kUserDefined);
  SlotExtension& extension = SlotExtension::Of(slot);
  extension.suspended_for = flow.reason();
  extension.resume_on = flow.resume_on();
  if (flow.resume_on().kind() != ResumeCondition::Kind::kAfter) {
    extension.resume_key = flow.resume_on().key();
    return;
  }
  // A key that no user can have, another one each time.
  extension.resume_key = SignalKey{UINT64_MAX - extension.waits++};
  const auto signal = [actor = worker.turn.self(), key = extension.resume_key] { Signal(actor, key); };
  // Without a timer the actor would wait for ever: it goes on at once, and the middleware is asked again.
  if (worker.toolbox == nullptr || !worker.toolbox->ScheduleAfter(flow.resume_on().delay(), signal).ok()) signal();
}

void MessageInvoker::Fail(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, Envelope* message) {
  const FailureCause cause = std::exchange(worker.turn.cause, FailureCause::kReturned);
  Fail(worker, slot, error, cause, message);
}

void MessageInvoker::Fail(ActorWorker& worker, ActorSlot& slot, const absl::Status& error, FailureCause cause,
                          Envelope* message) {
  Turn& turn = worker.turn;
  ++turn.failures;
  worker.lifecycle.OnFailure(worker, slot, error, cause, message);
  worker.outbox.EndHandler(true);
}

absl::Status MessageInvoker::Call(std::string_view what, absl::FunctionRef<absl::Status()> code, FailureCause* cause) {
  FailureCause unused{};
  return Guarded([&] { return code(); }, [&] { return std::string(what); }, cause == nullptr ? unused : *cause);
}

void MessageInvoker::HandleAnswer(ActorWorker& worker, ActorSlot& slot, ActorRef ask, Envelope& answer) {
  absl::Status status = Guarded([&] { return slot.instance->OnReply(ActorContext::Of(slot), ask, &answer); },
                                [&] { return HandlerOf(answer); }, worker.turn.cause);
  if (!status.ok()) Fail(worker, slot, status, &answer);
}

void MessageInvoker::HandleAskFailure(ActorWorker& worker, ActorSlot& slot, ActorRef ask, absl::Status error) {
  absl::Status status = Guarded([&] { return slot.instance->OnReply(ActorContext::Of(slot), ask, std::move(error)); },
                                [] { return std::string("a handler of a failed ask"); }, worker.turn.cause);
  if (!status.ok()) Fail(worker, slot, status, nullptr);
}

void MessageInvoker::CallForReply(ActorWorker& worker, ActorSlot& slot, const MessageType* question, Envelope* answer,
                                  absl::FunctionRef<absl::Status()> code) {
  absl::Status status =
      Guarded([&] { return code(); },
              [&] { return absl::StrCat("a handler of the answer to ", ToAbsl(question->name())); }, worker.turn.cause);
  if (!status.ok()) Fail(worker, slot, status, answer);
}

void MessageInvoker::CancelHandlers(ActorWorker& worker, ActorSlot& slot) {
  if (slot.extension == nullptr || slot.extension->handlers.empty()) return;
  slot.extension->handlers.Clear([&](const Envelope& message) {
    return MakeError(
        absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
        absl::StrCat("nobody will answer ", ToAbsl(message.type()->name()), ": ", lifecycle_.PathOf(worker.turn.self()),
                     " is stopped while its handler waits; a PoisonPill would let the handler finish"));
  });
}

void MessageInvoker::End(ActorWorker& worker, ActorSlot& slot) {
  Turn& turn = worker.turn;
  // Frames go before the last hook, and before what they point to.
  CancelHandlers(worker, slot);
  lifecycle_.OnEnding(worker, slot);
  worker.outbox.EndHandler(false);
  // Also what was asked and sent in the last hook.
  if (slot.extension != nullptr) {
    CloseAsks(worker, slot);
    ForgetFullTargets(worker, slot);
  }
  slot.gate = 0;
  slot.failures = 0;
  slot.mailbox.lists.system = nullptr;
  if ((slot.flags() & kLimitedFlag) != 0) CloseLimits(worker, slot);
  if (SlotExtension* const extension = std::exchange(slot.extension, nullptr)) {
    if (extension->order != nullptr) DeadLetters(worker, slot, extension->order->TakeAll());
    turn.ended_state = std::move(extension->lifecycle);
    delete extension;  // NOLINT(cppcoreguidelines-owning-memory): the slot owned it.
  }
  if (!turn.lists.user.empty()) DeadLetters(worker, slot, std::exchange(turn.lists.user, {}));
  while (!slot.mailbox.inbox.TryGoIdle()) {
    turn.lists.Take(slot.mailbox.inbox);
    EnvelopeList left;
    left.first = std::exchange(turn.lists.system, nullptr);
    DeadLetters(worker, slot, left);
    DeadLetters(worker, slot, std::exchange(turn.lists.user, {}));
  }
  lifecycle_.OnEnded(worker, slot);
  worker.outbox.EndHandler(false);
}

void MessageInvoker::DeadLetters(ActorWorker& worker, ActorSlot& slot, EnvelopeList list) {
  while (Envelope* const envelope = list.PopFront()) {
    if (!envelope->is_system() && !IsMailboxBell(*envelope)) ++worker.turn.dropped;
    worker.DeadLetter(envelope, &slot, DeadLetterReason::kStopped);
  }
}

void CallForReply(const MessageType* question, Envelope* answer, absl::FunctionRef<absl::Status()> code) {
  ActorWorker& worker = *ActorWorker::Current();
  MessageInvoker::CallForReply(worker, *worker.turn.running(), question, answer, code);
}

namespace {

// Before main: no actor runs yet.
[[maybe_unused]] const bool installs_on_reply =
    (InstallOnReply({.reply = &MessageInvoker::HandleAnswer, .error = &MessageInvoker::HandleAskFailure}), true);

}  // namespace

}  // namespace fraktor::inline v0
