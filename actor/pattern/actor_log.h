// Log: writes a line to the log of the system that the actor lives in, with the actor's path and type.
//
//   Log(context, LogLevel::kInfo, "sold " + std::to_string(n) + " of " + item);
//
// One line of the program that logs too often is limited: see LogLimits. A text that costs something to make is made
// only if somebody reads it: `if (IsLogOn(context, LogLevel::kDebug)) Log(...)`.
//
// Thread safety: in the actor's turn.
#ifndef FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_
#define FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_

#include <string_view>

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/turn/actor_context.h"

namespace fraktor::inline v0 {

bool IsLogOn(ActorContext& context, LogLevel level);

void Log(ActorContext& context, LogLevel level, std::string_view text, LogSite site = LogSite::Here());

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_ACTOR_LOG_H_
