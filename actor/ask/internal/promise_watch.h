// Watching a reply promise: ActorLifecycle::OnPromiseEnded is called when the promise is over.
//
// Called by: the actor's tree (actor/tree), which handles a watch of a promise for its asker, and
// the parts of actor/ask that end promises. Thread: the asker's turn.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_WATCH_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_WATCH_H_

#include "fraktor/actor/await/internal/slot_extension.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0::actor_internal {

// False if the promise is over already, or is not one of `asker`.
bool WatchPromise(ActorSlot& asker, ActorRef promise, ActorRef watcher);

namespace promise_watch_internal {
void TellWatchers(const ActorWorker& worker, SlotExtension& extension, ActorRef promise);
}  // namespace promise_watch_internal

// Tells the watchers of a promise that it is over.
[[gnu::always_inline]] inline void TellPromiseWatchers(const ActorWorker& worker, SlotExtension& extension,
                                                       ActorRef promise) {
  if (extension.ask_extras != nullptr) [[unlikely]]
    promise_watch_internal::TellWatchers(worker, extension, promise);
}

// Tells the watchers of all promises, in the order of the watches. The asker ends.
void TellAllPromiseWatchers(const ActorWorker& worker, const SlotExtension::AskExtras& extras);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_WATCH_H_
