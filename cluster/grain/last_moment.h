// LastMoment: until when a question waits for what is missing. A little before its timeout, so that who asks hears what
// that is, and not only that it took too long.
//
//   if (now >= LastMoment(sender, asked_at)) context.Tell(sender, ErrorReply{WhyNot()});
//
// Thread safety: any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_LAST_MOMENT_H_
#define FRAKTOR_CLUSTER_GRAIN_LAST_MOMENT_H_

#include <algorithm>

#include "absl/time/time.h"

#include "fraktor/actor/ask/open_promise.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// The infinite future if nobody waits, or nobody knows for how long: the sender is no question of this node.
inline Instant LastMoment(ActorRef sender, Instant now) {
  if (!sender.IsPromise()) return Instant::InfiniteFuture();
  const Instant deadline = DeadlineOf(sender);
  if (deadline - now > absl::Hours(24 * 365)) return Instant::InfiniteFuture();
  return deadline + -std::min((deadline - now) / 10, absl::Milliseconds(100));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_LAST_MOMENT_H_
