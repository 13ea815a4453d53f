#include "fraktor/actor/run_queue/invoke_result.h"

namespace fraktor::inline v0 {

std::string_view ToString(SuspendReason reason) {
  switch (reason) {
    case SuspendReason::kBackpressure:
      return "Backpressure";
    case SuspendReason::kAwaitExternal:
      return "AwaitExternal";
    case SuspendReason::kRateLimit:
      return "RateLimit";
    case SuspendReason::kUserDefined:
      return "UserDefined";
  }
  return "unknown";
}

}  // namespace fraktor::inline v0
