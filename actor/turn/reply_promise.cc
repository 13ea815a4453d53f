#include "fraktor/actor/turn/reply_promise.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/turn/actor_context.h"
#include "fraktor/actor/turn/actor_instance.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/message_invoker.h"
#include "fraktor/actor/turn/scheduler_signals.h"
#include "fraktor/actor/turn/slot_extension.h"
#include "fraktor/actor/turn/system_core.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

const int64_t kNever = Instant::InfiniteFuture().nanoseconds();

void Link(SlotExtension& extension, ActorSlot& promise) {
  // Mostly the timeouts of an actor are alike, and the new one is the last.
  ActorSlot* before = extension.last_ask;
  while (before != nullptr && before->ask.deadline_ns > promise.ask.deadline_ns) before = before->ask.previous;
  ActorSlot* const after = before == nullptr ? extension.first_ask : before->ask.next;
  promise.ask.previous = before;
  promise.ask.next = after;
  (before == nullptr ? extension.first_ask : before->ask.next) = &promise;
  (after == nullptr ? extension.last_ask : after->ask.previous) = &promise;
}

void Unlink(SlotExtension& extension, ActorSlot& promise) {
  ActorSlot* const before = promise.ask.previous;
  ActorSlot* const after = promise.ask.next;
  (before == nullptr ? extension.first_ask : before->ask.next) = after;
  (after == nullptr ? extension.last_ask : after->ask.previous) = before;
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
    EnvelopePtr late(answer);
    SystemCore::CountForeignDeadLetter(promise.slot(), DeadLetterReason::kLateReply);
  }
}

// Another answer is on its way, or was: true if this thread is the first.
bool Claim(ActorRef promise) { return ActorSlotPool::TryDeactivate({promise.slot(), promise.generation()}); }

}  // namespace

absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, absl::Duration timeout) {
  SlotExtension& extension = SlotExtension::Of(*worker.turn.running());
  const Instant deadline =
      timeout == absl::InfiniteDuration() ? Instant::InfiniteFuture() : worker.toolbox->Now() + timeout;
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<ActorSlot> handle, worker.slots().Reserve());
  if (deadline < Instant::InfiniteFuture()) {
    if (absl::Status armed = ArmTimer(worker, extension, deadline); !armed.ok()) {
      worker.slots().Release(handle.slot);
      return armed;
    }
  }
  ActorSlot& promise = *handle.slot;
  promise.instance = nullptr;  // No actor.
  promise.ask = {
      .asker = worker.turn.self(), .previous = nullptr, .next = nullptr, .deadline_ns = deadline.nanoseconds()};
  Link(extension, promise);
  ActorSlotPool::Activate(handle);
  return ActorRef(handle.slot, handle.generation | ActorRef::kPromise);
}

void AnswerPromise(ActorRef promise, Envelope* answer) {
  if (!promise.slot()->IsAt(promise.generation()) || !Claim(promise)) {
    LoseAnswer(promise, answer);
    return;
  }
  // From here on the promise belongs to the answer.
  answer->set_sender(promise);
  EnvelopePtr lost = TellSystem(promise.slot()->ask.asker, EnvelopePtr(answer));
  if (lost == nullptr) return;
  lost->MarkAsSystem();
  LoseAnswer(promise, lost.release());
}

bool ReceiveAnswer(ActorWorker& worker, ActorSlot& slot, Envelope& message) {
  const ActorRef promise = message.sender();
  if ((promise.word() & ActorRef::kPromise) == 0) return false;
  Unlink(*slot.extension, *promise.slot());
  worker.slots().Release(promise.slot());
  MessageInvoker::HandleAnswer(worker, slot, promise, message);
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
    ActorSlot* const next = promise->ask.next;
    const ActorRef ask(promise, promise->generation() | ActorRef::kPromise);
    // Otherwise an answer is in the mailbox already.
    if (promise->generation() % 2 == 1 && Claim(ask)) {
      Unlink(extension, *promise);
      worker.slots().Release(promise);
      MessageInvoker::HandleAskFailure(worker, slot, ask, absl::DeadlineExceededError("no answer in time"));
    }
    promise = next;
  }
}

void CloseAsks(ActorWorker& worker, ActorSlot& slot) {
  SlotExtension* const extension = slot.extension;
  if (extension == nullptr) return;
  for (ActorSlot* promise = std::exchange(extension->first_ask, nullptr); promise != nullptr;) {
    ActorSlot* const next = promise->ask.next;
    const uint32_t generation = promise->generation();
    // Those that are answered go with their answers.
    if (generation % 2 == 1 && Claim(ActorRef(promise, generation))) worker.slots().Release(promise);
    promise = next;
  }
  extension->last_ask = nullptr;
  DisarmTimer(worker, *extension);
}

void FreePromiseOf(ActorWorker& worker, const Envelope& message) {
  const ActorRef promise = message.sender();
  if (!message.is_system() || (promise.word() & ActorRef::kPromise) == 0) return;
  // One of another system stays as it is until that system ends.
  if (worker.Owns(*promise.slot())) worker.slots().Release(promise.slot());
}

}  // namespace fraktor::inline v0
