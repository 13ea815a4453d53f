// Sending to actors of other nodes: references that carry ActorRef::kRemote. What leads there is a RemoteLink, which the
// room `remote` makes; what becomes of a message on the way is its business.
//
// Only such references lead here, so other sends pay nothing for it.
#ifndef FRAKTOR_ACTOR_SEND_REMOTE_SENDING_H_
#define FRAKTOR_ACTOR_SEND_REMOTE_SENDING_H_

#include <cassert>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/table/table_slot.h"

namespace fraktor::inline v0 {

class RemoteSlot;

// Another node, or one life of it. References to it may be anywhere and outlive their system, so a link lives as long as
// the process; when its system has ended, what is sent to it is a dead letter.
//
// Thread safety: any thread may call anything.
class RemoteLink {
 public:
  // A user message, with its target word set. What cannot be delivered is a dead letter. An error is only for TryTell.
  virtual absl::Status Send(ActorRef to, EnvelopePtr message) = 0;
  // A message between actors' lifecycles: watching, unwatching, stopping, and the news of an end. Null, or the envelope
  // again if there is nobody.
  virtual EnvelopePtr SendSystem(ActorRef to, EnvelopePtr message) = 0;
  // "pekko://shop@10.0.0.7:2552/user/cart", as well as is known.
  virtual std::string PathOf(ActorRef to) const = 0;
  // The path and uid, "pekko://shop@10.0.0.7:2552/user/cart#5320", as well as they are known. ""
  // if the reference means no single actor.
  virtual std::string CanonicalPathOf(ActorRef /*to*/) const { return {}; }
  // "pekko://shop@10.0.0.7:2552".
  virtual std::string NodeText() const = 0;

  // Whether it is a promise of that node: somebody there waits for one answer.
  virtual bool IsPromise(ActorRef /*to*/) const { return false; }
  // The same promise as one that others have been asked for too: nobody tells it of a failure then.
  virtual ActorRef Shared(ActorRef promise) const { return promise; }

  // For the text of a question that has timed out: whom it was asked of, and what is known of him.
  struct Asked {
    std::string path;
    std::string business;
  };
  // By the slot of the reference and the lower half of its word, which is what a promise keeps.
  virtual Asked DescribeAsked(const RemoteSlot& /*slot*/, uint32_t /*low_word*/) const {
    return {.path = NodeText(), .business = "what it is at is not known here"};
  }

 protected:
  ~RemoteLink() = default;
};

// The slot of references to actors of another node. It has a table of its own, so its memory is never that of an actor.
class alignas(64) RemoteSlot final : public TableSlot {
 public:
  // Set by MakeRemoteSlot, before anybody has a reference; never changed.
  RemoteLink* link = nullptr;
};

inline RemoteSlot* ActorRef::remote_slot() const {
  assert(!IsNoOne() && IsRemote());
  return static_cast<RemoteSlot*>(slot_);
}

// A slot that leads to `link`, for ever: it is never given back. Its generation is even and stays what it is: a reference
// to it must not have a word whose lower half is that. ResourceExhausted if the process has no slot left.
absl::StatusOr<RemoteSlot*> MakeRemoteSlot(RemoteLink& link);

class SystemCore;
// What SystemCore::Of says of all references to other nodes. Nobody listens to it.
SystemCore& CoreOfRemotes();

// Sends a user message. Takes it over.
absl::Status SendRemote(ActorRef to, EnvelopePtr message);

// The question of `sender` will not be answered here: if that is a promise of another node, it gets an ErrorReply of what
// `why` says. Nothing otherwise: an actor does not expect one. Any thread.
void FailRemoteAsk(ActorRef sender, absl::FunctionRef<absl::Status()> why);

// What the sender of a message is when several get it: one that is lost is not the end of a question then.
ActorRef SharedSender(ActorRef sender);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_REMOTE_SENDING_H_
