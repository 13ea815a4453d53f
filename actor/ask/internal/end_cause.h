// The causes for which actors have ended: the errors for asks that come too late.
//
// An actor that fails to start, or stops itself by StopBecause, leaves asks in its mailbox, and
// others may still be on their way. Each asker gets the cause, with its status code, and not only
// the news that the actor has ended. So it does not matter whether an ask arrives before the
// failure or shortly after it.
//
// The process remembers the last kRememberedEndCauses causes.
//
// Called by: the lifecycle of actors (actor/tree), StopBecause, and CheckAsk. Thread: any.
#ifndef FRAKTOR_ACTOR_ASK_INTERNAL_END_CAUSE_H_
#define FRAKTOR_ACTOR_ASK_INTERNAL_END_CAUSE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

inline constexpr size_t kRememberedEndCauses = 1024;

// Remembers the cause for which an actor ends. Call it before the actor ends.
void RememberEndCause(ActorRef actor, const absl::Status& cause);

// True if the process remembers a cause for which the actor has ended.
bool HasEndCause(ActorRef actor);

// The error of an ask whose target has ended: the cause if it is known, otherwise kAskTimeout.
// `asked` is the name of the message type, `path` that of the actor.
absl::Status NoReplyOfEnded(std::string_view asked, ActorRef actor, const std::string& path);

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_ASK_INTERNAL_END_CAUSE_H_
