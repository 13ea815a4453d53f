#include "fraktor/actor/supervision/failure.h"

namespace fraktor::inline v0 {

std::string_view NameOf(SupervisionDirective directive) {
  switch (directive) {
    case SupervisionDirective::kResume:
      return "resume";
    case SupervisionDirective::kRestart:
      return "restart";
    case SupervisionDirective::kStop:
      return "stop";
    case SupervisionDirective::kEscalate:
      return "escalate";
  }
  return "unknown";
}

bool Failure::IsTransient() const {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsAborted(error) ||
         absl::IsResourceExhausted(error) || absl::IsCancelled(error);
}

}  // namespace fraktor::inline v0
