// How a worker sends while it runs an actor.
//
// The first message to a target is pushed at once. Messages that follow to the same target are chained and pushed
// together, kChainLimit at most, or when the handler turns to another target or ends: one read-modify-write for eight
// messages. So a handler that sends one message and then waits for what its peer does with it goes on; one that has
// sent several to the same peer calls Flush before it waits, as RunBlocking does.
//
// Chains grow longer, up to kLongChainLimit, as long as the target has not even taken what was pushed before. Then the
// messages would wait anyway, senders fight for the word less often, and the target finds the messages of a sender
// beside each other in memory.
//
// A target that was idle has to be made ready. For one of them this waits for the end of the run: mostly that comes
// soon, and then this worker runs the target next, with the message in its cache, without any queue, and nobody is
// woken. It waits for at most kDeferredSends sends, or until the worker goes on with another message, and WorkerWatch
// makes ready what a slow handler holds back.
//
// What is counted: a message that has to wait. One that finds its target idle is not counted here, as long as it may be
// that this worker runs the target next: then the run counts it.
#ifndef FRAKTOR_ACTOR_SEND_OUTBOX_H_
#define FRAKTOR_ACTOR_SEND_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/deferred_target.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/utils/queue/inbox.h"

namespace fraktor::inline v0 {

// Sink has `void BecameReady(ActorSlot& slot)`: the mailbox of `slot` was idle and is held by the caller; and
// `void CountWaiting(const ActorSlot& slot, uint32_t messages)`: so many messages have to wait there. A template, so
// that the calls are no virtual ones.
template <class Sink>
class Outbox {
 public:
  static constexpr uint32_t kChainLimit = 8;
  static constexpr uint32_t kLongChainLimit = 64;
  static constexpr uint32_t kDeferredSends = 16;

  explicit Outbox(Sink& sink) : sink_(sink) {}

  // Sends an envelope, whose target word is set, to a slot that was found to be in use by that target.
  [[gnu::always_inline]] void Send(ActorSlot& slot, Envelope* envelope) {
    if (&slot == target_) [[unlikely]] {
      SendOneMore(envelope);
      return;
    }
    if (!chain_.empty()) [[unlikely]]
      PushChain();
    target_ = &slot;
    if (slot.mailbox.Post(envelope)) {
      Claimed(slot);
    } else {
      sink_.CountWaiting(slot, 1);
      CountSend();
    }
  }

  // A slot whose mailbox the caller holds is to be made ready, at the end of the run at the latest: not for a message
  // of Send, but for one that is counted already, or is none.
  void MakeReady(ActorSlot& slot) {
    Publish();
    if (sends_ >= kDeferredSends) {
      sink_.BecameReady(slot);
    } else {
      deferred_.Put(&slot);
      uncounted_ = 0;
    }
  }

  // Pushes what is chained, and makes ready what was put off: before anything that others wait for.
  void Flush() {
    if (!chain_.empty()) PushChain();
    target_ = nullptr;
    Publish();
  }

  // The handler has ended. `more`: the worker goes on with the same actor.
  [[gnu::always_inline]] void EndHandler(bool more) {
    if (!chain_.empty()) [[unlikely]]
      PushChain();
    target_ = nullptr;
    sends_ = 0;
    if (more && !deferred_.empty()) Publish();
  }

  // The run has ended: the actor to run next, or null. How many of its messages nobody has counted is TakeUncounted.
  ActorSlot* TakeDeferred() {
    ActorSlot* const slot = deferred_.mine();
    if (slot == nullptr) return nullptr;
    ActorSlot* const taken = deferred_.Take();
    if (taken == nullptr) [[unlikely]]
      CountUncounted(*slot);
    return taken;
  }
  uint32_t TakeUncounted() { return std::exchange(uncounted_, 1); }

  // What WorkerWatch looks at.
  DeferredTarget& deferred() { return deferred_; }

 private:
  // Only those count for which something waits.
  void CountSend() {
    if (!deferred_.empty() && ++sends_ >= kDeferredSends) [[unlikely]]
      Publish();
  }

  // A slot was idle and is held by the caller, with one message in it.
  [[gnu::always_inline]] void Claimed(ActorSlot& slot) {
    if (!deferred_.empty() || sends_ >= kDeferredSends) [[unlikely]] {
      ClaimedAnother(slot);
    } else {
      deferred_.Put(&slot);
    }
  }

  // A further message to the last target.
  [[gnu::noinline]] void SendOneMore(Envelope* envelope) {
    chain_.Add(envelope);
    const size_t size = chain_.size();
    if (size % kChainLimit == 0 && (size >= kLongChainLimit || !target_->mailbox.inbox.HasNodes())) PushChain();
    CountSend();
  }

  [[gnu::noinline]] void PushChain() {
    ActorSlot& slot = *target_;
    const auto messages = static_cast<uint32_t>(chain_.size());
    const bool claimed = slot.mailbox.PostChain(chain_);
    sink_.CountWaiting(slot, claimed ? messages - 1 : messages);
    if (claimed) Claimed(slot);
  }

  [[gnu::noinline]] void ClaimedAnother(ActorSlot& slot) {
    // The one before has waited long enough; the newest is the warmest.
    Publish();
    deferred_.Put(&slot);
    if (sends_ >= kDeferredSends) Publish();
  }

  [[gnu::noinline]] void Publish() {
    if (deferred_.empty()) return;
    CountUncounted(*deferred_.mine());
    if (ActorSlot* const slot = deferred_.Take()) sink_.BecameReady(*slot);
  }

  void CountUncounted(const ActorSlot& slot) {
    if (TakeUncounted() != 0) sink_.CountWaiting(slot, 1);
  }

  Sink& sink_;
  ActorSlot* target_ = nullptr;  // Of the last send in this handler, and of the chain.
  InboxChain chain_;
  uint32_t sends_ = 0;  // In this handler, while something was put off.
  DeferredTarget deferred_;
  // Of the messages of the one that is put off: 1, unless it is there for something else.
  uint32_t uncounted_ = 1;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_OUTBOX_H_
