#include "fraktor/remote/association/remote_options.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status RemoteOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(limits.Validate());
  FRAKTOR_RETURN_IF_ERROR(Annotate(detector.Validate(), "RemoteOptions.detector"));
  if (versions.min < kOldestProtocol || versions.max > kNewestProtocol || versions.min > versions.max) {
    return absl::InvalidArgumentError(absl::StrCat("RemoteOptions.versions is ", versions.min, " to ", versions.max,
                                                   "; this build speaks ", kOldestProtocol, " to ", kNewestProtocol));
  }
  struct Time {
    const char* name;
    absl::Duration value;
  };
  for (const Time& time :
       {Time{"tick", tick}, Time{"handshake_timeout", handshake_timeout}, Time{"handshake_retry", handshake_retry},
        Time{"inject_handshake", inject_handshake}, Time{"system.resend_interval", system.resend_interval},
        Time{"system.give_up_after", system.give_up_after}, Time{"idle_stop", idle_stop},
        Time{"quarantine_stop", quarantine_stop}, Time{"min_backoff", min_backoff}, Time{"max_backoff", max_backoff},
        Time{"restart_window", restart_window}, Time{"unanswered_limit", unanswered_limit},
        Time{"shutdown_flush", shutdown_flush}, Time{"death_notice_flush", death_notice_flush},
        Time{"heartbeat_interval", heartbeat_interval}, Time{"first_answer_within", first_answer_within},
        Time{"deadline_detector.acceptable_pause", deadline_detector.acceptable_pause},
        Time{"deadline_detector.heartbeat_interval", deadline_detector.heartbeat_interval}}) {
    if (time.value > absl::ZeroDuration()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("RemoteOptions.", time.name, " is ", absl::FormatDuration(time.value), "; it must be positive"));
  }
  struct Count {
    const char* name;
    size_t value;
  };
  for (const Count& count :
       {Count{"max_handshakes_per_second", max_handshakes_per_second}, Count{"system.max_pending", system.max_pending},
        Count{"max_queued_messages", max_queued_messages}, Count{"max_queued_large", max_queued_large},
        Count{"max_queued_control", max_queued_control}, Count{"max_queued_bytes", max_queued_bytes},
        Count{"system.max_pending_bytes", system.max_pending_bytes}, Count{"max_inbound_streams", max_inbound_streams},
        Count{"max_paths", max_paths}, Count{"max_path_table_bytes", max_path_table_bytes},
        Count{"max_links", max_links}, Count{"max_watches", max_watches}, Count{"max_watch_bytes", max_watch_bytes},
        Count{"max_path_texts", max_path_texts}, Count{"max_held_notices", max_held_notices}}) {
    if (count.value > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("RemoteOptions.", count.name, " is 0; use at least 1"));
  }
  if (max_restarts < 0) {
    return absl::InvalidArgumentError(absl::StrCat("RemoteOptions.max_restarts is ", max_restarts));
  }
  for (const std::string& pattern : large_destinations) {
    FRAKTOR_RETURN_IF_ERROR(Annotate(ActorSelection::Parse(pattern).status(), "RemoteOptions.large_destinations"));
  }
  return absl::OkStatus();
}

}  // namespace fraktor::inline v0
