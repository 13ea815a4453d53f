// Outbox: how a worker sends local messages while it runs an actor.
//
// The first message to a target is pushed at once. Further messages to the same target are chained,
// and pushed together when the chain has kChainLimit messages, when the handler sends to another
// target, or when it ends: one read-modify-write for eight messages. So a handler may send one
// message and block until its peer has handled it. A handler that has sent several messages to one
// peer calls Flush before it blocks, as RunBlocking does.
//
// Chains grow up to kLongChainLimit while the target has not taken the earlier messages. These
// messages would wait anyway. Senders contend for the mailbox word less often, and the target finds
// the messages of one sender next to each other in memory.
//
// A target that was idle must be scheduled. The outbox defers that for one target until the turn
// ends, which is usually soon. Then this worker runs the target next, with the message in its
// cache, without a run queue and without waking a worker. The deferral ends after kDeferredSends
// sends, or when the worker goes on with another message of the same actor. WorkerWatch schedules
// the deferred target of a slow handler.
//
// The outbox counts messages that wait in a mailbox, for the metrics. It does not count a message
// to the deferred target: if this worker runs that target next, the turn counts the message.
//
// Called by: ActorWorker and the invoker. Thread: the thread of the worker.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_OUTBOX_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/send/internal/deferred_target.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::inline v0::actor_internal {

// Sink has `void BecameReady(ActorSlot& slot)`, which schedules an actor whose mailbox the caller
// holds, and `void CountWaiting(const ActorSlot& slot, uint32_t messages)`, which counts messages
// that wait. A template, so that the calls are not virtual.
template <class Sink>
class Outbox {
 public:
  static constexpr uint32_t kChainLimit = 8;
  static constexpr uint32_t kLongChainLimit = 64;
  static constexpr uint32_t kDeferredSends = 16;

  explicit Outbox(Sink& sink) : sink_(sink) {}

  // Sends an envelope to the current actor of a slot. The target word of the envelope is set.
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

  // Schedules an actor whose mailbox the caller holds, at the end of the turn at the latest. For
  // messages that Send has not sent: those that are counted already, and system messages.
  void MakeReady(ActorSlot& slot) {
    Publish();
    if (sends_ >= kDeferredSends) {
      sink_.BecameReady(slot);
    } else {
      deferred_.Put(&slot);
      uncounted_ = 0;
    }
  }

  // Pushes the pending chain and schedules the deferred target. Call it before anything that
  // another thread may wait for.
  void Flush() {
    if (!chain_.empty()) PushChain();
    target_ = nullptr;
    Publish();
  }

  // Called when a handler has ended. `more`: the worker goes on with the same actor.
  [[gnu::always_inline]] void EndHandler(bool more) {
    if (!chain_.empty()) [[unlikely]]
      PushChain();
    target_ = nullptr;
    sends_ = 0;
    if (more && !deferred_.empty()) Publish();
  }

  // Called when the turn has ended. Returns the actor to run next, or null. TakeUncounted is the
  // number of its messages that are not counted yet.
  ActorSlot* TakeDeferred() {
    ActorSlot* const slot = deferred_.mine();
    if (slot == nullptr) return nullptr;
    ActorSlot* const taken = deferred_.Take();
    if (taken == nullptr) [[unlikely]]
      CountUncounted(*slot);
    return taken;
  }
  uint32_t TakeUncounted() { return std::exchange(uncounted_, 1); }

  // For WorkerWatch.
  DeferredTarget& deferred() { return deferred_; }

 private:
  // Counts a send towards the end of the deferral, if a target is deferred.
  void CountSend() {
    if (!deferred_.empty() && ++sends_ >= kDeferredSends) [[unlikely]]
      Publish();
  }

  // The caller has claimed an idle mailbox by pushing a message.
  [[gnu::always_inline]] void Claimed(ActorSlot& slot) {
    if (!deferred_.empty() || sends_ >= kDeferredSends) [[unlikely]] {
      ClaimedAnother(slot);
    } else {
      deferred_.Put(&slot);
    }
  }

  // Sends a further message to the last target.
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
    // Schedules the earlier target and defers the newest, whose message is still in the cache.
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
  ActorSlot* target_ = nullptr;  // The target of the last send in this handler, and of the chain.
  utils_internal::InboxChain chain_;
  uint32_t sends_ = 0;  // Sends of this handler since a target was deferred.
  DeferredTarget deferred_;
  // How many messages of the deferred target are not counted yet: 1, or 0 if MakeReady deferred it.
  uint32_t uncounted_ = 1;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_OUTBOX_H_
