#include "fraktor/actor/ask/reply_promise.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/end_cause.h"
#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/send/limited_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/actor/send/remote_sending.h"
#include "fraktor/actor/send/system_core.h"
#include "fraktor/actor/slot/actor_lifecycle.h"
#include "fraktor/actor/slot/scheduler_signals.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/fork_guard.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// Written before main, and not changed afterwards.
constinit OnReplyFunctions on_reply{};

constexpr int64_t kNever = Instant::InfiniteFuture().nanoseconds();
// So many questions that wait for each other are looked at.
constexpr int kMaxChain = 64;

PackedPromise Pack(ActorRef promise) {
  return promise.IsNoOne() ? PackedPromise{}
                           : PackedPromise{PromiseSlotTable::IndexOf(promise.promise_slot()), promise.generation()};
}

ActorRef PromiseAt(PackedPromise packed) {
  if (packed.IsNoOne()) return {};
  PromiseSlot* const slot = ProcessPromises().At(packed.slot);
  return slot == nullptr ? ActorRef() : ActorRef(slot, packed.generation | ActorRef::kPromise);
}

// What `read` says of a promise that nobody has answered yet; nothing otherwise. The promise may be used again while it
// is read: the generation decides afterwards.
template <class Read>
auto ReadOpen(ActorRef promise, Read read) -> std::optional<decltype(read(std::declval<const PromiseSlot&>()))> {
  if (!promise.IsPromise()) return std::nullopt;
  const PromiseSlot* const slot = PromiseSlotTable::Resolve({promise.promise_slot(), promise.generation()});
  if (slot == nullptr) return std::nullopt;
  auto value = read(*slot);
  if (!slot->IsAt(promise.generation())) return std::nullopt;
  return value;
}

// The actor that was asked, if it still lives and is of this process; without the flags of its references.
ActorRef LivingTarget(const PromiseSlot::Target& target) {
  const ActorRef ref(target.slot, target.low_word);
  return !target.is_remote && ref.IsCurrent() ? ref : ActorRef();
}

// The question that the actor is answering in this turn, by a coroutine; no one if it is none, or has been passed on.
ActorRef Answering(const Turn& turn) {
  if (!turn.in_task || turn.current == nullptr || (turn.current->target_word() & kForwarded) != 0) return {};
  const ActorRef sender = turn.current->sender();
  return sender.IsPromise() ? sender : ActorRef();
}

bool IsSame(ActorRef a, ActorRef b) { return a.Plain() == b.Plain(); }

// The chain of those that wait for this turn, if `target` is one of them: it would wait for itself.
[[gnu::noinline]] absl::Status FindCircle(const ActorWorker& worker, ActorRef target) {
  const Turn& turn = worker.turn;
  absl::InlinedVector<ActorRef, 8> chain = {turn.self()};
  bool is_circle = IsSame(target, turn.self()) && turn.takes_no_other;
  for (ActorRef promise = Answering(turn); !promise.IsNoOne() && !is_circle && chain.size() < kMaxChain;) {
    const std::optional<PackedPromise> answering =
        ReadOpen(promise, [](const PromiseSlot& slot) { return slot.answering(); });
    const ActorRef asker = AskerOf(promise);
    // One that is not bound to its question can answer others meanwhile.
    if (asker.IsNoOne() || !answering.has_value() || answering->slot == PromiseSlot::kFree) break;
    chain.push_back(asker);
    is_circle = IsSame(asker, target);
    promise = PromiseAt(*answering);
  }
  if (!is_circle) return absl::OkStatus();
  std::string names = worker.lifecycle.PathOf(target);
  for (const ActorRef actor : chain) {
    names = absl::StrCat(worker.lifecycle.PathOf(actor), " asks ", names);
    if (IsSame(actor, target)) break;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kAskCircle,
                   absl::StrCat("a circle of questions, in which each waits for the next: ", names,
                                "; let a handler interleave, or tell instead of asking"));
}

[[gnu::always_inline]] inline bool MayBeCircle(const ActorWorker& worker, ActorRef target) {
  const Turn& turn = worker.turn;
  if (!turn.in_task || target.IsNoOne()) return false;
  // Otherwise nobody waits for this turn, but perhaps itself.
  return !Answering(turn).IsNoOne() || target.any_slot() == turn.running();
}

void DisarmTimer(ActorWorker& worker, SlotExtension& extension) {
  if (extension.ask_timer == Instant::InfiniteFuture()) return;
  worker.toolbox->CancelTimer(extension.ask_timer_id);
  extension.ask_timer = Instant::InfiniteFuture();
}

// One timer for the earliest deadline.
absl::Status ArmTimer(ActorWorker& worker, SlotExtension& extension, Instant deadline) {
  if (extension.ask_timer <= deadline) return absl::OkStatus();
  FRAKTOR_ASSIGN_OR_RETURN(const TimerId timer,
                           worker.toolbox->ScheduleAt(deadline, [asker = worker.turn.self(), deadline] {
                             TellSystem(asker, MakeEnvelope<AskDeadlineReached>(ActorRef(), deadline));
                           }));
  DisarmTimer(worker, extension);
  extension.ask_timer = deadline;
  extension.ask_timer_id = timer;
  return absl::OkStatus();
}

// Gives a promise that is out of the list its answer. In the asker's turn.
void ConcludeBy(ActorWorker& worker, ActorSlot& slot, ActorRef ask, AskCompletion* completion, Envelope& answer) {
  if (completion == nullptr) {
    on_reply.reply(worker, slot, ask, answer);
    return;
  }
  const bool outer = std::exchange(worker.turn.takes_answer, true);
  completion->Answer(answer);
  worker.turn.takes_answer = outer;
}

// The same with the reason why there is none.
void Conclude(ActorWorker& worker, ActorSlot& slot, ActorRef ask, AskCompletion* completion, absl::Status error) {
  if (completion == nullptr) {
    on_reply.error(worker, slot, ask, std::move(error));
    return;
  }
  const bool outer = std::exchange(worker.turn.takes_answer, true);
  completion->Fail(std::move(error));
  worker.turn.takes_answer = outer;
}

// What the asker hears. `target` is its path, `business` what it is at.
absl::Status TimedOut(const ActorWorker& worker, std::string_view target, const AskCompletion& completion,
                      std::string_view business) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
      absl::StrCat("ask timed out: ", ToAbsl(target), " has not answered ", ToAbsl(completion.question->name()), " of ",
                   worker.lifecycle.PathOf(worker.turn.self()), " within ", absl::FormatDuration(completion.timeout),
                   "; ", ToAbsl(business)));
}

// It could take a message, or is taking one.
bool IsIdle(const BusinessReport& report) { return !report.has_failed && !report.has_handler && report.gate == 0; }

std::string TextOfSuspension(const BusinessReport& report) {
  const ResumeCondition& resume_on = report.resume_on;
  return absl::StrCat("a middleware suspends it ",
                      resume_on.kind() == ResumeCondition::Kind::kAfter
                          ? absl::StrCat("for ", absl::FormatDuration(resume_on.delay()))
                          : absl::StrCat("until signal ", resume_on.key().value),
                      " (", ToAbsl(ToString(report.suspended_for)), ")");
}

std::string WhatItIsAt(const BusinessReport& report) {
  const auto has = [&](Gate gate) { return (report.gate & static_cast<uint8_t>(gate)) != 0; };
  if (report.has_failed) return "it has failed and waits for the verdict of its supervisor";
  if (has(Gate::kStopping)) return "it is stopping";
  if (report.has_handler) {
    return absl::StrCat(
        report.handler == nullptr ? "a task of it" : absl::StrCat("its handler of ", ToAbsl(report.handler->name())),
        " is waiting", has(Gate::kAwaiting) ? "" : " and lets other messages in");
  }
  if (has(Gate::kBackpressure)) return "it waits for room in a mailbox that it has sent to";
  if (has(Gate::kRateLimited) || has(Gate::kUserDefined)) return TextOfSuspension(report);
  return "none of its handlers is waiting";
}

std::string TextOf(const BusinessReport& report) {
  const uint64_t n = report.waiting;
  return absl::StrCat(n == 0 ? "no message waits" : absl::StrCat(n, n == 1 ? " message waits" : " messages wait"),
                      n == BusinessReport::kMaxCounted ? " or more" : "", " in its mailbox, and ", WhatItIsAt(report),
                      n == 0 && IsIdle(report) ? ": if it has handled the question, it has forgotten to answer (what a "
                                                 "handler returns, or context.Reply)"
                                               : "");
}

// A promise is over.
void TellPromiseWatchers(const ActorWorker& worker, SlotExtension& extension, ActorRef promise) {
  if (extension.ask_extras == nullptr) [[likely]]
    return;
  auto& watches = extension.ask_extras->watches;
  for (size_t i = 0; i < watches.size();) {
    if (!IsSame(watches[i].promise, promise)) {
      ++i;
      continue;
    }
    const SlotExtension::AskExtras::PromiseWatch watch = watches[i];
    watches[i] = watches.back();
    watches.pop_back();
    worker.lifecycle.OnPromiseEnded(watch.promise, watch.watcher);
  }
}

// Asks the target of a question that is over what it is at, and keeps the completion until then. False if nobody is
// there to ask.
bool Inquire(ActorWorker& worker, SlotExtension& extension, ActorRef ask, ActorRef target, AskCompletion* completion) {
  if (extension.ask_extras == nullptr) extension.ask_extras = std::make_unique<SlotExtension::AskExtras>();
  SlotExtension::AskExtras& extras = *extension.ask_extras;
  SlotExtension::AskExtras::LateAsk late{.ask = ask,
                                         .target = target,
                                         .target_path = worker.lifecycle.PathOf(target),
                                         .completion = completion,
                                         .inquiry = extras.inquiries + 1,
                                         .timer = {}};
  const ActorRef self = worker.turn.self();
  const absl::StatusOr<TimerId> timer = worker.toolbox->ScheduleAfter(kReportGrace, [self, inquiry = late.inquiry] {
    TellSystem(self, MakeEnvelope<InquiryOver>(ActorRef(), inquiry));
  });
  if (!timer.ok()) return false;
  if (TellSystem(target, MakeEnvelope<DescribeBusiness>(worker.cache(), ActorRef(), self, late.inquiry)) != nullptr) {
    worker.toolbox->CancelTimer(*timer);
    return false;
  }
  late.timer = *timer;
  ++extras.inquiries;
  extras.late.push_back(std::move(late));
  return true;
}

// Fails the questions that have waited for this inquiry.
void ConcludeLate(ActorWorker& worker, ActorSlot& slot, uint64_t inquiry, const BusinessReport* report) {
  if (slot.extension->ask_extras == nullptr) return;
  auto& late = slot.extension->ask_extras->late;
  const auto is_other = [&](const auto& ask) { return ask.inquiry != inquiry; };
  const auto first = std::stable_partition(late.begin(), late.end(), is_other);
  std::vector<SlotExtension::AskExtras::LateAsk> over(std::make_move_iterator(first),
                                                      std::make_move_iterator(late.end()));
  late.erase(first, late.end());
  if (over.empty()) return;
  worker.toolbox->CancelTimer(over.front().timer);
  const std::string business =
      report != nullptr ? TextOf(*report) : worker.lifecycle.DescribeFromOutside(over.front().target);
  for (const auto& ask : over) {
    Conclude(worker, slot, ask.ask, ask.completion, TimedOut(worker, ask.target_path, *ask.completion, business));
  }
}

// A question is over. `first_inquiry` is the first of this round: questions to one target share one.
void FailLate(ActorWorker& worker, ActorSlot& slot, ActorRef ask, const PromiseSlot::Target& asked,
              AskCompletion* completion, uint64_t first_inquiry) {
  if (completion == nullptr) {
    Conclude(worker, slot, ask, nullptr, absl::DeadlineExceededError("no answer in time"));
    return;
  }
  if (asked.is_remote) {
    const auto& there = static_cast<const RemoteSlot&>(*asked.slot);
    const RemoteLink::Asked known = there.link->DescribeAsked(there, asked.low_word);
    Conclude(worker, slot, ask, completion, TimedOut(worker, known.path, *completion, known.business));
    return;
  }
  const ActorRef target = LivingTarget(asked);
  if (target.IsNoOne()) {
    const bool was_promise = asked.slot == nullptr;
    const std::string path =
        was_promise ? std::string("a promise") : worker.lifecycle.PathOf(ActorRef(asked.slot, asked.low_word));
    Conclude(worker, slot, ask, completion,
             TimedOut(worker, path, *completion,
                      was_promise ? "it belongs to another question" : "it has ended without an answer"));
    return;
  }
  if (SlotExtension::AskExtras* const extras = slot.extension->ask_extras.get();
      extras != nullptr && !extras->late.empty()) {
    const SlotExtension::AskExtras::LateAsk& last = extras->late.back();
    if (last.inquiry >= first_inquiry && IsSame(last.target, target)) {
      SlotExtension::AskExtras::LateAsk late = last;
      late.ask = ask;
      late.completion = completion;
      extras->late.push_back(std::move(late));
      return;
    }
  }
  if (Inquire(worker, *slot.extension, ask, target, completion)) return;
  Conclude(
      worker, slot, ask, completion,
      TimedOut(worker, worker.lifecycle.PathOf(target), *completion, worker.lifecycle.DescribeFromOutside(target)));
}

absl::Status SystemEnded() { return absl::UnavailableError("the actor system has ended"); }

Instant DeadlineAfter(RuntimeToolbox& toolbox, absl::Duration timeout) {
  return timeout == absl::InfiniteDuration() ? Instant::InfiniteFuture() : toolbox.Now() + timeout;
}

// The same for a question of an actor, whose timeouts are mostly alike: making nanoseconds of one takes as long as all
// the rest.
[[gnu::always_inline]] inline Instant DeadlineAfter(ActorWorker& worker, SlotExtension& extension,
                                                    absl::Duration timeout) {
  if (timeout != extension.ask_timeout) [[unlikely]] {
    extension.ask_timeout = timeout;
    extension.ask_timeout_ns = (Instant() + timeout).nanoseconds();
  }
  int64_t deadline_ns;
  if (extension.ask_timeout_ns == kNever ||
      __builtin_add_overflow(worker.toolbox->Now().nanoseconds(), extension.ask_timeout_ns, &deadline_ns)) [[unlikely]]
    return Instant::InfiniteFuture();
  return Instant::FromNanoseconds(deadline_ns);
}

// Opens a promise in the turn of the asker, if there is nothing against it.
[[gnu::always_inline]] inline absl::Status OpenInTurn(ActorWorker& worker, absl::Duration timeout, ActorRef target,
                                                      AskCompletion* completion, ActorRef& promise) {
  if (MayBeCircle(worker, target)) [[unlikely]]
    FRAKTOR_RETURN_IF_ERROR(FindCircle(worker, target));
  const Turn& turn = worker.turn;
  ActorSlot& asker = *turn.running();
  SlotExtension& extension = SlotExtension::Of(asker);
  const Instant deadline = DeadlineAfter(worker, extension, timeout);
  PromiseSlot* slot = worker.promises().ReserveAtHand();
  if (slot == nullptr) [[unlikely]] {
    FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<PromiseSlot> handle, worker.promises().Reserve());
    slot = handle.slot;
  }
  if (deadline < extension.ask_timer) [[unlikely]] {
    if (absl::Status armed = ArmTimer(worker, extension, deadline); !armed.ok()) {
      worker.promises().Release(slot);
      return armed;
    }
  }
  PackedPromise answering{.slot = PromiseSlot::kFree, .generation = 0};
  if (turn.in_task && turn.takes_no_other) answering = Pack(Answering(turn));
  slot->Fill(ActorRef(&asker, turn.word), target, answering, deadline.nanoseconds());
  slot->completion = completion;
  extension.open_asks.Add(*slot);
  const uint32_t generation = slot->generation() + 1;
  PromiseSlotPool::Activate({slot, generation});
  promise = ActorRef(slot, generation | ActorRef::kPromise);
  return absl::OkStatus();
}

// Whether a question can be asked at all; if not, CheckQuestion says why.
[[gnu::always_inline]] inline bool MayAsk(ActorRef to, absl::Duration timeout) {
  return timeout > absl::ZeroDuration() && !to.IsNoOne() && (to.IsRemote() || to.IsPromise() || to.IsCurrent());
}

// A question that cannot be asked: a dead letter, unless that is the fault of the asker.
[[gnu::noinline]] absl::Status RefuseQuestion(ActorWorker& worker, ActorRef to, EnvelopePtr question,
                                              const AskCompletion& completion) {
  absl::Status refused = CheckQuestion(worker.lifecycle, to, completion);
  if (completion.timeout > absl::ZeroDuration()) {
    question->set_target_word(to.word());
    worker.DeadLetter(question.release(), to.any_slot(),
                      to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
  }
  return refused;
}

}  // namespace

void AskCompletion::Abandon() noexcept { Fail(absl::CancelledError("the actor that asked has ended")); }

absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, const PromiseOptions& options) {
  ActorRef promise;
  FRAKTOR_RETURN_IF_ERROR(OpenInTurn(worker, options.timeout, options.target, options.completion, promise));
  return promise;
}

absl::Status SendQuestion(ActorWorker& worker, ActorRef to, EnvelopePtr question, AskCompletion& completion) {
  if (!MayAsk(to, completion.timeout)) [[unlikely]]
    return RefuseQuestion(worker, to, std::move(question), completion);
  ActorRef promise;
  FRAKTOR_RETURN_IF_ERROR(OpenInTurn(worker, completion.timeout, to, &completion, promise));
  completion.promise = promise;
  question->set_sender(promise);
  if (question->type()->is_intercepted()) [[unlikely]] {
    worker.SendMarked(to, question.release());
  } else {
    worker.Send(to, question.release());
  }
  return absl::OkStatus();
}

PromiseOpened::~PromiseOpened() {
  if (completion_ == nullptr) return;
  // Otherwise somebody has answered, and nobody knows whether the system is still there: it takes
  // back what is left.
  if (ClaimPromise(promise_)) {
    // Without a worker the system is at its end, which takes all slots back.
    ActorWorker* const worker = ActorWorker::Current();
    PromiseSlot* const slot = promise_.promise_slot();
    if (worker != nullptr && worker->Owns(*slot)) worker->promises().Release(slot);
  }
  completion_->Fail(SystemEnded());
}

absl::StatusOr<ActorRef> OpenPromiseFor(ActorRef asker, PromiseSlotPool& promises, RuntimeToolbox& toolbox,
                                        const PromiseOptions& options) {
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<PromiseSlot> handle, promises.Reserve());
  handle.slot->Fill(asker, options.target, {.slot = PromiseSlot::kFree, .generation = 0},
                    DeadlineAfter(toolbox, options.timeout).nanoseconds());
  handle.slot->completion = nullptr;
  PromiseSlotPool::Activate(handle);
  const ActorRef promise(handle.slot, handle.generation | ActorRef::kPromise);
  EnvelopePtr lost = TellSystem(asker, MakeEnvelope<PromiseOpened>(ActorRef(), promise, options.completion));
  if (lost == nullptr) return promise;
  lost->TryAs<PromiseOpened>()->TakeCompletion();
  ClaimPromise(promise);
  promises.Release(handle.slot);
  return SystemEnded();
}

void ReceiveOpened(ActorWorker& worker, ActorSlot& slot, PromiseOpened& opened) {
  PromiseSlot& promise = *opened.promise().promise_slot();
  SlotExtension& extension = SlotExtension::Of(slot);
  promise.completion = opened.TakeCompletion();
  if (promise.deadline_ns() != kNever) {
    absl::Status armed = ArmTimer(worker, extension, Instant::FromNanoseconds(promise.deadline_ns()));
    // Otherwise the answer is on its way already.
    if (!armed.ok() && ClaimPromise(opened.promise())) {
      AskCompletion* const completion = std::exchange(promise.completion, nullptr);
      worker.promises().Release(&promise);
      Conclude(worker, slot, opened.promise(), completion, std::move(armed));
      return;
    }
  }
  extension.open_asks.Add(promise);
}

absl::Status CheckQuestion(const ActorLifecycle& lifecycle, ActorRef to, const AskCompletion& completion) {
  if (MayAsk(to, completion.timeout)) return absl::OkStatus();
  if (completion.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("the ask for an answer to ", ToAbsl(completion.question->name()),
                                                   " has the timeout ", absl::FormatDuration(completion.timeout),
                                                   "; it must be positive"));
  }
  if (!to.IsNoOne()) return NoAnswerOfEnded(completion.question->name(), to, lifecycle.PathOf(to));
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
      absl::StrCat("nobody will answer ", ToAbsl(completion.question->name()), ": it was asked of no one"));
}

ActorRef AskerOf(ActorRef promise) {
  const ActorRef asker = ReadOpen(promise, [](const PromiseSlot& slot) { return slot.asker(); }).value_or(ActorRef());
  return asker.IsCurrent() ? asker : ActorRef();
}

ActorRef TargetOf(ActorRef promise) {
  return LivingTarget(
      ReadOpen(promise, [](const PromiseSlot& slot) { return slot.target(); }).value_or(PromiseSlot::Target()));
}

Instant DeadlineOf(ActorRef promise) {
  const std::optional<int64_t> deadline_ns =
      ReadOpen(promise, [](const PromiseSlot& slot) { return slot.deadline_ns(); });
  return deadline_ns.has_value() ? Instant::FromNanoseconds(*deadline_ns) : Instant::InfinitePast();
}

bool ReceiveAnswer(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  const ActorRef promise = message.sender();
  if (!promise.IsPromise()) return false;
  PromiseSlot& answered = *promise.promise_slot();
  slot.extension->open_asks.Remove(answered);
  AskCompletion* const completion = std::exchange(answered.completion, nullptr);
  worker.promises().Release(&answered);
  TellPromiseWatchers(worker, *slot.extension, promise);
  ConcludeBy(worker, slot, promise, completion, message);
  return true;
}

void ExpireAsks(ActorWorker& worker, ActorSlot& slot, Instant deadline) {
  SlotExtension& extension = *slot.extension;
  // Another timer was armed when this one had fired already.
  if (deadline != extension.ask_timer) return;
  extension.ask_timer = Instant::InfiniteFuture();
  const Instant now = worker.toolbox->Now();
  const uint64_t first_inquiry = extension.ask_extras == nullptr ? 1 : extension.ask_extras->inquiries + 1;
  // All that are due, before any of them fails: code of the asker may ask again then.
  absl::InlinedVector<ActorRef, 8> due;
  PromiseSlot* promise = extension.open_asks.Earliest();
  for (; promise != nullptr && promise->deadline_ns() <= now.nanoseconds(); promise = extension.open_asks.Earliest()) {
    const ActorRef ask(promise, promise->generation() | ActorRef::kPromise);
    if (promise->generation() % 2 == 1 && ClaimPromise(ask)) {
      extension.open_asks.Remove(*promise);
      due.push_back(ask);
    } else {
      // An answer is in the mailbox already, or about to be.
      extension.open_asks.SetOverdue(*promise);
    }
  }
  for (const ActorRef ask : due) {
    PromiseSlot& over = *ask.promise_slot();
    AskCompletion* const completion = std::exchange(over.completion, nullptr);
    const PromiseSlot::Target asked = over.target();
    worker.promises().Release(&over);
    TellPromiseWatchers(worker, extension, ask);
    FailLate(worker, slot, ask, asked, completion, first_inquiry);
  }
  promise = extension.open_asks.Earliest();
  if (promise == nullptr || promise->deadline_ns() == kNever) return;
  // No room for a timer: the next ask arms one, or fails.
  ArmTimer(worker, extension, Instant::FromNanoseconds(promise->deadline_ns())).IgnoreError();
}

void ReceiveReport(ActorWorker& worker, ActorSlot& slot, const BusinessReport& report) {
  ConcludeLate(worker, slot, report.inquiry, &report);
}

void EndInquiry(ActorWorker& worker, ActorSlot& slot, uint64_t inquiry) {
  ConcludeLate(worker, slot, inquiry, nullptr);
}

void SendReport(ActorWorker& worker, ActorSlot& slot, const DescribeBusiness& inquiry) {
  const Turn& turn = worker.turn;
  const SlotExtension* const extension = slot.extension;
  uint64_t waiting = extension == nullptr || extension->order == nullptr ? 0 : extension->order->size();
  for (const Envelope* message = turn.lists.user.first; message != nullptr && waiting < BusinessReport::kMaxCounted;
       message = message == turn.lists.user.last ? nullptr : Envelope::Of(message->next)) {
    if (!IsMailboxBell(*message)) ++waiting;
  }
  const bool has_handler = extension != nullptr && !extension->handlers.empty();
  BusinessReport report{.inquiry = inquiry.inquiry,
                        .waiting = std::min(waiting, BusinessReport::kMaxCounted),
                        .handler = has_handler ? extension->handlers.FirstType() : nullptr,
                        .has_handler = has_handler,
                        .has_failed = turn.failures != 0,
                        .gate = turn.gate,
                        .suspended_for = extension == nullptr ? SuspendReason::kUserDefined : extension->suspended_for,
                        .resume_on = extension == nullptr ? ResumeCondition::ExternalSignal({}) : extension->resume_on};
  TellSystem(inquiry.asker, MakeEnvelope<BusinessReport>(worker.cache(), ActorRef(), report));
}

bool WatchPromise(ActorSlot& asker, ActorRef promise, ActorRef watcher) {
  if (asker.extension == nullptr || AskerOf(promise).any_slot() != &asker) return false;
  auto& extras = asker.extension->ask_extras;
  if (extras == nullptr) extras = std::make_unique<SlotExtension::AskExtras>();
  extras->watches.push_back({.promise = promise, .watcher = watcher});
  return true;
}

void CloseAsks(ActorWorker& worker, ActorSlot& slot) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  if (const std::unique_ptr<SlotExtension::AskExtras> extras = std::move(extension->ask_extras)) {
    for (const auto& late : extras->late) {
      worker.toolbox->CancelTimer(late.timer);
      late.completion->Abandon();
    }
    for (const auto& watch : extras->watches) worker.lifecycle.OnPromiseEnded(watch.promise, watch.watcher);
  }
  while (PromiseSlot* const promise = extension->open_asks.TakeFirst()) {
    const uint32_t generation = promise->generation();
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) completion->Abandon();
    // Also of one that somebody has answered: only the asker frees it.
    if (generation % 2 == 1) ClaimPromise(ActorRef(promise, generation | ActorRef::kPromise));
    worker.promises().Release(promise);
  }
  DisarmTimer(worker, *extension);
}

void AbandonAsks(ActorSlot& slot) {
  if (slot.extension == nullptr) return;
  if (const std::unique_ptr<SlotExtension::AskExtras> extras = std::move(slot.extension->ask_extras)) {
    for (const auto& late : extras->late) late.completion->Abandon();
  }
  while (PromiseSlot* const promise = slot.extension->open_asks.TakeFirst()) {
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) completion->Abandon();
  }
}

void InstallOnReply(OnReplyFunctions functions) { on_reply = functions; }

}  // namespace fraktor::inline v0
