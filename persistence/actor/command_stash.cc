#include "fraktor/persistence/actor/command_stash.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0 {

using actor_internal::EnvelopeList;
using actor_internal::OrderedEnvelopes;
using actor_internal::SlotExtension;

namespace {

void EndAll(EnvelopeList& list) {
  while (Envelope* const envelope = list.PopFront()) const EnvelopePtr ended(envelope);
}

// A question that others have got too is theirs to answer.
bool MayHaveAsked(ActorRef sender) {
  return sender.IsRemote() || (sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0);
}

// How many are left.
size_t RefuseAsked(ActorContext& context, EnvelopeList& list, const absl::Status& why) {
  size_t left = 0;
  for (EnvelopeList all = std::exchange(list, {}); Envelope* const envelope = all.PopFront();) {
    if (!MayHaveAsked(envelope->sender())) {
      list.PushBack(envelope);
      ++left;
      continue;
    }
    const EnvelopePtr over(envelope);
    context.Tell(over->sender(), ErrorReply{why});
  }
  return left;
}

}  // namespace

CommandStash::~CommandStash() {
  EndAll(waiting_);
  EndAll(put_aside_);
}

void CommandStash::Wait(ActorContext& context) {
  if (EnvelopePtr stashed = context.Stash()) {
    waiting_.PushBack(stashed.release());
    ++waiting_size_;
  }
}

void CommandStash::WaitAgain(ActorContext& context) {
  if (EnvelopePtr stashed = context.Stash()) {
    waiting_.PushFront(stashed.release());
    ++waiting_size_;
  }
}

bool CommandStash::PutAside(ActorContext& context) {
  EnvelopePtr stashed = context.Stash();
  if (stashed == nullptr) return false;
  put_aside_.PushBack(stashed.release());
  ++put_aside_size_;
  return true;
}

void CommandStash::TakeBack() {
  waiting_.Prepend(std::exchange(put_aside_, {}));
  waiting_size_ += std::exchange(put_aside_size_, 0);
}

void CommandStash::ReturnNext(ActorContext& context) {
  if (returned_ != nullptr || waiting_.empty()) return;
  Envelope* const next = waiting_.PopFront();
  --waiting_size_;
  returned_ = next;
  EnvelopeList list;
  list.PushBack(next);
  context.Unstash(list);
}

void CommandStash::Refuse(ActorContext& context, const absl::Status& why) {
  waiting_size_ = RefuseAsked(context, waiting_, why);
  put_aside_size_ = RefuseAsked(context, put_aside_, why);
}

void CommandStash::GiveBack(ActorContext& context) {
  if (has_no_room_) {
    for (EnvelopeList lost = std::exchange(waiting_, {}); Envelope* const envelope = lost.PopFront();) {
      ActorContext::worker().DeadLetter(envelope, &context.slot(), DeadLetterReason::kStashFull);
    }
  }
  EnvelopeList all = std::exchange(put_aside_, {});
  // The one that is at the front of the mailbox again goes before those that it went before.
  if (returned_ != nullptr) {
    SlotExtension* const extension = context.slot().extension;
    OrderedEnvelopes* const order = extension == nullptr ? nullptr : extension->order.get();
    EnvelopeList& user = ActorContext::worker().turn_state.lists.user;
    if (order == nullptr) {
      if (user.first == returned_) all.PushBack(user.PopFront());
    } else if (Envelope* const front = order->PopFront()) {
      EnvelopeList list;
      list.PushBack(front);
      if (front == returned_) {
        all.Append(list);
      } else {
        order->AddFront(list);
      }
    }
    returned_ = nullptr;
  }
  all.Append(std::exchange(waiting_, {}));
  waiting_size_ = 0;
  put_aside_size_ = 0;
  if (!all.empty()) context.Unstash(all);
}

}  // namespace fraktor::inline v0
