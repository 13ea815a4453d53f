#include "fraktor/actor/send/mailing.h"

#include <optional>
#include <utility>

#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/internal/routed_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlot;
using actor_internal::ActorWorker;
using actor_internal::AnswerPromise;
using actor_internal::DispatcherTable;
using actor_internal::ForeignMetrics;
using actor_internal::HasNoRecipient;
using actor_internal::NodeCache;
using actor_internal::RouteMessage;
using actor_internal::SendLimitedForeign;
using actor_internal::SendRemote;
using actor_internal::SignalArrived;
using actor_internal::SystemCore;
using utils_internal::InboxPush;

namespace {

// Schedules an actor whose mailbox the caller holds.
void Schedule(ActorSlot& slot) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->outbox.MakeReady(slot);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

// Returns the message, with the current time if it is sampled.
EnvelopePtr Sampled(const SystemCore& core, ForeignMetrics& metrics, EnvelopePtr envelope) {
  if (!metrics.Sample() || envelope->has_trace()) [[likely]]
    return envelope;
  const std::optional<Instant> now = core.Now();
  if (!now.has_value()) return envelope;
  return WithTrace(NodeCache::OfThisThread(), std::move(envelope), {.enqueued_ns = now->nanoseconds()});
}

}  // namespace

absl::Status SendForeign(ActorRef to, EnvelopePtr envelope, uint64_t flags) {
  if (to.IsRemote()) return SendRemote(to, std::move(envelope));
  // Set first: a dead letter names its target by it.
  envelope->set_target_word(to.word() | flags);
  if (!to.IsCurrent()) {
    const bool is_answer = to.IsPromise();
    absl::Status lost = !to.IsNoOne() && SystemCore::Of(to) == nullptr
                            ? absl::UnavailableError("the actor system of the target has ended")
                            : HasNoRecipient(*envelope, to);
    SystemCore::LoseForeign(to, std::move(envelope),
                            to.IsNoOne() ? DeadLetterReason::kNoRecipient
                            : is_answer  ? DeadLetterReason::kLateReply
                                         : DeadLetterReason::kStopped);
    return lost;
  }
  if (to.IsPromise()) {
    AnswerPromise(to, envelope.release());
    return absl::OkStatus();
  }
  ActorSlot* const slot = to.slot();
  const SystemCore* const core = SystemCore::Of(*slot);
  if (core == nullptr || !core->is_open()) {
    SystemCore::LoseForeign(to, std::move(envelope), DeadLetterReason::kShutdown);
    return absl::UnavailableError(
        "the actor system of the target is shutting down and accepts no messages from other threads");
  }
  ForeignMetrics* const metrics = core->metrics();
  if ((to.word() & ActorRef::kLimited) != 0) {
    if (metrics != nullptr) envelope = Sampled(*core, *metrics, std::move(envelope));
    return SendLimitedForeign(to, std::move(envelope));
  }
  if ((to.word() & ActorRef::kRouter) != 0) {
    if (!envelope->type()->is_intercepted()) return RouteMessage(to, std::move(envelope));
    envelope->set_target_word(to.word() | kIntercepted);
  }
  if (metrics != nullptr) {
    metrics->CountEnqueued(slot->type.load(std::memory_order_relaxed));
    envelope = Sampled(*core, *metrics, std::move(envelope));
  }
  if (slot->mailbox.Post(envelope.release())) DispatcherTable::RegisterOrEmpty(*slot);
  return absl::OkStatus();
}

void SendIntercepted(ActorRef to, EnvelopePtr envelope) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->SendIntercepted(to, envelope.release());
  } else {
    SendForeign(to, std::move(envelope), kIntercepted).IgnoreError();
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
    Schedule(slot);
  }
  return true;
}

void Signal(ActorRef to, SignalKey key) { TellSystem(to, MakeEnvelope<SignalArrived>(ActorRef(), key)); }

}  // namespace fraktor::inline v0
