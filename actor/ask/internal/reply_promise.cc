#include "fraktor/actor/ask/internal/reply_promise.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/ask/internal/ask_circle.h"
#include "fraktor/actor/ask/internal/ask_deadlines.h"
#include "fraktor/actor/ask/internal/end_cause.h"
#include "fraktor/actor/ask/internal/promise_watch.h"
#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::SlotHandle;

namespace {

absl::Status SystemEnded() { return absl::UnavailableError("the actor system has ended"); }

// Opens a promise in the asker's turn.
[[gnu::always_inline]] inline absl::Status OpenInTurn(ActorWorker& worker, absl::Duration timeout, ActorRef target,
                                                      AskCompletion* completion, ActorRef& promise) {
  if (MayBeCircle(worker, target)) [[unlikely]]
    FRAKTOR_RETURN_IF_ERROR(FindAskCircle(worker, target));
  const TurnState& state = worker.turn_state;
  ActorSlot& asker = *state.running();
  SlotExtension& extension = SlotExtension::Of(asker);
  const Instant deadline = DeadlineAfter(worker, extension, timeout);
  PromiseSlot* slot = worker.promises().ReserveAtHand();
  if (slot == nullptr) [[unlikely]] {
    FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<PromiseSlot> handle, worker.promises().Reserve());
    slot = handle.slot;
  }
  if (deadline < extension.ask_timer) [[unlikely]] {
    if (absl::Status armed = ArmAskTimer(worker, extension, deadline); !armed.ok()) {
      worker.promises().Release(slot);
      return armed;
    }
  }
  slot->Fill(ActorRef(&asker, state.word), target, WaitingForThisAsk(state), deadline.nanoseconds());
  slot->completion = completion;
  extension.open_asks.Add(*slot);
  const uint32_t generation = slot->generation() + 1;
  PromiseSlotPool::Activate({slot, generation});
  promise = ActorRef(slot, generation | ActorRef::kPromise);
  return absl::OkStatus();
}

// Whether the message can be asked. If not, CheckAsk says why.
[[gnu::always_inline]] inline bool MayAsk(ActorRef to, absl::Duration timeout) {
  return timeout > absl::ZeroDuration() && !to.IsNoOne() && (to.IsRemote() || to.IsPromise() || to.IsCurrent());
}

// The message cannot be asked. It is a dead letter, unless the asker gave a timeout that is not
// positive.
[[gnu::noinline]] absl::Status RefuseAsk(ActorWorker& worker, ActorRef to, EnvelopePtr message,
                                         const AskCompletion& completion) {
  absl::Status refused = CheckAsk(worker.lifecycle, to, completion);
  if (completion.timeout > absl::ZeroDuration()) {
    message->set_target_word(to.word());
    worker.DeadLetter(message.release(), to.any_slot(),
                      to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
  }
  return refused;
}

}  // namespace

absl::StatusOr<ActorRef> OpenPromise(ActorWorker& worker, const PromiseOptions& options) {
  ActorRef promise;
  FRAKTOR_RETURN_IF_ERROR(OpenInTurn(worker, options.timeout, options.target, options.completion, promise));
  return promise;
}

absl::Status SendAsk(ActorWorker& worker, ActorRef to, EnvelopePtr message, AskCompletion& completion) {
  if (!MayAsk(to, completion.timeout)) [[unlikely]]
    return RefuseAsk(worker, to, std::move(message), completion);
  ActorRef promise;
  FRAKTOR_RETURN_IF_ERROR(OpenInTurn(worker, completion.timeout, to, &completion, promise));
  completion.promise = promise;
  message->set_sender(promise);
  if (message->type()->is_intercepted()) [[unlikely]] {
    worker.SendIntercepted(to, message.release());
  } else {
    worker.Send(to, message.release());
  }
  return absl::OkStatus();
}

PromiseOpened::~PromiseOpened() {
  if (completion_ == nullptr) return;
  // If another thread has claimed the promise, the system may have ended meanwhile. It frees the
  // slot itself then.
  if (ClaimPromise(promise_)) {
    // Without a worker the system is ending, which frees all slots.
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

void ReceiveOpened(Turn turn, PromiseOpened& opened) {
  PromiseSlot& promise = *opened.promise().promise_slot();
  SlotExtension& extension = SlotExtension::Of(turn.slot);
  promise.completion = opened.TakeCompletion();
  if (promise.deadline_ns() != kNoDeadline) {
    absl::Status armed = ArmAskTimer(turn.worker, extension, Instant::FromNanoseconds(promise.deadline_ns()));
    // If the claim fails, the reply is on its way already.
    if (!armed.ok() && ClaimPromise(opened.promise())) {
      AskCompletion* const completion = std::exchange(promise.completion, nullptr);
      turn.worker.promises().Release(&promise);
      CompleteAskWithError(turn, opened.promise(), completion, std::move(armed));
      return;
    }
  }
  extension.open_asks.Add(promise);
}

absl::Status CheckAsk(const ActorLifecycle& lifecycle, ActorRef to, const AskCompletion& completion) {
  if (MayAsk(to, completion.timeout)) return absl::OkStatus();
  if (completion.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("the ask for a reply to ", ToAbsl(completion.asked_type->name()),
                                                   " has the timeout ", absl::FormatDuration(completion.timeout),
                                                   "; it must be positive"));
  }
  if (!to.IsNoOne()) return NoReplyOfEnded(completion.asked_type->name(), to, lifecycle.PathOf(to));
  return MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout,
                   absl::StrCat(ToAbsl(completion.asked_type->name()), " gets no reply: it was asked of no one"));
}

bool ReceiveReply(Turn turn, Envelope& message) {
  const ActorRef promise = message.sender();
  if (!promise.IsPromise()) return false;
  PromiseSlot& answered = *promise.promise_slot();
  turn.slot.extension->open_asks.Remove(answered);
  AskCompletion* const completion = std::exchange(answered.completion, nullptr);
  turn.worker.promises().Release(&answered);
  TellPromiseWatchers(turn.worker, *turn.slot.extension, promise);
  CompleteAsk(turn, promise, completion, message);
  return true;
}

void CloseAsks(Turn turn) {
  SlotExtension* const extension = turn.slot.extension;
  if (extension == nullptr) return;
  if (const std::unique_ptr<SlotExtension::AskExtras> extras = std::move(extension->ask_extras)) {
    for (const auto& [request, late] : extras->late) {
      turn.worker.toolbox->CancelTimer(late.timer);
      for (const auto& ask : late.asks) ask.completion->Abandon();
    }
    TellAllPromiseWatchers(turn.worker, *extras);
  }
  while (PromiseSlot* const promise = extension->open_asks.TakeFirst()) {
    const uint32_t generation = promise->generation();
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) completion->Abandon();
    // The asker also frees a promise that another thread has claimed.
    if (generation % 2 == 1) ClaimPromise(ActorRef(promise, generation | ActorRef::kPromise));
    turn.worker.promises().Release(promise);
  }
  DisarmAskTimer(turn.worker, *extension);
}

void AbandonAsks(ActorSlot& slot) {
  if (slot.extension == nullptr) return;
  if (const std::unique_ptr<SlotExtension::AskExtras> extras = std::move(slot.extension->ask_extras)) {
    for (const auto& [request, late] : extras->late) {
      for (const auto& ask : late.asks) ask.completion->Abandon();
    }
  }
  while (PromiseSlot* const promise = slot.extension->open_asks.TakeFirst()) {
    if (AskCompletion* const completion = std::exchange(promise->completion, nullptr)) completion->Abandon();
  }
}

}  // namespace fraktor::inline v0::actor_internal
