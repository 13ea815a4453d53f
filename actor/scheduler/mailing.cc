#include "fraktor/actor/scheduler/mailing.h"

#include "fraktor/actor/scheduler/actor_slot.h"
#include "fraktor/actor/scheduler/dispatcher_table.h"

namespace fraktor::inline v0 {
namespace {

bool IsInUse(ActorRef to) { return !to.IsNoOne() && to.word() <= UINT32_MAX && to.slot()->IsAt(to.generation()); }

// Makes an actor ready whose mailbox the caller holds.
void MakeReady(ActorSlot& slot) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    worker->BecameReady(slot, /*next=*/false);
  } else {
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

}  // namespace

void SendForeign(ActorRef to, EnvelopePtr envelope) {
  if (!IsInUse(to)) {
    DispatcherTable::CountLateDeadLetter();
    return;
  }
  ActorSlot& slot = *to.slot();
  envelope->set_target_word(to.word());
  Envelope* const sent = envelope.release();
  if (slot.inbox.Push(sent) == InboxPush::kClaimed) {
    slot.user = {sent, sent};
    DispatcherTable::RegisterOrEmpty(slot);
  }
}

void TellSystem(ActorRef to, EnvelopePtr envelope) {
  if (!IsInUse(to)) {
    DispatcherTable::CountLateDeadLetter();
    return;
  }
  ActorSlot& slot = *to.slot();
  envelope->set_target_word(to.word());
  envelope->MarkAsSystem();
  Envelope* const sent = envelope.release();
  switch (slot.inbox.PushSystem(sent)) {
    case InboxPush::kQueued:
      slot.system_hint.store(true, std::memory_order_relaxed);
      return;
    case InboxPush::kClaimed:
      slot.system = sent;
      break;
    case InboxPush::kUnparked:
      break;
  }
  MakeReady(slot);
}

}  // namespace fraktor::inline v0
