#include "fraktor/actor/send/internal/foreign_burst.h"

#include <utility>

#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

void ForeignBurst::Push() {
  ActorSlot& slot = *to_.slot();
  const SystemCore* const core = SystemCore::Of(slot);
  if (!slot.IsAt(to_.generation()) || core == nullptr || !core->is_open()) {
    // Each message is a dead letter; SendForeign finds the reason.
    for (Envelope* envelope = Envelope::Of(chain_.TakeAll().first); envelope != nullptr;) {
      Envelope* const next = Envelope::Of(envelope->next);
      SendAlone(to_, EnvelopePtr(envelope));
      envelope = next;
    }
    return;
  }
  if (ForeignMetrics* const metrics = core->metrics()) {
    const ObservedId type = slot.type.load(std::memory_order_relaxed);
    for (size_t i = 0; i < chain_.size(); ++i) metrics->CountEnqueued(type);
  }
  if (slot.mailbox.PostChain(chain_)) DispatcherTable::RegisterOrEmpty(slot);
}

void ForeignBurst::SendAlone(ActorRef to, EnvelopePtr envelope) { SendForeign(to, std::move(envelope)).IgnoreError(); }

}  // namespace fraktor::inline v0::actor_internal
