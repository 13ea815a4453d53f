// How a node deals with others. Options are values of a program, never a file.
//
// Thread safety: values.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_REMOTE_OPTIONS_H_
#define FRAKTOR_REMOTE_ASSOCIATION_REMOTE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/remote/association/system_delivery.h"
#include "fraktor/remote/watch/phi_accrual_detector.h"
#include "fraktor/remote/wire/protocol_version.h"
#include "fraktor/remote/wire/wire_limits.h"

namespace fraktor::inline v0 {

struct RemoteOptions {
  // Of this start of the system: another one each time. 0: drawn from the toolbox.
  uint64_t system_uid = 0;

  WireLimits limits = {};
  VersionRange versions = {};

  // How often what is due is looked for.
  absl::Duration tick = absl::Milliseconds(100);

  // A peer that has not answered is asked again and again, and given up for a while after the timeout. While messages go
  // to a peer, it is asked as often as inject_handshake says, so that a restart is noticed.
  absl::Duration handshake_timeout = absl::Seconds(20);
  absl::Duration handshake_retry = absl::Seconds(1);
  absl::Duration inject_handshake = absl::Seconds(1);
  // Of all strangers together; further ones are dropped.
  uint32_t max_handshakes_per_second = 100;

  SystemOutboxOptions system = {};

  // So many messages wait for one peer's stream; further ones are dropped. Of the control lane that is a reason for
  // quarantine.
  size_t max_queued_messages = 20'000;
  size_t max_queued_large = 256;
  size_t max_queued_control = 20'000;
  // The same of bytes, for each lane.
  size_t max_queued_bytes = size_t{16} << 20;

  // A stream without traffic is closed.
  absl::Duration idle_stop = absl::Minutes(5);
  // Those of a peer in quarantine.
  absl::Duration quarantine_stop = absl::Seconds(3);
  // A stream that cannot be opened is tried again after a while, which grows.
  absl::Duration min_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(5);
  // A peer whose open streams fail more often than that is put into quarantine.
  int max_restarts = 5;
  absl::Duration restart_window = absl::Seconds(5);
  // A peer that is wanted and has not answered a handshake for so long is forgotten, with what waited for it.
  absl::Duration unanswered_limit = absl::Hours(6);

  // How long the end of the system waits for what is on its way.
  absl::Duration shutdown_flush = absl::Seconds(1);
  // How long the news of an end waits for messages that were sent before.
  absl::Duration death_notice_flush = absl::Seconds(3);

  // Of each peer: references by path, lives that were met, actors here that it watches.
  size_t max_paths = 65'536;
  size_t max_lives = 1024;
  size_t max_watches = 1'000'000;
  // Paths of remote actors that are remembered for logs, for each life of a peer.
  size_t max_path_texts = 1024;

  // Actors, by their paths there, whose messages go by the large lane: "/user/files/*".
  std::vector<std::string> large_destinations = {};

  // Watching actors of other nodes.
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // A peer that has not answered the first heartbeat is taken for silent from then on.
  absl::Duration first_answer_within = absl::Seconds(1);
  PhiAccrualOptions detector = {};

  // Peers may not stop or watch actors here, nor spawn any, nor select others than these paths.
  bool untrusted = false;
  std::vector<std::string> trusted_selections = {};
  // Peers may have actors of registered factories spawned here.
  bool allow_deployment = false;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_REMOTE_OPTIONS_H_
