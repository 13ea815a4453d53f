// A turn of an actor: the worker that runs, and the slot of the actor that it runs.
//
// A turn is the time in which one worker runs one actor. It begins when the worker has taken the
// actor off the run queue and calls MessageInvoker::Run. It ends when Run returns: then the actor
// is idle, parked or ended, or it goes back to the run queue. During a turn the worker holds the
// actor's mailbox, so no other thread runs the actor.
//
// MessageInvoker::Run makes the Turn and passes it to the functions that it calls. Code that an
// actor calls, and that has no Turn, gets it from ActorWorker::turn. A function that needs only the
// worker, or only the slot, takes only that.
//
// A Turn must not outlive the turn. An object that lives longer must not hold a Turn, and a
// callback, a timer or a coroutine must not capture one. Such code keeps an ActorRef: the actor may
// run on another worker next time, or may have ended.
//
// A Turn is passed by value. It is as large as two pointers, which are passed in two registers.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_TURN_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_TURN_H_

#include <type_traits>

namespace fraktor::inline v0::actor_internal {

class ActorSlot;
class ActorWorker;
struct TurnState;

struct Turn {
  ActorWorker& worker;
  ActorSlot& slot;

  // The state of the turn, which the worker keeps. actor_worker.h defines it.
  TurnState& state() const;
};

static_assert(std::is_trivially_copyable_v<Turn> && sizeof(Turn) == 2 * sizeof(void*));

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_TURN_H_
