// Log: writes a line to the log of the actor's system, with the path and the type of the actor.
//
//   Log(context, LogLevel::kInfo, "sold " + std::to_string(n) + " of " + item);
//
// The log limits a program line that logs too often: see LogLimits. Build an expensive text only if
// somebody reads it: `if (IsLogOn(context, LogLevel::kDebug)) Log(...)`.
//
// Thread safety: the turns of the actor.
#ifndef FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_
#define FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_

#include <string_view>

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"

namespace fraktor::inline v0 {

bool IsLogOn(ActorContext& context, LogLevel level);

void Log(ActorContext& context, LogLevel level, std::string_view text, LogSite site = LogSite::Here());

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_
