#include "fraktor/persistence/actor/persistent_actor_options.h"

#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckPositive(const char* option, bool is_positive) {
  if (is_positive) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("PersistentActorOptions::", option, " must be above 0"));
}

}  // namespace

absl::Status PersistentActorOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("stash_capacity", stash_capacity > 0));
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("max_pending_events", max_pending_events > 0));
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("write_timeout", write_timeout > absl::ZeroDuration()));
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("recovery_event_timeout", recovery_event_timeout > absl::ZeroDuration()));
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("replay_page.max_events", replay_page.max_events > 0));
  FRAKTOR_RETURN_IF_ERROR(CheckPositive("replay_page.max_bytes", replay_page.max_bytes > 0));
  if (max_write_resends < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("PersistentActorOptions::max_write_resends is ", max_write_resends, "; 0 is the least"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
