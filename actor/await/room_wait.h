// Waiting for room in a full mailbox, in the turns of the actor that has sent to it. The actor is
// suspended (Gate::kBackpressure) until its message has room or its push timeout has passed. Threads
// that are no actors wait in MailboxLimits::AwaitRoom instead.
#ifndef FRAKTOR_ACTOR_AWAIT_ROOM_WAIT_H_
#define FRAKTOR_ACTOR_AWAIT_ROOM_WAIT_H_

#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/scheduler_signals.h"

namespace fraktor::inline v0 {

// For a sender that is suspended, in its turn.
void GoOnAfterRoom(ActorWorker& worker, ActorSlot& slot, const RoomFound& found);

void GiveUpRoom(ActorWorker& worker, ActorSlot& slot, const RoomTimedOut& late);

// It ends: what it has sent goes its way without it.
void ForgetFullTargets(ActorWorker& worker, ActorSlot& slot);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_AWAIT_ROOM_WAIT_H_
