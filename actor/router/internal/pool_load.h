// The loads of all routees of a pool, added up for its resizer.
//
// RouterActor calls it in its own turn, before each resize. The routees run meanwhile, so the
// result may be out of date at once.
#ifndef FRAKTOR_ACTOR_ROUTER_INTERNAL_POOL_LOAD_H_
#define FRAKTOR_ACTOR_ROUTER_INTERNAL_POOL_LOAD_H_

#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/inline_routee_load.h"
#include "fraktor/actor/router/routee_load.h"

namespace fraktor::inline v0::actor_internal {

struct PoolLoad {
  int64_t busy = 0;     // Routees that handle a message.
  int64_t pressed = 0;  // Routees that are busy and have `pressure_threshold` messages waiting.
  int64_t waiting = 0;  // Messages in mailboxes, as far as they are counted.
  int64_t unknown = 0;  // Routees whose load nobody here knows: remote actors.
};

// A routee that has ended counts as idle: the pool removes it as soon as it receives Terminated.
inline PoolLoad LoadOfPool(absl::Span<const ActorRef> routees, uint64_t pressure_threshold) {
  PoolLoad sum;
  for (const ActorRef routee : routees) {
    const uint64_t load = InlineRouteeLoad(routee);
    if (load == 0 || load == kLoadOfEnded) continue;
    if (load == kUnknownLoad) {
      ++sum.unknown;
      continue;
    }
    ++sum.busy;
    sum.waiting += static_cast<int64_t>(load - 1);
    if (load - 1 >= pressure_threshold) ++sum.pressed;
  }
  return sum;
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ROUTER_INTERNAL_POOL_LOAD_H_
