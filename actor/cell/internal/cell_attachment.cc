#include "fraktor/actor/cell/internal/cell_attachment.h"

#include <atomic>
#include <utility>

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/cell/internal/cell_state.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/send/mailing.h"

namespace fraktor::inline v0::actor_internal {

void WatchActivity(ActorContext& context, bool on) {
  SlotExtension::Of(context.slot()).watches_activity = on;
  // The gate takes messages off the fast path, so that each one is reported.
  if (on) ActorContext::worker().turn_state.Set(Gate::kOrdered);
}

void EnqueueIntercepted(ActorContext& context, EnvelopePtr message) {
  ActorWorker& worker = ActorContext::worker();
  message->set_target_word(worker.turn_state.word | kIntercepted);
  if ((context.slot().flags() & kLimitedFlag) != 0) {
    AppendBeyondLimits(worker.turn(), message.release());
    return;
  }
  if (worker.metrics != nullptr) {
    worker.metrics->CountEnqueued(context.slot().type.load(std::memory_order_relaxed));
  }
  worker.turn_state.lists.user.PushBack(message.release());
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
}  // namespace fraktor::inline v0::actor_internal
