// OverflowPolicy: decides what happens to a user message that finds a full mailbox. The five that
// OverflowStrategy names are built in; this is how to write another one.
//
//   // A full mailbox refuses large uploads. Small ones wait for room.
//   class RefuseLargeUploads : public OverflowPolicy {
//    public:
//     std::string_view name() const noexcept override { return "RefuseLargeUploads"; }
//     OverflowNeeds needs() const noexcept override { return OverflowNeeds::kLine; }   // for Hold
//     OverflowDecision Decide(const OverflowCase& full) const override {
//       const Upload* upload = full.message.TryAs<Upload>();
//       const bool is_large = upload != nullptr && upload->bytes.size() > 1000;
//       return is_large ? OverflowDecision::Reject("over 1000 bytes") : OverflowDecision::Hold();
//     }
//   };
//
//   MailboxOptions uploads{.capacity = 100, .overflow_policy = std::make_shared<RefuseLargeUploads>()};
//
// mailbox_options.h has MailboxOptions, which is a member of SpawnOptions: `system.Spawn<Store>(
// "store", {.mailbox = uploads})`. The targets are @fraktor//actor/mailbox and
// @fraktor//actor/mailbox/overflow.
//
// No answer lets a message in beyond the capacity. System messages, PoisonPill, Kill, Terminated
// and the messages of the actor's own timers are never refused, so no policy is asked about them.
// They stay behind the messages that were sent before them. Control messages use
// MailboxOptions::reserve_for_control first.
//
// Thread safety: any sender's thread calls Decide, several at the same time, and without a lock.
// One policy may serve any number of mailboxes. A mailbox keeps its policy until its actor ends;
// the last thread that uses the policy destroys it.
//
// A policy must not throw, block, or send messages. If it throws, the message is rejected: its
// sender gets ResourceExhausted with the text of the exception, and the message becomes a dead
// letter.
//
// Cost: a mailbox with room asks nobody. Asking takes the lock of the mailbox once.
#ifndef FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_POLICY_H_
#define FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "fraktor/actor/mailbox/overflow/overflow_answer.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

// The kinds of senders.
enum class Producer : uint8_t {
  kActor,          // An actor, which can be suspended.
  kSelf,           // The actor whose mailbox it is.
  kForeignThread,  // A thread that is no worker, and may block.
};

// The abilities that a policy needs of its mailbox. All of them can reject, drop the newest message
// and make a message a dead letter.
enum class OverflowNeeds : uint8_t {
  kCount,  // Nothing else.
  // Hold. A mailbox in which messages wait for room counts as full, so that no message overtakes an
  // earlier one of its sender. Messages of the actor to itself always find room: it could wait for
  // itself only.
  kLine,
  // DropOldest. Each message takes the lock of the mailbox, also while there is room. Needs
  // MessageOrder::kFifo.
  kQueue,
};

// A message that finds no room, and the mailbox at that moment.
struct OverflowCase {
  // Type, content and sender of the message. Valid during the call.
  const Envelope& message;
  Producer producer = Producer::kActor;
  // The actor in whose turn the message is sent, which is not always message.sender(). No one if a
  // foreign thread sends.
  ActorRef sending_actor = {};
  // Whether it is a control message for which the mailbox has a reserve. The reserve is used up
  // then.
  bool is_control = false;
  // The user messages in the mailbox, and how many fit. `depth` can be below `capacity` if others
  // wait or if the receiver takes messages meanwhile.
  size_t depth = 0;
  size_t capacity = 0;
  // Messages and threads that wait in line for room. 0 unless the policy needs kLine.
  size_t waiting = 0;
};

class OverflowDecision {
 public:
  // The sender gets ResourceExhausted. `why` is a part of the text: "the mailbox of
  // pekko://shop/user/cart is full (10 messages): Order was not accepted: <why>".
  static OverflowDecision Reject(std::string why = {}) {
    OverflowDecision decision(OverflowAnswer::kReject);
    decision.why_ = std::move(why);
    return decision;
  }
  static OverflowDecision DropNewest() { return OverflowDecision(OverflowAnswer::kDropNewest); }
  static OverflowDecision DeadLetter() { return OverflowDecision(OverflowAnswer::kDeadLetter); }
  // Needs kQueue. The oldest message for which MayReplace is true goes. If there is none, the
  // arriving message is dropped.
  static OverflowDecision DropOldest() { return OverflowDecision(OverflowAnswer::kDropOldest); }
  // Needs kLine. A foreign thread waits up to MailboxOptions::push_timeout. An actor is suspended
  // after its current message. If as many messages wait as the mailbox has room for, the message is
  // rejected.
  static OverflowDecision Hold() { return OverflowDecision(OverflowAnswer::kHold); }

  OverflowAnswer answer() const { return answer_; }
  const std::string& why() const { return why_; }

 private:
  explicit OverflowDecision(OverflowAnswer answer) : answer_(answer) {}

  OverflowAnswer answer_;
  std::string why_ = {};
};

class OverflowPolicy {
 public:
  OverflowPolicy() = default;
  OverflowPolicy(const OverflowPolicy&) = delete;
  OverflowPolicy& operator=(const OverflowPolicy&) = delete;
  virtual ~OverflowPolicy() = default;

  // For error texts.
  virtual std::string_view name() const noexcept = 0;
  // Always the same. A decision that needs more than this is an error: the message is rejected with
  // a text that says so.
  virtual OverflowNeeds needs() const noexcept { return OverflowNeeds::kCount; }

  virtual OverflowDecision Decide(const OverflowCase& full) const = 0;

  // After DropOldest: whether `queued` may go, so that `arriving` takes its place. Called for the
  // queued messages from the oldest on, until one may go. The lock of the mailbox is held: must be
  // quick, and must not send messages.
  virtual bool MayReplace(const Envelope& arriving, const Envelope& queued) const {
    (void)arriving;
    (void)queued;
    return true;
  }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MAILBOX_OVERFLOW_OVERFLOW_POLICY_H_
