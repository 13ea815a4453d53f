#include "fraktor/actor/turn/remote_sending.h"

#include <utility>

#include "fraktor/actor/turn/system_core.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

// Apart from those of systems, whose slots are used again when they end. Nobody listens to their core.
ActorSlotPool& RemoteSlots() {
  static ActorSlotPool& pool = *new ActorSlotPool(ProcessSlots(), &SystemCore::Acquire(/*threaded=*/false));
  return pool;
}

}  // namespace

absl::StatusOr<ActorSlot*> MakeRemoteSlot(RemoteLink& link) {
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<ActorSlot> handle, RemoteSlots().Reserve());
  handle.slot->link = &link;
  return handle.slot;
}

absl::Status SendRemote(ActorRef to, EnvelopePtr message) {
  message->set_target_word(to.word());
  return to.slot()->link->Send(to, std::move(message));
}

}  // namespace fraktor::inline v0
