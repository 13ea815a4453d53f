// SetReceiveTimeout: sends an actor a ReceiveTimeout when it has handled nothing for a while.
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
// ReceiveTimeout (lifecycle_messages.h) carries the time. It comes when the actor has handled
// nothing for that time, and again after each further such time, until it is switched off. If the
// actor handles a message after the timeout is due and before its turn, the ReceiveTimeout does not
// come.
//
// Every handled message is activity, except those whose type has kLeavesReceiveTimeout, such as
// Identify; but their handlers may set or cancel the timeout. A handler that waits (co_await),
// while the actor handles no other message, is activity until it ends. A restart keeps the timeout.
// The end of the actor cancels it, before PostStop.
//
// Cost: one timer per actor, which messages do not touch. Each message costs a look at the clock
// (about 22 ns), and is invoked one by one instead of in a batch.
//
// Thread safety: the turns of the actor.
#ifndef FRAKTOR_ACTOR_TIMER_RECEIVE_TIMEOUT_H_
#define FRAKTOR_ACTOR_TIMER_RECEIVE_TIMEOUT_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/context/actor_context.h"

namespace fraktor::inline v0 {

// Takes effect at the end of the current handler, and replaces an earlier timeout. InfiniteDuration
// switches it off. On an error the earlier one stays: InvalidArgument if the timeout is not
// positive or above kMaxTimerDelay (timer_period.h), ResourceExhausted if the toolbox has no timer
// left, FailedPrecondition if the worker has no toolbox.
absl::Status SetReceiveTimeout(ActorContext& context, absl::Duration timeout);

void CancelReceiveTimeout(ActorContext& context);

// InfiniteDuration if there is none.
absl::Duration ReceiveTimeoutOf(ActorContext& context);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TIMER_RECEIVE_TIMEOUT_H_
