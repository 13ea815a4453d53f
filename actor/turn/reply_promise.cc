#include "fraktor/actor/turn/reply_promise.h"

#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/actor/turn/actor_lifecycle.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/message_invoker.h"
#include "fraktor/actor/turn/scheduler_signals.h"
#include "fraktor/actor/turn/slot_extension.h"
#include "fraktor/actor/turn/system_core.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

const int64_t kNever = Instant::InfiniteFuture().nanoseconds();
constexpr uint32_t kNoAsk = UINT32_MAX;
// So many questions that wait for each other are looked at.
constexpr int kMaxChain = 64;

ActorSlot* AskAt(uint32_t number) { return number == kNoAsk ? nullptr : ProcessSlots().At(number); }
uint32_t NumberOf(ActorSlot* promise) { return promise == nullptr ? kNoAsk : ActorSlotTable::IndexOf(promise); }

// Whoever walks along a chain may read a promise that is being used again: relaxed, and checked by the generation.
PackedRef Load(PackedRef& from) {
  return std::bit_cast<PackedRef>(
      std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t&>(from)).load(std::memory_order_relaxed));
}
void Store(PackedRef& to, PackedRef value) {
  std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t&>(to))
      .store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
}

PackedRef Pack(ActorRef ref) {
  return ref.IsNoOne() ? PackedRef{} : PackedRef{ActorSlotTable::IndexOf(ref.slot()), ref.generation()};
}

// The actor, if it still lives; without the flags of its references.
ActorRef Unpack(PackedRef packed) {
  if (packed.IsNoOne()) return {};
  ActorSlot* const slot = ProcessSlots().At(packed.slot);
  return slot != nullptr && slot->IsAt(packed.generation) ? ActorRef(slot, packed.generation) : ActorRef();
}

// One field of a promise that nobody has answered yet.
PackedRef FieldOf(ActorRef promise, PackedRef PendingAsk::*field) {
  if ((promise.word() & ActorRef::kPromise) == 0 || !promise.slot()->IsAt(promise.generation())) return {};
  const PackedRef value = Load(promise.slot()->ask.*field);
  return promise.slot()->IsAt(promise.generation()) ? value : PackedRef{};
}

ActorRef PromiseAt(PackedRef packed) {
  if (packed.IsNoOne()) return {};
  ActorSlot* const slot = ProcessSlots().At(packed.slot);
  return slot == nullptr ? ActorRef() : ActorRef(slot, packed.generation | ActorRef::kPromise);
}

// The question that the actor is answering in this turn, by a coroutine; no one if it is none, or has been passed on.
ActorRef Answering(const Turn& turn) {
  if (!turn.in_task || turn.current == nullptr || (turn.current->target_word() & kForwarded) != 0) return {};
  const ActorRef sender = turn.current->sender();
  return (sender.word() & ActorRef::kPromise) != 0 ? sender : ActorRef();
}

bool IsSame(ActorRef a, ActorRef b) { return a.slot() == b.slot() && a.generation() == b.generation(); }

// The chain of those that wait for this turn, if `target` is one of them: it would wait for itself.
absl::Status CheckCircle(const ActorWorker& worker, ActorRef target) {
  const Turn& turn = worker.turn;
  if (!turn.in_task || target.IsNoOne()) return absl::OkStatus();
  std::vector<ActorRef> chain = {turn.self()};
  bool is_circle = IsSame(target, turn.self()) && turn.takes_no_other;
  for (ActorRef promise = Answering(turn); !promise.IsNoOne() && !is_circle && chain.size() < kMaxChain;) {
    const PackedRef answering = FieldOf(promise, &PendingAsk::answering);
    const ActorRef asker = AskerOf(promise);
    // One that is not bound to its question can answer others meanwhile.
    if (asker.IsNoOne() || answering.slot == PendingAsk::kFree) break;
    chain.push_back(asker);
    is_circle = IsSame(asker, target);
    promise = PromiseAt(answering);
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

void Link(SlotExtension& extension, ActorSlot& promise) {
  // Mostly the timeouts of an actor are alike, and the new one is the last.
  ActorSlot* before = extension.last_ask;
  while (before != nullptr && before->ask.deadline_ns > promise.ask.deadline_ns) before = AskAt(before->ask.previous);
  ActorSlot* const after = before == nullptr ? extension.first_ask : AskAt(before->ask.next);
  promise.ask.previous = NumberOf(before);
  promise.ask.next = NumberOf(after);
  if (before == nullptr) {
    extension.first_ask = &promise;
  } else {
    before->ask.next = NumberOf(&promise);
  }
  if (after == nullptr) {
    extension.last_ask = &promise;
  } else {
    after->ask.previous = NumberOf(&promise);
  }
}

void Unlink(SlotExtension& extension, ActorSlot& promise) {
  ActorSlot* const before = AskAt(promise.ask.previous);
  ActorSlot* const after = AskAt(promise.ask.next);
  if (before == nullptr) {
    extension.first_ask = after;
  } else {
    before->ask.next = NumberOf(after);
  }
  if (after == nullptr) {
    extension.last_ask = before;
  } else {
    after->ask.previous = NumberOf(before);
  }
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

// Nobody waits for it any more.
void LoseAnswer(ActorRef promise, Envelope* answer) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->DeadLetter(answer, promise.slot(), DeadLetterReason::kLateReply);
  } else {
    SystemCore::LoseForeign(promise.slot(), EnvelopePtr(answer), DeadLetterReason::kLateReply);
  }
}

// Another answer is on its way, or was: true if this thread is the first.
bool Claim(ActorRef promise) { return ActorSlotPool::TryDeactivate({promise.slot(), promise.generation()}); }

// Gives a promise that is out of the list its answer. In the asker's turn.
void Conclude(ActorWorker& worker, ActorSlot& slot, ActorRef ask, AskCompletion* completion,
              absl::StatusOr<Envelope*> answer) {
  if (completion != nullptr) {
    const bool outer = std::exchange(worker.turn.takes_answer, true);
    completion->Complete(std::move(answer));
    worker.turn.takes_answer = outer;
  } else if (answer.ok()) {
    MessageInvoker::HandleAnswer(worker, slot, ask, **answer);
  } else {
    MessageInvoker::HandleAskFailure(worker, slot, ask, answer.status());
  }
}

absl::Status TimedOut(const ActorWorker& worker, ActorRef target, const AskCompletion* completion) {
  if (completion == nullptr) return absl::DeadlineExceededError("no answer in time");
  const ActorLifecycle& lifecycle = worker.lifecycle;
  const std::string business = target.IsNoOne() ? "it has ended" : lifecycle.DescribeBusiness(target);
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
      absl::StrCat("ask timed out: ", target.IsNoOne() ? "an actor" : lifecycle.PathOf(target), " has not answered ",
                   ToAbsl(completion->question->name()), " of ", lifecycle.PathOf(worker.turn.self()), " within ",
                   absl::FormatDuration(completion->timeout), business.empty() ? "" : "; ", business));
}

absl::Status AskerEnded() { return absl::CancelledError("the actor that asked has ended"); }

}  // namespace

absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, const PromiseOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckCircle(worker, options.target));
  SlotExtension& extension = SlotExtension::Of(*worker.turn.running());
  const Instant deadline =
      options.timeout == absl::InfiniteDuration() ? Instant::InfiniteFuture() : worker.toolbox->Now() + options.timeout;
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<ActorSlot> handle, worker.slots().Reserve());
  if (deadline < Instant::InfiniteFuture()) {
    if (absl::Status armed = ArmTimer(worker, extension, deadline); !armed.ok()) {
      worker.slots().Release(handle.slot);
      return armed;
    }
  }
  ActorSlot& promise = *handle.slot;
  const Turn& turn = worker.turn;
  promise.instance = nullptr;  // No actor.
  promise.completion = options.completion;
  Store(promise.ask.asker, Pack(turn.self()));
  Store(promise.ask.target, Pack(options.target));
  PackedRef answering{.slot = PendingAsk::kFree, .generation = 0};
  if (turn.in_task && turn.takes_no_other) answering = Pack(Answering(turn));
  Store(promise.ask.answering, answering);
  promise.ask.deadline_ns = deadline.nanoseconds();
  Link(extension, promise);
  ActorSlotPool::Activate(handle);
  return ActorRef(handle.slot, handle.generation | ActorRef::kPromise);
}

ActorRef AskerOf(ActorRef promise) { return Unpack(FieldOf(promise, &PendingAsk::asker)); }

ActorRef TargetOf(ActorRef promise) { return Unpack(FieldOf(promise, &PendingAsk::target)); }

void AnswerPromise(ActorRef promise, Envelope* answer) {
  if (!promise.slot()->IsAt(promise.generation()) || !Claim(promise)) {
    LoseAnswer(promise, answer);
    return;
  }
  // From here on the promise belongs to the answer.
  answer->set_sender(promise);
  const PackedRef asker = Load(promise.slot()->ask.asker);
  EnvelopePtr lost = TellSystem(ActorRef(ProcessSlots().At(asker.slot), asker.generation), EnvelopePtr(answer));
  if (lost == nullptr) return;
  lost->MarkAsSystem();
  LoseAnswer(promise, lost.release());
}

bool ReceiveAnswer(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  const ActorRef promise = message.sender();
  if ((promise.word() & ActorRef::kPromise) == 0) return false;
  Unlink(*slot.extension, *promise.slot());
  AskCompletion* const completion = std::exchange(promise.slot()->completion, nullptr);
  worker.slots().Release(promise.slot());
  Conclude(worker, slot, promise, completion, &message);
  return true;
}

void ExpireAsks(ActorWorker& worker, ActorSlot& slot, Instant deadline) {
  SlotExtension& extension = *slot.extension;
  // Another timer was armed when this one had fired already.
  if (deadline != extension.ask_timer) return;
  extension.ask_timer = Instant::InfiniteFuture();
  const Instant now = worker.toolbox->Now();
  for (ActorSlot* promise = extension.first_ask; promise != nullptr && promise->ask.deadline_ns != kNever;) {
    if (promise->ask.deadline_ns > now.nanoseconds()) {
      // No room for a timer: the next ask arms one, or fails.
      ArmTimer(worker, extension, Instant::FromNanoseconds(promise->ask.deadline_ns)).IgnoreError();
      return;
    }
    ActorSlot* const next = AskAt(promise->ask.next);
    const ActorRef ask(promise, promise->generation() | ActorRef::kPromise);
    // Otherwise an answer is in the mailbox already.
    if (promise->generation() % 2 == 1 && Claim(ask)) {
      Unlink(extension, *promise);
      AskCompletion* const completion = std::exchange(promise->completion, nullptr);
      absl::Status late = TimedOut(worker, Unpack(Load(promise->ask.target)), completion);
      worker.slots().Release(promise);
      Conclude(worker, slot, ask, completion, std::move(late));
    }
    promise = next;
  }
}

void CloseAsks(ActorWorker& worker, ActorSlot& slot) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  for (ActorSlot* promise = std::exchange(extension->first_ask, nullptr); promise != nullptr;) {
    ActorSlot* const next = AskAt(promise->ask.next);
    const uint32_t generation = promise->generation();
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) {
      completion->Complete(AskerEnded());
    }
    // Those that are answered go with their answers.
    if (generation % 2 == 1 && Claim(ActorRef(promise, generation))) worker.slots().Release(promise);
    promise = next;
  }
  extension->last_ask = nullptr;
  DisarmTimer(worker, *extension);
}

void AbandonAsks(ActorSlot& slot) {
  if (slot.extension == nullptr) return;
  for (ActorSlot* promise = std::exchange(slot.extension->first_ask, nullptr); promise != nullptr;
       promise = AskAt(promise->ask.next)) {
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) {
      completion->Complete(AskerEnded());
    }
  }
  slot.extension->last_ask = nullptr;
}

void FreePromiseOf(ActorWorker& worker, const Envelope& message) {
  const ActorRef promise = message.sender();
  if (!message.is_system() || (promise.word() & ActorRef::kPromise) == 0) return;
  // One of another system stays as it is until that system ends.
  if (worker.Owns(*promise.slot())) worker.slots().Release(promise.slot());
}

}  // namespace fraktor::inline v0
