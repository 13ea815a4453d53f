#include "fraktor/actor/slot/internal/promise_slot.h"

namespace fraktor::inline v0::actor_internal {

PromiseSlotTable& ProcessPromises() {
  // 65536 chunks of 1023 promises.
  static PromiseSlotTable& table = *new PromiseSlotTable({.max_chunks = 65536});
  return table;
}

}  // namespace fraktor::inline v0::actor_internal
