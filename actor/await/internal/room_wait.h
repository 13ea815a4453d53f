// Back-pressure for actors: an actor that sends to a full mailbox waits for room, in its own turns.
// The actor is suspended (Gate::kBackpressure) until its message has room or its push timeout has
// passed. Threads that are no workers wait in MailboxLimits::AwaitRoom instead.
//
// Called by: the invoker, for the system messages that end a wait. Thread: the turn of the sender.
#ifndef FRAKTOR_ACTOR_AWAIT_INTERNAL_ROOM_WAIT_H_
#define FRAKTOR_ACTOR_AWAIT_INTERNAL_ROOM_WAIT_H_

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/scheduler_signals.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0::actor_internal {

// The target has taken the messages that waited for room, or has ended. The sender resumes, unless
// it waits for another mailbox too.
void GoOnAfterRoom(Turn turn, const RoomFound& found);

// The push timeout has passed: the messages that wait for room become dead letters.
void GiveUpRoom(Turn turn, const RoomTimedOut& late);

// The sender ends and waits no more. Its messages still wait for room in the line of the target.
void ForgetFullTargets(Turn turn);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_AWAIT_INTERNAL_ROOM_WAIT_H_
