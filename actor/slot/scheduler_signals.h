// System messages of the scheduler itself, by which suspended actors go on. The invoker handles them; everything else
// that is a system message goes to the ActorLifecycle.
#ifndef FRAKTOR_ACTOR_SLOT_SCHEDULER_SIGNALS_H_
#define FRAKTOR_ACTOR_SLOT_SCHEDULER_SIGNALS_H_

#include <cstdint>

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
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

// What is the receiver at? It answers by a BusinessReport, as soon as it is in a turn of its own.
struct DescribeBusiness {
  ActorRef asker;
  uint64_t inquiry;
};

// Of an actor, in a turn of its own.
struct BusinessReport {
  // So many messages are counted one by one.
  static constexpr uint64_t kMaxCounted = 100'000;

  uint64_t inquiry;
  uint64_t waiting;            // Messages in its mailbox, up to kMaxCounted.
  const MessageType* handler;  // What the first of its handlers that wait is handling; null if that is a task.
  bool has_handler;            // Whether any handler waits.
  bool has_failed;
  uint8_t gate;  // Bits of Gate.
  // The suspension by a middleware, if the gate has Gate::kRateLimited or Gate::kUserDefined.
  SuspendReason suspended_for;
  ResumeCondition resume_on;
};

// Nobody has said in time what the target of a question is at.
struct InquiryOver {
  uint64_t inquiry;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_SCHEDULER_SIGNALS_H_
