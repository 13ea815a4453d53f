#include "fraktor/actor/scheduler/actor_worker.h"

#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/actor/scheduler/message_invoker.h"

namespace fraktor::inline v0 {

namespace actor_worker_internal {
constinit thread_local ActorWorker* current = nullptr;
}  // namespace actor_worker_internal

ActorSlotTable& ProcessSlots() {
  static ActorSlotTable& table = *new ActorSlotTable();
  return table;
}

ActorWorker::ActorWorker(ReadyQueueCoordinator& ready_queue, WorkerIndex worker_index, uint16_t dispatcher_number,
                         ActorLifecycle& actor_lifecycle)
    : coordinator(ready_queue),
      lifecycle(actor_lifecycle),
      index(worker_index),
      dispatcher(dispatcher_number),
      outbox(*this) {}

void ActorWorker::BecameReady(ActorSlot& slot, bool next) {
  using Placement = ReadyQueueCoordinator::Placement;
  if (slot.dispatcher == dispatcher) {
    coordinator.RegisterReady(index, slot, next ? Placement::kNext : Placement::kBack);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void ActorWorker::SendElsewhere(ActorRef to, Envelope* envelope) {
  lifecycle.OnDeadLetter(cache(), EnvelopePtr(envelope), to.slot(),
                         to.IsNoOne() ? DeadLetterReason::kNoRecipient : DeadLetterReason::kStopped);
}

WorkerScope::WorkerScope(ActorWorker& worker) : outer_(actor_worker_internal::current) {
  actor_worker_internal::current = &worker;
}

WorkerScope::~WorkerScope() { actor_worker_internal::current = outer_; }

}  // namespace fraktor::inline v0
