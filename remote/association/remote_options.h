// How a node deals with others. Options are values of a program, never a file.
//
//   RemoteOptions options{.limits = {.max_large_frame_bytes = 8 << 20},     // the transport has to take them, too
//                         .large_destinations = {"/user/files/*"},          // whose messages may be so large
//                         .heartbeat_interval = absl::Milliseconds(500)};   // nodes with watched actors are asked so often
//   StartGrpcNode({.name = "shop", ..., .remote = options});                // or Remoting::Start(system, transport, options)
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
#include "fraktor/remote/watch/deadline_detector.h"
#include "fraktor/remote/watch/phi_accrual_detector.h"
#include "fraktor/remote/wire/protocol_version.h"
#include "fraktor/remote/wire/wire_limits.h"

namespace fraktor::inline v0 {

struct RemoteOptions {
  // Of this start of the system: another one each time. 0: drawn, by the toolbox and the machine; by the toolbox alone if
  // that simulates, so that runs repeat.
  uint64_t system_uid = 0;

  WireLimits limits = {};
  VersionRange versions = {};
  // Bits to which the program gives a meaning, such as "knows the new kind of order". A handshake tells them to the peer;
  // what both have is in PeerInfo.features.
  uint64_t features = 0;

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

  // So many messages wait for one peer's stream; further ones are dropped. Of the control lane, where it is frames, that
  // is a reason for quarantine.
  size_t max_queued_messages = 20'000;
  size_t max_queued_large = 256;
  size_t max_queued_control = 20'000;
  // The same of bytes, for each of the three lanes.
  size_t max_queued_bytes = size_t{16} << 20;

  // So many streams of others are open at once. When there is no more room, one that has not said whose it is makes place.
  size_t max_inbound_streams = 16'384;

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
  // A peer that was met, is wanted, and has not answered a handshake for so long is put into quarantine. What waits for
  // one that was never met goes on waiting.
  absl::Duration unanswered_limit = absl::Hours(6);

  // How long the end of the system waits for what is on its way.
  absl::Duration shutdown_flush = absl::Seconds(1);
  // How long the news of an end waits for messages that were sent before.
  absl::Duration death_notice_flush = absl::Seconds(3);

  // References by path to one node, and what the paths of all nodes take. Half of it is for what peers bring.
  size_t max_paths = 65'536;
  size_t max_path_table_bytes = size_t{16} << 20;
  // Nodes, and lives of nodes, that references lead to, of all peers. When there is no more room, a life that nobody has
  // used for long makes place: references to it reach nobody any more.
  size_t max_links = 16'384;
  // Actors here that one peer watches, and what is kept for them.
  size_t max_watches = 1'000'000;
  size_t max_watch_bytes = size_t{64} << 20;
  // Paths of remote actors that are remembered for logs, for each life of a peer. Long ones are not.
  size_t max_path_texts = 1024;
  // Ends of actors that wait for messages that were sent before, of each peer; further ones do not wait.
  size_t max_held_notices = 1024;

  // The thread that brings a frame of at most so many bytes runs the actors that it makes ready itself, while workers
  // sleep (dispatch/guest_seat.h); larger ones wake workers, so that the next frame is read meanwhile. 0: all do. The
  // default has room for 64 short questions to grains: with half of it, they wake a worker each time.
  size_t max_guest_frame_bytes = 8192;

  // Actors, by their paths there, whose messages go by the large lane: "/user/files/*".
  std::vector<std::string> large_destinations = {};

  // Watching actors of other nodes.
  absl::Duration heartbeat_interval = absl::Seconds(1);
  // A peer that has not answered the first heartbeat is taken for silent from then on.
  absl::Duration first_answer_within = absl::Seconds(1);
  // Who decides that heartbeats have stopped.
  enum class Detector : uint8_t { kPhiAccrual, kDeadline };
  Detector detector_kind = Detector::kPhiAccrual;
  PhiAccrualOptions detector = {};
  DeadlineDetectorOptions deadline_detector = {};

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
