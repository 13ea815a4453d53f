// Reads a reply promise that has no reply yet: its asker, its target and its deadline.
//
//   const bool is_late = DeadlineOf(context.sender()) < toolbox.Now();
//
// Called by: routers, grains, watching, paths, and the parts of actor/ask. Thread: any. The promise
// may be claimed, and its slot used again, while a thread reads it: the generation decides
// afterwards, and the reader gets the result for a promise that is over.
#ifndef FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_
#define FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_

#include <optional>
#include <utility>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// Returns read(slot) for a promise that nobody has claimed, and nothing otherwise.
template <class Read>
auto ReadOpenPromise(ActorRef promise, Read read)
    -> std::optional<decltype(read(std::declval<const actor_internal::PromiseSlot&>()))> {
  if (!promise.IsPromise()) return std::nullopt;
  const actor_internal::PromiseSlot* const slot =
      actor_internal::PromiseSlotTable::Resolve({promise.promise_slot(), promise.generation()});
  if (slot == nullptr) return std::nullopt;
  auto value = read(*slot);
  if (!slot->IsAt(promise.generation())) return std::nullopt;
  return value;
}

// The actor that waits for the reply; no one if the promise is over, or the actor has ended.
ActorRef AskerOf(ActorRef promise);

// The actor of this process that was asked; no one if the promise is over, or the actor has ended.
ActorRef TargetOf(ActorRef promise);

// The same for the target of a promise that the caller has read.
ActorRef LivingTarget(const actor_internal::PromiseSlot::Target& target);

// The time at which the ask times out; the infinite past if the promise is over.
Instant DeadlineOf(ActorRef promise);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_OPEN_PROMISE_H_
