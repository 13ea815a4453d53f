// Sending to mailboxes that have a limit, and receiving from them: what a MailboxLimits decides is done here.
//
// Only references that carry ActorRef::kLimited lead here, so other mailboxes pay nothing for it.
#ifndef FRAKTOR_ACTOR_SEND_LIMITED_SENDING_H_
#define FRAKTOR_ACTOR_SEND_LIMITED_SENDING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/mailbox/envelope_list.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/scheduler_signals.h"

namespace fraktor::inline v0 {

// ActorRef::kLimited in ActorSlot::ref_flags.
inline constexpr uint8_t kLimitedFlag = static_cast<uint8_t>(ActorRef::kLimited >> 32);

// In the target word of a message that was counted.
inline constexpr uint64_t kCountedMark = uint64_t{1} << 34;

// For senders. The target is in use, and the envelope's target word set. Both take the envelope over. ResourceExhausted
// if the target rejects the message, DeadlineExceeded if the thread has waited in vain; what is dropped, held, or a dead
// letter is OK.
absl::Status SendLimited(ActorWorker& worker, ActorRef to, Envelope* envelope);
// By a thread that is no worker; it may wait for room.
absl::Status SendLimitedForeign(ActorRef to, EnvelopePtr envelope);

// What rings for messages that the limits keep: nobody's message, and no dead letter.
bool IsMailboxBell(const Envelope& envelope);

// For the receiver, in its turn.

// `envelope` has been taken out of the mailbox. What is to be handled for it: itself, or the message that it rings for;
// null if nothing.
Envelope* TakeLimited(ActorWorker& worker, ActorSlot& slot, Envelope* envelope);
// Messages of its own that are to come back into the mailbox: those that it has room for, which are
// counted. The others, from the first without room on, are dead letters; no policy of the user is
// asked. If an actor may always send to itself (OverflowNeeds::kLine), or the oldest would have to
// go (kQueue), all have room.
EnvelopeList Readmitted(ActorWorker& worker, ActorSlot& slot, EnvelopeList messages);
// By the holder of the slot's mailbox: a message leaves it without being handled, whoever is in the
// slot now. Lets in those that wait for the room.
void UncountLimited(TableSlot* slot, Envelope& envelope);
// The actor has ended: what is kept and held are dead letters, and nobody waits any more.
void CloseLimits(ActorWorker& worker, ActorSlot& slot);

// Suspends the actor that the worker runs until `to` has room for its message, or until `push_timeout` has passed.
using SuspendFunction = void (*)(ActorWorker& worker, ActorRef to, absl::Duration push_timeout);

// Called once, before main: actor/await/room_wait.cc installs it.
void InstallSuspension(SuspendFunction suspend);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_LIMITED_SENDING_H_
