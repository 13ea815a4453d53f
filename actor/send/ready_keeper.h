// ReadyKeeper: takes the actors that this thread makes ready, so that the thread itself runs them later and no worker has
// to be woken. dispatch/guest_seat.h is the one that there is.
//
//   ReadyKeeper::SetOfThisThread(&keeper);
//   SendForeign(to, std::move(message));                 // if `to` was idle: keeper.Keep(slot), which holds it then
//   ReadyKeeper::SetOfThisThread(nullptr);
//
// Only threads that are no workers look here, and only when an actor becomes ready.
//
// Thread safety: each thread has its own.
#ifndef FRAKTOR_ACTOR_SEND_READY_KEEPER_H_
#define FRAKTOR_ACTOR_SEND_READY_KEEPER_H_

#include "fraktor/actor/slot/actor_slot.h"

namespace fraktor::inline v0 {

class ReadyKeeper {
 public:
  // An actor, whose mailbox the caller holds, is to be made ready. True: the keeper holds it from now on. False: it goes
  // among the ready ones of its pool.
  virtual bool Keep(ActorSlot& slot) = 0;

  // Null for none.
  static ReadyKeeper* OfThisThread();
  static void SetOfThisThread(ReadyKeeper* keeper);

 protected:
  ~ReadyKeeper() = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_READY_KEEPER_H_
