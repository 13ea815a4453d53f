#include "fraktor/actor/ask/open_promise.h"

#include <cstdint>
#include <optional>

#include "fraktor/actor/slot/internal/actor_slot.h"

namespace fraktor::inline v0 {

using actor_internal::PromiseSlot;

ActorRef LivingTarget(const PromiseSlot::Target& target) {
  // Without the flags of its references.
  const ActorRef ref(target.slot, target.low_word);
  return !target.is_remote && ref.IsCurrent() ? ref : ActorRef();
}

ActorRef AskerOf(ActorRef promise) {
  const ActorRef asker =
      ReadOpenPromise(promise, [](const PromiseSlot& slot) { return slot.asker(); }).value_or(ActorRef());
  return asker.IsCurrent() ? asker : ActorRef();
}

ActorRef TargetOf(ActorRef promise) {
  return LivingTarget(
      ReadOpenPromise(promise, [](const PromiseSlot& slot) { return slot.target(); }).value_or(PromiseSlot::Target()));
}

Instant DeadlineOf(ActorRef promise) {
  const std::optional<int64_t> deadline_ns =
      ReadOpenPromise(promise, [](const PromiseSlot& slot) { return slot.deadline_ns(); });
  return deadline_ns.has_value() ? Instant::FromNanoseconds(*deadline_ns) : Instant::InfinitePast();
}

}  // namespace fraktor::inline v0
