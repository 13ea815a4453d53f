#include "fraktor/actor/send/internal/actor_worker.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/internal/routed_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_lifecycle.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::TableSlot;

namespace actor_worker_internal {
constinit thread_local ActorWorker* current = nullptr;
}  // namespace actor_worker_internal

ActorWorker::ActorWorker(const WorkerSetup& setup)
    : coordinator(setup.coordinator),
      lifecycle(setup.lifecycle),
      index(setup.index),
      dispatcher(setup.dispatcher),
      toolbox(setup.toolbox),
      metrics(setup.metrics),
      outbox(*this),
      passes(setup.metrics != nullptr ? &setup.metrics->passes() : new PassCounts()),
      looks_at_sends_(setup.metrics != nullptr),
      own_passes_(setup.metrics != nullptr ? nullptr : passes),
      pool_(setup.slots),
      promise_pool_(setup.promises) {}

ActorWorker::~ActorWorker() = default;

void ActorWorker::AdoptThread() {
  cache_ = &NodeCache::OfThisThread();
  // Free slots and promises belong to the worker, not to its thread: threads that take turns as
  // guests share them.
  if (pool_ != nullptr && slots_ == nullptr) slots_ = std::make_unique<ActorSlotPool::Cache>(*pool_);
  if (promise_pool_ != nullptr && promises_ == nullptr) {
    promises_ = std::make_unique<PromiseSlotPool::Cache>(*promise_pool_);
  }
}

MessageTrace ActorWorker::TraceNow() const {
  return {.enqueued_ns = toolbox == nullptr ? 0 : toolbox->Now().nanoseconds()};
}

bool ActorWorker::Owns(const PromiseSlot& promise) const {
  return promise_pool_ != nullptr && promise_pool_->Owns(&promise);
}

void ActorWorker::Register(ActorSlot& slot, ReadyQueueCoordinator::Placement placement) {
  if (slot.dispatcher == dispatcher) {
    coordinator.RegisterReady(index, slot, placement);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void ActorWorker::DeadLetter(Envelope* envelope, TableSlot* slot, DeadLetterReason reason) {
  if (IsMailboxBell(*envelope)) {
    EndEnvelope(cache(), envelope);
    return;
  }
  UncountLimited(slot, *envelope);
  if (envelope->is_system() && reason != DeadLetterReason::kLateReply) {
    if (!IsLostReply(*envelope)) {
      // A message of the runtime, which metrics do not count.
      lifecycle.OnDeadLetter(cache(), EnvelopePtr(envelope), slot, reason);
      outbox.Flush();
      return;
    }
    // The asker ended when the reply had claimed its promise already.
    const ActorRef promise = envelope->sender();
    envelope->set_target_word(promise.word());
    slot = promise.any_slot();
    reason = DeadLetterReason::kLateReply;
  }
  if (EnvelopePtr lost(envelope); !lifecycle.PublishOrphan(slot, lost, reason)) {
    if (metrics != nullptr) metrics->CountDeadLetter(reason);
    lifecycle.OnDeadLetter(cache(), std::move(lost), slot, reason);
  }
  // A subscriber to dead letters may have sent messages, and perhaps no handler ends after this to
  // flush them.
  outbox.Flush();
}

void ActorWorker::CountWaitingOf(const ActorSlot& slot, uint32_t messages) {
  metrics->CountEnqueued(slot.type.load(std::memory_order_relaxed), messages);
  CountUnseen(messages);
}

absl::Status HasNoRecipient(const Envelope& message, ActorRef to) {
  const absl::string_view type = ToAbsl(message.type()->name());
  if (to.IsNoOne()) {
    return absl::NotFoundError(absl::StrCat(type, " has no recipient: the reference refers to no one; it was not set"));
  }
  if (to.IsPromise()) {
    return absl::NotFoundError(absl::StrCat(
        type, " has no recipient: the ask has ended by a reply, an error or its timeout; reply once, and in time"));
  }
  return absl::NotFoundError(
      absl::StrCat(type, " has no recipient: the actor has ended; use a reference to a living one"));
}

absl::Status ActorWorker::TrySend(ActorRef to, Envelope* envelope) {
  if (!to.IsRemote() && !to.IsCurrent()) [[unlikely]] {
    absl::Status lost = HasNoRecipient(*envelope, to);
    Send(to, envelope);
    return lost;
  }
  if (to.word() <= UINT32_MAX) {
    Send(to, envelope);
    return absl::OkStatus();
  }
  envelope->set_target_word(to.word());
  return SendElsewhere(to, envelope);
}

void ActorWorker::SendIntercepted(ActorRef to, Envelope* envelope) {
  TableSlot* const slot = to.any_slot();
  envelope->set_target_word(to.word() | kIntercepted);
  if (slot != nullptr && slot->generation() == to.word()) {
    outbox.Send(static_cast<ActorSlot&>(*slot), envelope);
    return;
  }
  SendElsewhereOrDrop(to, envelope);
}

void ActorWorker::SendElsewhereOrDrop(ActorRef to, Envelope* envelope) {
  if (to.IsPromise()) {
    AnswerPromise(to, envelope);
  } else {
    SendElsewhere(to, envelope).IgnoreError();
  }
}

absl::Status ActorWorker::SendElsewhere(ActorRef to, Envelope* envelope) {
  if (to.IsNoOne()) {
    DeadLetter(envelope, nullptr, DeadLetterReason::kNoRecipient);
  } else if (to.IsRemote()) {
    return SendRemote(to, EnvelopePtr(envelope));
  } else if (to.IsPromise()) {
    AnswerPromise(to, envelope);
  } else if ((to.word() & ActorRef::kLimited) != 0 && to.IsCurrent()) {
    return SendLimited(*this, to, envelope);
  } else if ((to.word() & ActorRef::kRouter) != 0 && to.IsCurrent()) {
    if (!envelope->type()->is_intercepted()) return RouteMessage(to, EnvelopePtr(envelope));
    envelope->set_target_word(to.word() | kIntercepted);
    outbox.Send(*to.slot(), envelope);
  } else {
    DeadLetter(envelope, to.slot(), DeadLetterReason::kStopped);
  }
  return absl::OkStatus();
}

WorkerScope::WorkerScope(ActorWorker& worker) : outer_(actor_worker_internal::current) {
  actor_worker_internal::current = &worker;
}

WorkerScope::WorkerScope(std::nullptr_t) : outer_(actor_worker_internal::current) {
  actor_worker_internal::current = nullptr;
}

WorkerScope::~WorkerScope() { actor_worker_internal::current = outer_; }

}  // namespace fraktor::inline v0::actor_internal
