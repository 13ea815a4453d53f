// ReadyKeeper: takes over the actors that a thread would schedule, so that the thread runs them
// itself later and wakes no worker. GuestSeat (actor/dispatch/internal/guest_seat.h) is the
// implementation.
//
//   ReadyKeeper::SetOfThisThread(&keeper);
//   absl::Status sent = SendForeign(to, std::move(message));  // calls keeper.Keep if `to` was idle
//   ReadyKeeper::SetOfThisThread(nullptr);
//
// Called by: DispatcherTable, on threads that are no workers, when it schedules an actor.
//
// Thread: each thread has its own keeper.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_READY_KEEPER_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_READY_KEEPER_H_

#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

class ReadyKeeper {
 public:
  // Offers an actor whose mailbox the caller holds. True: the keeper holds the mailbox from now on.
  // False: the caller schedules the actor with its dispatcher.
  virtual bool Keep(ActorSlot& slot) = 0;

  // The keeper of this thread; null if it has none.
  static ReadyKeeper* OfThisThread();
  static void SetOfThisThread(ReadyKeeper* keeper);

 protected:
  ~ReadyKeeper() = default;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_READY_KEEPER_H_
