#include "fraktor/persistence/protocol/pending_operations.h"

#include <atomic>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlot;

uint64_t PendingOperations::NextNumber() {
  // Counted in the process, so that a restarted actor does not mistake the operations of an earlier
  // incarnation for its own. Relaxed: the numbers only have to differ.
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Waker PendingOperations::WakerOf(ActorContext& context, uint64_t number) {
  return {.function = &Wake, .target = &context.slot(), .first = context.self().word(), .second = number};
}

void PendingOperations::Wake(void* slot, uint64_t word, uint64_t number) noexcept {
  Tell(ActorRef(static_cast<ActorSlot*>(slot), word), protocol_internal::OperationReady{number});
}

bool PendingOperations::Resume(const Envelope& message) {
  const auto* const ready = message.TryAs<protocol_internal::OperationReady>();
  if (ready == nullptr) return false;
  auto found = operations_.extract(ready->number);
  if (!found.empty()) found.mapped()->Finish();
  return true;
}

void PendingOperations::FailAll(const absl::Status& error) {
  while (!operations_.empty()) operations_.extract(operations_.begin()).mapped()->Fail(error);
}

}  // namespace fraktor::inline v0
