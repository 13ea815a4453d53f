#include "fraktor/actor/send/internal/remote_sending.h"

#include <cstddef>
#include <utility>

#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/table/internal/slot_pool.h"
#include "fraktor/utils/table/internal/slot_table.h"

namespace fraktor::inline v0::actor_internal {

using utils_internal::SlotHandle;
using utils_internal::SlotPool;
using utils_internal::SlotTable;

namespace {

// The chunks are small: a process knows few nodes, and has a few slots for each.
constexpr size_t kChunkBytes = size_t{1} << 14;
using RemoteSlotTable = SlotTable<RemoteSlot, kChunkBytes>;
using RemoteSlotPool = SlotPool<RemoteSlot, kChunkBytes>;

RemoteSlotPool& RemoteSlots() {
  // 65536 chunks of 255 slots.
  static RemoteSlotTable& table = *new RemoteSlotTable({.max_chunks = 65536});
  static RemoteSlotPool& pool = *new RemoteSlotPool(table, &CoreOfRemotes());
  return pool;
}

}  // namespace

SystemCore& CoreOfRemotes() {
  static SystemCore& core = SystemCore::Acquire(/*threaded=*/false);
  return core;
}

absl::StatusOr<RemoteSlot*> MakeRemoteSlot(RemoteLink& link) {
  FRAKTOR_ASSIGN_OR_RETURN(const SlotHandle<RemoteSlot> handle, RemoteSlots().Reserve());
  handle.slot->link = &link;
  return handle.slot;
}

absl::Status SendRemote(ActorRef to, EnvelopePtr message) {
  message->set_target_word(to.word());
  return to.remote_slot()->link->Send(to, std::move(message));
}

// The ErrorReply has no sender, so its own loss causes no further message.
void FailRemoteAsk(ActorRef sender, absl::FunctionRef<absl::Status()> why) {
  if (sender.IsNoOne() || !sender.IsRemote() || !sender.remote_slot()->link->IsPromise(sender)) return;
  SendRemote(sender, MakeEnvelope<ErrorReply>(ActorRef(), why())).IgnoreError();
}

ActorRef SharedSender(ActorRef sender) {
  if (sender.IsNoOne()) return sender;
  if (sender.IsRemote()) return sender.remote_slot()->link->Shared(sender);
  return sender.IsPromise() ? ActorRef(sender.any_slot(), sender.word() | ActorRef::kShared) : sender;
}

}  // namespace fraktor::inline v0::actor_internal
