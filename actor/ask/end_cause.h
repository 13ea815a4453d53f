// Why actors have ended that could not go on: what those hear who ask them too late.
//
// An actor that could not be started, or stops itself with a cause, leaves questions in its mailbox, and others may still be
// on their way. Each of them gets the cause, with its code, and not only that the actor has ended. So it does not matter
// whether a question comes before the failure or shortly after it.
//
// The last kRememberedEndCauses causes of the process are kept.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_ASK_END_CAUSE_H_
#define FRAKTOR_ACTOR_ASK_END_CAUSE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0 {

inline constexpr size_t kRememberedEndCauses = 1024;

// For the lifecycle, before the actor ends.
void RememberEndCause(ActorRef actor, const absl::Status& cause);

// Whether the cause of its end is known.
bool HasEndCause(ActorRef actor);

// The error for a question that was asked of an actor that has ended: the cause if it is known, otherwise kAskTimeout.
// `path` names the actor.
absl::Status NoAnswerOfEnded(std::string_view question, ActorRef actor, const std::string& path);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_ASK_END_CAUSE_H_
