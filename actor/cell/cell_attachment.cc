#include "fraktor/actor/cell/cell_attachment.h"

#include <atomic>
#include <utility>

#include "fraktor/actor/await/slot_extension.h"
#include "fraktor/actor/cell/cell_state.h"
#include "fraktor/actor/observe/worker_metrics.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0 {

void WatchActivity(ActorContext& context, bool on) {
  SlotExtension::Of(context.slot()).watches_activity = on;
  // The way of messages that are looked at one by one.
  if (on) ActorContext::worker().turn.Set(Gate::kOrdered);
}

void EnqueueMarked(ActorContext& context, EnvelopePtr message) {
  ActorWorker& worker = ActorContext::worker();
  message->set_target_word(worker.turn.word | kMarked);
  if (worker.metrics != nullptr) {
    worker.metrics->CountEnqueued(context.slot().type.load(std::memory_order_relaxed));
  }
  worker.turn.lists.user.PushBack(message.release());
}

namespace cell_internal {

CellAttachment* FindAttachment(ActorContext& context, const void* key) {
  CellState* const state = CellState::Find(context.slot());
  if (state == nullptr) return nullptr;
  for (const CellState::Attached& attached : state->attachments) {
    if (attached.key == key) return attached.attachment.get();
  }
  return nullptr;
}

CellAttachment& AddAttachment(ActorContext& context, const void* key, std::unique_ptr<CellAttachment> attachment) {
  auto& attachments = CellState::Of(context.slot()).attachments;
  attachments.push_back({.key = key, .attachment = std::move(attachment)});
  return *attachments.back().attachment;
}

}  // namespace cell_internal
}  // namespace fraktor::inline v0
