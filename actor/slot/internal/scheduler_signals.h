// The system messages of the scheduler itself. The invoker handles them, in the turn of the
// recipient; all other system messages go to the ActorLifecycle.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_SCHEDULER_SIGNALS_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_SCHEDULER_SIGNALS_H_

#include <cstdint>

#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/invoke_result.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0::actor_internal {

class ActorSlot;

// Resumes an actor that waits for this key. Sent by Signal() and by timers of
// ResumeCondition::After.
struct SignalArrived {
  SignalKey key;
};

// To an actor that has sent to a full mailbox: the target has its messages, or has ended.
struct RoomFound {
  ActorSlot* target;
};

// The push timeout of the same actor is over. `wait` tells this wait from earlier ones.
struct RoomTimedOut {
  ActorSlot* target;
  uint64_t wait;
};

// A waiting handler of the actor can go on. `wait` is the number of the wait.
struct HandlerWoken {
  uint64_t wait;
};

// Asks of the actor may have timed out. `deadline` tells this timer from an earlier one. An actor
// sends it to itself, with the infinite past, if more asks have timed out than one turn handles.
struct AskDeadlineReached {
  Instant deadline;
  // The first status request of this round of asks (ask_diagnosis.h); 0 if the round begins.
  uint64_t first_request = 0;
};

// Asks an actor what it is doing, for the error text of an ask that has timed out. The actor sends
// `asker` a StatusReport in its next turn.
struct StatusRequest {
  ActorRef asker;
  uint64_t request;
};

// The status report of an actor. The actor sends it in a turn of its own.
struct StatusReport {
  // The report counts at most this many messages, because the count takes time of the target.
  static constexpr uint64_t kMaxCounted = 1000;

  uint64_t request;            // The request that it answers.
  uint64_t waiting;            // Messages in its mailbox at its first report of the turn, up to kMaxCounted.
  const MessageType* handler;  // The message type of the first waiting handler; null for a task.
  bool has_handler;            // Whether any handler waits.
  bool has_failed;
  uint8_t gate;  // Bits of Gate.
  // The suspension by a middleware, if `gate` has Gate::kRateLimited or Gate::kUserDefined.
  SuspendReason suspended_for;
  ResumeCondition resume_on;
};

// The target of a timed-out ask has not sent its StatusReport in time.
struct StatusReportOverdue {
  uint64_t request;
};

// From an actor to itself: more asks have waited for status reports than one turn handles.
struct MoreLateAsks {};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_SCHEDULER_SIGNALS_H_
