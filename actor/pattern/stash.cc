#include "fraktor/actor/pattern/stash.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/cell_attachment.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/limited_sending.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::ActorSlot;
using actor_internal::ActorWorker;
using actor_internal::AttachmentOf;
using actor_internal::CellAttachment;
using actor_internal::EnvelopeList;
using actor_internal::FindAttachment;
using actor_internal::kLimitedFlag;
using actor_internal::ObservedId;
using actor_internal::Readmitted;

namespace {

class StashedMessages final : public CellAttachment {
 public:
  ~StashedMessages() override {
    while (Envelope* const envelope = messages_.PopFront()) const EnvelopePtr ended(envelope);
  }

  absl::Status Put(ActorContext& context) {
    EnvelopePtr message = context.Stash();
    if (message == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(context.Path(),
                       " has no message to stash: only the user message that is being handled can be, "
                       "and once"));
    }
    if (is_full()) {
      absl::Status full =
          MakeError(absl::StatusCode::kResourceExhausted, ActorErrorKind::kStashOverflow,
                    absl::StrCat(context.Path(), " has no room to stash ", ToAbsl(message->type()->name()), ": ", size_,
                                 " messages are there; unstash earlier, or raise SetStashCapacity"));
      ActorContext::worker().DeadLetter(message.release(), &context.slot(), DeadLetterReason::kStashFull);
      return full;
    }
    messages_.PushBack(message.release());
    ++size_;
    return absl::OkStatus();
  }

  void TakeBack(ActorContext& context, size_t count) {
    EnvelopeList list;
    for (; count > 0 && size_ > 0; --count, --size_) list.PushBack(messages_.PopFront());
    GiveBack(context, list);
  }

  size_t size() const { return size_; }
  bool is_full() const { return size_ >= capacity_; }
  void set_capacity(size_t capacity) { capacity_ = capacity; }

  void OnRestart(ActorContext& context) override { TakeBack(context, size_); }
  void OnStop(ActorContext& context) override {
    size_ = 0;
    while (Envelope* const envelope = messages_.PopFront()) {
      ActorContext::worker().DeadLetter(envelope, &context.slot(), DeadLetterReason::kStopped);
    }
  }

 private:
  static void GiveBack(ActorContext& context, EnvelopeList list) {
    ActorWorker& worker = ActorContext::worker();
    ActorSlot& slot = context.slot();
    if ((slot.flags() & kLimitedFlag) != 0) list = Readmitted(worker.turn(), list);
    if (worker.metrics != nullptr) {
      const ObservedId type = slot.type.load(std::memory_order_relaxed);
      for (const Envelope* at = list.first; at != nullptr; at = Envelope::Of(at->next)) {
        worker.metrics->CountEnqueued(type);
      }
    }
    context.Unstash(list);
  }

  EnvelopeList messages_;
  size_t size_ = 0;
  size_t capacity_ = kDefaultStashCapacity;
};

}  // namespace

Stashed Stash(ActorContext& context) {
  if (absl::Status misuse = context.CheckTurn("Stash"); !misuse.ok()) return Stashed(std::move(misuse));
  return Stashed(AttachmentOf<StashedMessages>(context).Put(context));
}

void UnstashAll(ActorContext& context) {
  if (!context.CheckTurn("UnstashAll").ok()) return;
  if (auto* const stash = FindAttachment<StashedMessages>(context)) stash->TakeBack(context, stash->size());
}

bool UnstashOne(ActorContext& context) {
  if (!context.CheckTurn("UnstashOne").ok()) return false;
  auto* const stash = FindAttachment<StashedMessages>(context);
  if (stash == nullptr || stash->size() == 0) return false;
  stash->TakeBack(context, 1);
  return true;
}

size_t StashSize(ActorContext& context) {
  if (!context.CheckTurn("StashSize").ok()) return 0;
  const auto* const stash = FindAttachment<StashedMessages>(context);
  return stash == nullptr ? 0 : stash->size();
}

bool StashIsFull(ActorContext& context) {
  return !context.CheckTurn("StashIsFull").ok() || AttachmentOf<StashedMessages>(context).is_full();
}

void SetStashCapacity(ActorContext& context, size_t capacity) {
  if (context.CheckTurn("SetStashCapacity").ok()) AttachmentOf<StashedMessages>(context).set_capacity(capacity);
}

}  // namespace fraktor::inline v0
