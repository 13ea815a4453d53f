// Sending to actors of other nodes: references with the flag ActorRef::kRemote. Each leads to a
// RemoteLink, which `remote` implements.
//
// Only such references lead here, so other sends pay nothing.
//
// Called by: ActorWorker and SendForeign. Thread: any.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_REMOTE_SENDING_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_REMOTE_SENDING_H_

#include <cassert>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/table/internal/table_slot.h"

namespace fraktor::inline v0 {

namespace actor_internal {

class RemoteSlot;

// Another node, or one incarnation of it. References to it may outlive the system, so a link lives
// as long as the process. When its system has ended, messages to it are dead letters.
//
// Thread safety: any thread may call anything.
class RemoteLink {
 public:
  // Sends a user message, whose target word is set. A message that cannot be delivered is a dead
  // letter. The error is for TryTell.
  virtual absl::Status Send(ActorRef to, EnvelopePtr message) = 0;
  // Sends a system message: watch, unwatch, stop, or the news that an actor has ended. Returns
  // null, or the envelope if it cannot be sent.
  virtual EnvelopePtr SendSystem(ActorRef to, EnvelopePtr message) = 0;
  // "pekko://shop@10.0.0.7:2552/user/cart", as well as is known.
  virtual std::string PathOf(ActorRef to) const = 0;
  // The path and uid, "pekko://shop@10.0.0.7:2552/user/cart#5320", as well as they are known. ""
  // if the reference means no single actor.
  virtual std::string CanonicalPathOf(ActorRef /*to*/) const { return {}; }
  // "pekko://shop@10.0.0.7:2552".
  virtual std::string NodeText() const = 0;

  // True if the reference is a reply promise of that node.
  virtual bool IsPromise(ActorRef /*to*/) const { return false; }
  // The same promise for a message that goes to several recipients: a failure of one of them does
  // not end the ask.
  virtual ActorRef Shared(ActorRef promise) const { return promise; }

  // For the error text of an ask that has timed out: the path of its target, and what is known of
  // the target's status.
  struct Asked {
    std::string path;
    std::string status;
  };
  // A promise keeps the slot of the target and the lower half of its word.
  virtual Asked DescribeAsked(const RemoteSlot& /*slot*/, uint32_t /*low_word*/) const {
    return {.path = NodeText(), .status = "what the target is doing is not known here"};
  }

 protected:
  ~RemoteLink() = default;
};

// The slot of references to actors of another node. These slots have a table of their own, so their
// memory is never that of an actor.
class alignas(64) RemoteSlot final : public utils_internal::TableSlot {
 public:
  // Set by MakeRemoteSlot, before any reference exists; never changed.
  RemoteLink* link = nullptr;
};

// Makes a slot that leads to `link`. It is never freed. Its generation is even and never changes;
// the lower half of the word of a reference to it must not be equal to it. ResourceExhausted if the
// process has no slot left.
absl::StatusOr<RemoteSlot*> MakeRemoteSlot(RemoteLink& link);

class SystemCore;
// The SystemCore of all references to other nodes. It has no lifecycle.
SystemCore& CoreOfRemotes();

// Sends a user message. Takes it over.
absl::Status SendRemote(ActorRef to, EnvelopePtr message);

// The ask of `sender` will get no reply here. If `sender` is a promise of another node, it gets an
// ErrorReply with the error that `why` returns. Does nothing if it is an actor, which expects no
// ErrorReply.
void FailRemoteAsk(ActorRef sender, absl::FunctionRef<absl::Status()> why);

// The sender for a message that goes to several recipients: the loss of one copy does not end the
// ask.
ActorRef SharedSender(ActorRef sender);

}  // namespace actor_internal

inline actor_internal::RemoteSlot* ActorRef::remote_slot() const {
  assert(!IsNoOne() && IsRemote());
  return static_cast<actor_internal::RemoteSlot*>(slot_);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_REMOTE_SENDING_H_
