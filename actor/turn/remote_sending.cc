#include "fraktor/actor/turn/remote_sending.h"

#include <utility>

#include "fraktor/actor/turn/reply_promise.h"
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

bool IsRemoteSlot(const ActorSlot& slot) { return RemoteSlots().Owns(&slot); }

absl::Status SendRemote(ActorRef to, EnvelopePtr message) {
  message->set_target_word(to.word());
  return to.slot()->link->Send(to, std::move(message));
}

// The failure has no sender, so nothing comes of one that is lost.
void FailRemoteAsk(ActorRef sender, absl::FunctionRef<absl::Status()> why) {
  if (sender.IsNoOne() || !sender.IsRemote() || !sender.slot()->link->IsPromise(sender)) return;
  SendRemote(sender, MakeEnvelope<ErrorReply>(ActorRef(), why())).IgnoreError();
}

ActorRef SharedSender(ActorRef sender) {
  if (sender.IsNoOne()) return sender;
  if (sender.IsRemote()) return sender.slot()->link->Shared(sender);
  return sender.IsPromise() ? ActorRef(sender.slot(), sender.word() | ActorRef::kShared) : sender;
}

}  // namespace fraktor::inline v0
