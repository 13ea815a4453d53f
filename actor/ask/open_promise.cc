#include "fraktor/actor/ask/open_promise.h"

#include <cstdint>
#include <optional>

#include "fraktor/actor/ask/internal/promise_reading.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

using actor_internal::LivingTarget;
using actor_internal::PromiseSlot;
using actor_internal::ReadOpenPromise;

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
