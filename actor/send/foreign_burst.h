// ForeignBurst: many user messages from a thread that is no worker, such as those of a frame from another node.
//
//   ForeignBurst burst;
//   for (...) burst.Send(to, std::move(envelope));       // as SendForeign, in the order of the calls
//   burst.Flush();                                       // or the end of the burst
//
// Messages that follow each other to the same actor are chained, kChainLimit at most, and pushed together: one
// read-modify-write for all of them, and one look whether a worker is to be woken. What is not for an actor as such, or
// for one whose mailbox has a limit, goes as SendForeign sends it, behind what is chained. What is chained is
// counted, but not sampled.
//
// Thread safety: belongs to one thread.
#ifndef FRAKTOR_ACTOR_SEND_FOREIGN_BURST_H_
#define FRAKTOR_ACTOR_SEND_FOREIGN_BURST_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/queue/inbox.h"

namespace fraktor::inline v0 {

class ForeignBurst {
 public:
  static constexpr size_t kChainLimit = 256;

  ForeignBurst() = default;
  ~ForeignBurst() { Flush(); }
  ForeignBurst(const ForeignBurst&) = delete;
  ForeignBurst& operator=(const ForeignBurst&) = delete;

  // The envelope was made on this thread, and has no mark.
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

  // Pushes what is chained: before anything that must not overtake it.
  void Flush() {
    if (!chain_.empty()) Push();
  }

 private:
  void Push();
  static void SendAlone(ActorRef to, EnvelopePtr envelope);

  ActorRef to_;
  InboxChain chain_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_FOREIGN_BURST_H_
