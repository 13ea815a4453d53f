#include "fraktor/actor/ready/invoke_result.h"

namespace fraktor::inline v0 {

std::string_view ToString(ActorState state) {
  switch (state) {
    case ActorState::kRunning:
      return "Running";
    case ActorState::kSuspended:
      return "Suspended";
    case ActorState::kStopping:
      return "Stopping";
    case ActorState::kStopped:
      return "Stopped";
  }
  return "unknown";
}

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

std::string_view ToString(InvokeResult::Kind kind) {
  switch (kind) {
    case InvokeResult::Kind::kCompleted:
      return "Completed";
    case InvokeResult::Kind::kYielded:
      return "Yielded";
    case InvokeResult::Kind::kSuspended:
      return "Suspended";
    case InvokeResult::Kind::kFailed:
      return "Failed";
    case InvokeResult::Kind::kStopped:
      return "Stopped";
  }
  return "unknown";
}

}  // namespace fraktor::inline v0
