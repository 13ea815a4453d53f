// ForeignBurst: sends many user messages from a thread that is no worker, such as the messages of a
// frame from another node.
//
//   ForeignBurst burst;
//   for (EnvelopePtr& message : messages) burst.Send(to, std::move(message));  // as SendForeign
//   burst.Flush();                                                             // or its destructor
//
// Consecutive messages to the same actor are chained, kChainLimit at most, and pushed together: one
// read-modify-write for all of them, and one check whether to wake a worker. A message to a
// promise, a router, another node or a bounded mailbox is sent by SendForeign, after the pending
// chain. Chained messages are counted in the metrics, but not sampled.
//
// Called by: remoting. Thread: one thread uses a burst.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_FOREIGN_BURST_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_FOREIGN_BURST_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/internal/inbox.h"

namespace fraktor::inline v0::actor_internal {

class ForeignBurst {
 public:
  static constexpr size_t kChainLimit = 256;

  ForeignBurst() = default;
  ~ForeignBurst() { Flush(); }
  ForeignBurst(const ForeignBurst&) = delete;
  ForeignBurst& operator=(const ForeignBurst&) = delete;

  // The envelope was made on this thread, and its type is not intercepted (kIsInterceptedMessage).
  void Send(ActorRef to, EnvelopePtr envelope) {
    if (chain_.empty() || to != to_) {
      Flush();
      if (to.IsNoOne() || to.word() > UINT32_MAX) {
        SendAlone(to, std::move(envelope));
        return;
      }
      to_ = to;
    }
    envelope->set_target_word(to.word());
    chain_.Add(envelope.release());
    if (chain_.size() >= kChainLimit) Push();
  }

  // Pushes the pending chain. Call it before sending anything that must not overtake the chain.
  void Flush() {
    if (!chain_.empty()) Push();
  }

 private:
  void Push();
  static void SendAlone(ActorRef to, EnvelopePtr envelope);

  ActorRef to_;
  utils_internal::InboxChain chain_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_FOREIGN_BURST_H_
