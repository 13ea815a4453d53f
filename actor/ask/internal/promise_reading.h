// ReadOpenPromise: reads the slot of a reply promise that has no reply yet. open_promise.h has the
// reads that programs need.
//
// Called by: the parts of actor/ask. Thread: any. See open_promise.h.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_READING_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_READING_H_

#include <optional>
#include <utility>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

// Returns read(slot) for a promise that nobody has claimed, and nothing otherwise.
template <class Read>
auto ReadOpenPromise(ActorRef promise, Read read) -> std::optional<decltype(read(std::declval<const PromiseSlot&>()))> {
  if (!promise.IsPromise()) return std::nullopt;
  const PromiseSlot* const slot = PromiseSlotTable::Resolve({promise.promise_slot(), promise.generation()});
  if (slot == nullptr) return std::nullopt;
  auto value = read(*slot);
  if (!slot->IsAt(promise.generation())) return std::nullopt;
  return value;
}

// The actor of a target that the caller has read; no one if it is remote or has ended.
ActorRef LivingTarget(const PromiseSlot::Target& target);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_PROMISE_READING_H_
