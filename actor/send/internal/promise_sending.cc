#include "fraktor/actor/send/internal/promise_sending.h"

#include <utility>

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"

namespace fraktor::inline v0::actor_internal {

using toolbox_internal::IsForkedFromThreads;

namespace {

// The reply came too late: makes it a dead letter.
void LoseAnswer(ActorRef promise, Envelope* answer) {
  // A reply of the runtime has no target word yet.
  answer->set_target_word(promise.word());
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->DeadLetter(answer, promise.any_slot(), DeadLetterReason::kLateReply);
  } else {
    SystemCore::LoseForeign(promise, EnvelopePtr(answer), DeadLetterReason::kLateReply);
  }
}

absl::Status Withdrawn() { return absl::CancelledError("the ask was withdrawn"); }

// Claims a promise in order to reply. Returns the asker, or no one if another reply was first. The
// slot belongs to the asker, which may free it as soon as the promise is claimed, so the asker is
// read first.
ActorRef ClaimToAnswer(ActorRef promise) {
  const PromiseSlot* const slot = PromiseSlotTable::Resolve({promise.promise_slot(), promise.generation()});
  if (slot == nullptr) return {};
  const ActorRef asker = slot->asker();
  return ClaimPromise(promise) ? asker : ActorRef();
}

// Sends the reply to a promise that was claimed.
void SendAnswer(ActorRef promise, ActorRef asker, Envelope* answer) {
  answer->set_sender(promise);
  if (PostSystem(asker, answer)) [[likely]]
    return;
  answer->MarkAsSystem();
  LoseAnswer(promise, answer);
}

}  // namespace

bool IsLostReply(const Envelope& message) {
  if (!message.is_system() || !message.sender().IsPromise()) return false;
  const auto* const error = message.TryAs<ErrorReply>();
  return error == nullptr || error->status != Withdrawn();
}

bool ClaimPromise(ActorRef promise) {
  return PromiseSlotPool::TryDeactivate({promise.promise_slot(), promise.generation()});
}

void AnswerPromise(ActorRef given, Envelope* answer) {
  const ActorRef promise(given.any_slot(), given.word() & ~ActorRef::kShared);
  const ActorRef asker = ClaimToAnswer(promise);
  if (asker.IsNoOne()) {
    LoseAnswer(promise, answer);
    return;
  }
  SendAnswer(promise, asker, answer);
}

void WithdrawAsk(ActorRef promise) noexcept {
  // In the child of a fork no thread runs the asker, and a thread of the parent may have held any
  // lock.
  if (promise.IsNoOne() || IsForkedFromThreads()) return;
  const ActorRef asker = ClaimToAnswer(promise);
  if (asker.IsNoOne()) return;
  // The asker frees the promise in its turn, as after any reply. If the asker has ended, CloseAsks
  // has freed it.
  EnvelopePtr withdrawn = MakeEnvelope<ErrorReply>(promise, Withdrawn());
  if (PostSystem(asker, withdrawn.get())) withdrawn.release();
}

void FailAsk(const Envelope& message, absl::FunctionRef<absl::Status()> why) {
  const ActorRef promise = message.sender();
  if (message.is_system() || (message.target_word() & kForwarded) != 0) return;
  if (promise.IsRemote()) {
    // The node of the asker knows whether the ask is still open.
    FailRemoteAsk(promise, why);
    return;
  }
  if (!promise.IsPromise() || (promise.word() & ActorRef::kShared) != 0) return;
  if (!promise.IsCurrent()) return;
  EnvelopePtr failure = MakeEnvelope<ErrorReply>(ActorRef(), why());
  // Does nothing if a reply was sent meanwhile.
  if (const ActorRef asker = ClaimToAnswer(promise); !asker.IsNoOne()) SendAnswer(promise, asker, failure.release());
}

}  // namespace fraktor::inline v0::actor_internal
