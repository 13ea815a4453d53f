// A message for an actor that has had nothing to do for a while.
//
//   class Session : public Actor<Session, Use> {
//    public:
//     absl::Status PreStart(Context& context) { return SetReceiveTimeout(context, absl::Minutes(2)); }
//     void On(Context&, const Use&) { ++used_; }
//     void On(Context& context, const ReceiveTimeout&) { context.Stop(); }
//
//    private:
//     int used_ = 0;
//   };
//
// ReceiveTimeout (lifecycle_messages.h) says after how long. It comes when nothing has been handled for that time, and
// again after each further such time, until it is switched off. It does not come after all if something was handled
// between its being due and its turn.
//
// Every message that is handled is activity, except those whose type has kLeavesReceiveTimeout,
// such as Identify; but their handlers may set or cancel the timeout. A handler that waits
// (co_await) and lets no other message in is activity until it is done. A restart leaves the
// timeout as it is; the end of the actor cancels it, before PostStop.
//
// Costs: one timer per actor, which is not touched per message: what a message costs is a look at the clock (some
// 22 ns), and the way of messages that are looked at one by one.
//
// Thread safety: in the actor's turns.
#ifndef FRAKTOR_ACTOR_PATTERN_RECEIVE_TIMEOUT_H_
#define FRAKTOR_ACTOR_PATTERN_RECEIVE_TIMEOUT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/turn/actor_context.h"

namespace fraktor::inline v0 {

// From the end of the current handler on; instead of an earlier one. InfiniteDuration switches it off. InvalidArgument
// if it is not positive or beyond kMaxTimerDelay (timer_period.h), ResourceExhausted if the toolbox has no timer left,
// FailedPrecondition if the scheduler has none at all: then the earlier one stays.
absl::Status SetReceiveTimeout(ActorContext& context, absl::Duration timeout);

void CancelReceiveTimeout(ActorContext& context);

// InfiniteDuration if there is none.
absl::Duration ReceiveTimeoutOf(ActorContext& context);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_RECEIVE_TIMEOUT_H_
