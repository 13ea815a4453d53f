#include "fraktor/actor/send/mailing.h"

#include <optional>
#include <utility>

#include "fraktor/actor/send/dispatcher_table.h"
#include "fraktor/actor/send/limited_sending.h"
#include "fraktor/actor/send/promise_sending.h"
#include "fraktor/actor/send/remote_sending.h"
#include "fraktor/actor/send/routed_sending.h"
#include "fraktor/actor/send/system_core.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/scheduler_signals.h"

namespace fraktor::inline v0 {
namespace {

// Makes an actor ready whose mailbox the caller holds.
void MakeReady(ActorSlot& slot) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->outbox.MakeReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

// The same message with the time, if it is one to sample.
EnvelopePtr Sampled(const SystemCore& core, ForeignMetrics& metrics, EnvelopePtr envelope) {
  if (!metrics.Sample() || envelope->has_trace()) [[likely]]
    return envelope;
  const std::optional<Instant> now = core.Now();
  if (!now.has_value()) return envelope;
  return WithTrace(NodeCache::OfThisThread(), std::move(envelope), {.enqueued_ns = now->nanoseconds()});
}

}  // namespace

absl::Status SendForeign(ActorRef to, EnvelopePtr envelope, uint64_t mark) {
  if (to.IsRemote()) return SendRemote(to, std::move(envelope));
  // First: a dead letter says whom it was meant for.
  envelope->set_target_word(to.word() | mark);
  if (!to.IsCurrent()) {
    const bool is_answer = to.IsPromise();
    const bool is_of_ended_system = !to.IsNoOne() && SystemCore::Of(to) == nullptr;
    SystemCore::LoseForeign(to, std::move(envelope),
                            to.IsNoOne() ? DeadLetterReason::kNoRecipient
                            : is_answer  ? DeadLetterReason::kLateReply
                                         : DeadLetterReason::kStopped);
    if (is_of_ended_system) return absl::UnavailableError("the actor system of the actor has ended");
    return absl::OkStatus();
  }
  if (to.IsPromise()) {
    AnswerPromise(to, envelope.release());
    return absl::OkStatus();
  }
  ActorSlot* const slot = to.slot();
  const SystemCore* const core = SystemCore::Of(*slot);
  if (core == nullptr || !core->is_open()) {
    SystemCore::LoseForeign(to, std::move(envelope), DeadLetterReason::kShutdown);
    return absl::UnavailableError("the actor system is shutting down and takes no messages from outside");
  }
  ForeignMetrics* const metrics = core->metrics();
  if ((to.word() & ActorRef::kLimited) != 0) {
    if (metrics != nullptr) envelope = Sampled(*core, *metrics, std::move(envelope));
    return SendLimitedForeign(to, std::move(envelope));
  }
  if ((to.word() & ActorRef::kRouter) != 0) {
    if (!envelope->type()->is_intercepted()) return RouteMessage(to, std::move(envelope));
    envelope->set_target_word(to.word() | kMarked);
  }
  if (metrics != nullptr) {
    metrics->CountEnqueued(slot->type.load(std::memory_order_relaxed));
    envelope = Sampled(*core, *metrics, std::move(envelope));
  }
  if (slot->mailbox.Post(envelope.release())) DispatcherTable::RegisterOrEmpty(*slot);
  return absl::OkStatus();
}

void SendMarked(ActorRef to, EnvelopePtr envelope) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->SendMarked(to, envelope.release());
  } else {
    SendForeign(to, std::move(envelope), kMarked).IgnoreError();
  }
}

EnvelopePtr TellSystem(ActorRef to, EnvelopePtr envelope) {
  if (to.IsRemote()) return to.remote_slot()->link->SendSystem(to, std::move(envelope));
  if (!PostSystem(to, envelope.get())) return envelope;
  static_cast<void>(envelope.release());
  return nullptr;
}

bool PostSystem(ActorRef to, Envelope* envelope) {
  if (to.IsPromise() || !to.IsCurrent()) return false;
  ActorSlot& slot = *to.slot();
  envelope->set_target_word(to.word());
  envelope->MarkAsSystem();
  if (slot.mailbox.PostSystem(envelope) == InboxPush::kQueued) {
    slot.system_hint.store(true, std::memory_order_relaxed);
  } else {
    MakeReady(slot);
  }
  return true;
}

void Signal(ActorRef to, SignalKey key) { TellSystem(to, MakeEnvelope<SignalArrived>(ActorRef(), key)); }

}  // namespace fraktor::inline v0
