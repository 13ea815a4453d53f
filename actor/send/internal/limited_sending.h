// Sending to bounded mailboxes and receiving from them. MailboxLimits decides, and these functions
// act on its decision.
//
// Only references with the flag ActorRef::kLimited lead here, so sends to other mailboxes pay
// nothing.
//
// Called by: ActorWorker and SendForeign, which send, and the invoker, which receives.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_LIMITED_SENDING_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_LIMITED_SENDING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/mailbox/internal/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0::actor_internal {

// ActorRef::kLimited in ActorSlot::ref_flags.
inline constexpr uint8_t kLimitedFlag = static_cast<uint8_t>(ActorRef::kLimited >> 32);

// A flag in the target word of a message that counts against the limit.
inline constexpr uint64_t kCountedMark = uint64_t{1} << 34;

// For senders. The target lives, and the target word of the envelope is set. Both functions take
// the envelope over. ResourceExhausted if the overflow policy rejects the message, DeadlineExceeded
// if the push timeout of a blocked thread has passed. OK also if the message was dropped, waits for
// room, or became a dead letter.
absl::Status SendLimited(ActorWorker& worker, ActorRef to, Envelope* envelope);
// The same for a thread that is no worker. It may block until there is room.
absl::Status SendLimitedForeign(ActorRef to, EnvelopePtr envelope);

// True for the internal message that schedules an actor whose messages MailboxLimits keeps. It is
// never delivered, and never a dead letter.
bool IsMailboxBell(const Envelope& envelope);

// For the target, in its turn.

// `envelope` was taken out of the mailbox. Returns the message to handle: the envelope itself, or,
// for a mailbox bell, the next message that the limits keep; null if there is none.
Envelope* TakeLimited(Turn turn, Envelope* envelope);
// Appends a message of the runtime, such as Terminated or a timer's message, to the running actor's
// mailbox, behind the messages that wait for room. No limit refuses it. Takes the envelope over,
// whose target word is set.
void AppendBeyondLimits(Turn turn, Envelope* envelope);
// Messages that the actor returns to its own mailbox, as from a stash. Returns those that the
// mailbox has room for, which are counted. The others, from the first without room on, become dead
// letters; no overflow policy is asked. All have room if an actor may always send to itself
// (OverflowNeeds::kLine), or if the oldest message would be dropped (kQueue).
EnvelopeList Readmitted(Turn turn, EnvelopeList messages);
// Called by the holder of the mailbox when a message leaves it without being handled. The message
// may have been for an earlier actor of the slot. Lets in messages that wait for room.
void UncountLimited(utils_internal::TableSlot* slot, Envelope& envelope);
// The actor has ended: its messages in the limits become dead letters, and senders that wait for
// room resume.
void CloseLimits(Turn turn);

// Suspends the running actor until `to` has room for its message, or until `push_timeout` has
// passed.
using SuspendFunction = void (*)(ActorWorker& worker, ActorRef to, absl::Duration push_timeout);

// Called once, before main: actor/await/internal/room_wait.cc installs the function.
void InstallSuspension(SuspendFunction suspend);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_LIMITED_SENDING_H_
