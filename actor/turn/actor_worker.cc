#include "fraktor/actor/turn/actor_worker.h"

#include "fraktor/actor/turn/dispatcher_table.h"
#include "fraktor/actor/turn/limited_sending.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/message_invoker.h"
#include "fraktor/actor/turn/remote_sending.h"
#include "fraktor/actor/turn/reply_promise.h"
#include "fraktor/actor/turn/routed_sending.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

namespace actor_worker_internal {
constinit thread_local ActorWorker* current = nullptr;
}  // namespace actor_worker_internal

ActorSlotTable& ProcessSlots() {
  static ActorSlotTable& table = *new ActorSlotTable();
  return table;
}

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
      pool_(setup.slots) {}

ActorWorker::~ActorWorker() = default;

void ActorWorker::AdoptThread() {
  cache_ = &NodeCache::OfThisThread();
  // Free slots belong to the worker, not to its thread: guests that take turns share them.
  if (pool_ != nullptr && slots_ == nullptr) slots_ = std::make_unique<ActorSlotPool::Cache>(*pool_);
}

MessageTrace ActorWorker::TraceNow() const {
  return {.enqueued_ns = toolbox == nullptr ? 0 : toolbox->Now().nanoseconds()};
}

bool ActorWorker::Owns(const ActorSlot& slot) const { return pool_ != nullptr && pool_->Owns(&slot); }

void ActorWorker::Register(ActorSlot& slot, ReadyQueueCoordinator::Placement placement) {
  if (slot.dispatcher == dispatcher) {
    coordinator.RegisterReady(index, slot, placement);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void ActorWorker::DeadLetter(Envelope* envelope, ActorSlot* slot, DeadLetterReason reason) {
  if (IsMailboxBell(*envelope)) {
    EndEnvelope(cache(), envelope);
    return;
  }
  FreePromiseOf(*this, *envelope);
  UncountLimited(slot, *envelope);
  if (EnvelopePtr lost(envelope); !lifecycle.IsAdopted(slot, lost, reason)) {
    if (metrics != nullptr) metrics->CountDeadLetter(reason);
    lifecycle.OnDeadLetter(cache(), std::move(lost), slot, reason);
  }
  // Whoever was told of it may have sent something, and no handler need end after this.
  outbox.Flush();
}

void ActorWorker::CountWaitingOf(const ActorSlot& slot, uint32_t messages) {
  metrics->CountEnqueued(slot.type.load(std::memory_order_relaxed), messages);
  CountUnseen(messages);
}

absl::Status ActorWorker::TrySend(ActorRef to, Envelope* envelope) {
  if (to.IsNoOne() || to.word() <= UINT32_MAX) {
    Send(to, envelope);
    return absl::OkStatus();
  }
  envelope->set_target_word(to.word());
  return SendElsewhere(to, envelope);
}

void ActorWorker::SendMarked(ActorRef to, Envelope* envelope) {
  ActorSlot* const slot = to.slot();
  if (slot != nullptr && slot->generation() == to.word()) {
    envelope->set_target_word(to.word() | kMarked);
    outbox.Send(*slot, envelope);
    return;
  }
  envelope->set_target_word(to.word() | kMarked);
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
  } else if ((to.word() & ActorRef::kLimited) != 0 && to.slot()->IsAt(to.generation())) {
    return SendLimited(*this, to, envelope);
  } else if ((to.word() & ActorRef::kRouter) != 0 && to.slot()->IsAt(to.generation())) {
    if (!envelope->type()->is_marked()) return RouteMessage(to, EnvelopePtr(envelope));
    envelope->set_target_word(to.word() | kMarked);
    outbox.Send(*to.slot(), envelope);
  } else {
    DeadLetter(envelope, to.slot(), DeadLetterReason::kStopped);
  }
  return absl::OkStatus();
}

WorkerScope::WorkerScope(ActorWorker& worker) : outer_(actor_worker_internal::current) {
  actor_worker_internal::current = &worker;
}

WorkerScope::~WorkerScope() { actor_worker_internal::current = outer_; }

}  // namespace fraktor::inline v0
