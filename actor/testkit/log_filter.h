// LogFilter: selects the lines of a log that a test expects.
//
//   const LogFilter restarts{.level = LogLevel::kWarning, .contains = "restarts after", .path = "/user/greeter"};
//   kit.ExpectLog(restarts, 0, [] {});
#ifndef FRAKTOR_ACTOR_TESTKIT_LOG_FILTER_H_
#define FRAKTOR_ACTOR_TESTKIT_LOG_FILTER_H_

#include <string>

#include "fraktor/actor/event/log.h"

namespace fraktor::inline v0 {

// An empty member matches all lines.
struct LogFilter {
  LogLevel level = LogLevel::kDebug;  // The lowest level.
  std::string contains = {};          // A part of the text.
  std::string path = {};              // The end of the actor's path: "/user/cart".
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TESTKIT_LOG_FILTER_H_
