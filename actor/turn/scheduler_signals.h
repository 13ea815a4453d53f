// System messages of the scheduler itself, by which suspended actors go on. The invoker handles them; everything else
// that is a system message goes to the ActorLifecycle.
#ifndef FRAKTOR_ACTOR_TURN_SCHEDULER_SIGNALS_H_
#define FRAKTOR_ACTOR_TURN_SCHEDULER_SIGNALS_H_

#include <cstdint>

#include "fraktor/actor/ready/invoke_result.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

class ActorSlot;

// What an actor was suspended for has come: sent by Signal(), and by the timer of ResumeCondition::After.
struct SignalArrived {
  SignalKey key;
};

// To an actor that has sent to a full mailbox: its messages are in, or the target has ended.
struct RoomFound {
  ActorSlot* target;
};

// The same actor has waited long enough. `wait` tells it from earlier waits for the same target.
struct RoomTimedOut {
  ActorSlot* target;
  uint64_t wait;
};

// What one of the actor's handlers waits for has come. `wait` is the number of the wait.
struct HandlerWoken {
  uint64_t wait;
};

// Some of the actor's questions may have waited long enough. `deadline` tells its timer from an earlier one.
struct AskDeadlineReached {
  Instant deadline;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TURN_SCHEDULER_SIGNALS_H_
