#include "fraktor/actor/turn/actor_context.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/slot_extension.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

absl::Status UnexpectedAnswer(const MessageType* question, const MessageType* wanted, const MessageType* came) {
  return absl::InvalidArgumentError(absl::StrCat("the answer to ", ToAbsl(question->name()), " is a ",
                                                 ToAbsl(came->name()), ", where a ", ToAbsl(wanted->name()),
                                                 " was asked for"));
}

EnvelopePtr ActorContext::Stash() {
  Turn& turn = worker().turn;
  if (turn.current == nullptr || turn.current->is_system()) return nullptr;
  return EnvelopePtr(std::exchange(turn.current, nullptr));
}

void ActorContext::Unstash(EnvelopeList messages) {
  Turn& turn = worker().turn;
  if (SlotExtension* const extension = turn.running()->extension; extension != nullptr && extension->order != nullptr) {
    extension->order->AddFront(messages);
  } else {
    turn.lists.user.Prepend(messages);
  }
}

void ActorContext::Forward(ActorRef to) {
  Turn& turn = worker().turn;
  if (turn.current == nullptr || turn.current->is_system()) return;
  Envelope* const message = std::exchange(turn.current, nullptr);
  worker().Send(to, message);
}

Future<void> ActorContext::Delay(absl::Duration delay) {
  auto [promise, future] = MakePromise<void>();
  RuntimeToolbox* const toolbox = worker().toolbox;
  // A timer that cannot be armed drops the promise, and the future says Cancelled; but with a reason it says more.
  if (toolbox == nullptr) {
    promise.Set(absl::FailedPreconditionError("this scheduler has no timers"));
    return std::move(future);
  }
  absl::StatusOr<TimerId> armed =
      toolbox->ScheduleAfter(delay, [promise = std::move(promise)]() mutable { promise.Set(absl::OkStatus()); });
  if (!armed.ok()) return MakeReadyFuture<void>(armed.status());
  return std::move(future);
}

void ActorContext::OpenQuestion(ActorRef to, EnvelopePtr question, AskCompletion& completion) {
  ActorWorker& asking = worker();
  absl::Status refused = CheckQuestion(asking.lifecycle, to, completion);
  if (!refused.ok()) {
    if (completion.timeout > absl::ZeroDuration()) {
      question->set_target_word(to.word());
      asking.DeadLetter(question.release(), to.slot(),
                        to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
    }
    completion.Complete(std::move(refused));
    return;
  }
  absl::StatusOr<ActorRef> promise =
      OpenPromise(asking, {.timeout = completion.timeout, .target = to, .completion = &completion});
  if (!promise.ok()) {
    completion.Complete(promise.status());
    return;
  }
  question->set_sender(*promise);
  if (question->type()->is_marked()) {
    asking.SendMarked(to, question.release());
  } else {
    asking.Send(to, question.release());
  }
}

}  // namespace fraktor::inline v0
