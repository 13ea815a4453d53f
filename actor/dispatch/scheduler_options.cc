#include "fraktor/actor/dispatch/scheduler_options.h"

#include "absl/status/status.h"

#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

absl::Status ReadyQueueSchedulerOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(dispatchers.Validate());
  return observability.Validate();
}

}  // namespace fraktor::inline v0
