// Peer: all that a node knows of another one. Guarded by the lock of the node's CoreHandle.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_PEER_H_
#define FRAKTOR_REMOTE_ASSOCIATION_PEER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/remote/association/node_link.h"
#include "fraktor/remote/association/system_delivery.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/remote/watch/failure_detector.h"
#include "fraktor/remote/wire/batch_writer.h"
#include "fraktor/remote/wire/control.pb.h"
#include "fraktor/remote/wire/frame_header.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A stream to the peer, and what waits for it.
struct OutboundLane {
  std::shared_ptr<OutboundStream> stream;
  uint64_t serial = 0;  // Of the stream: what is told of an earlier one does not count.
  bool is_open = false;
  bool is_writing = false;
  bool is_closing = false;  // By this node.

  // Frames that are ready, and the batch that gathers.
  struct Frame {
    std::string bytes;
    size_t messages;
  };
  std::deque<Frame> frames;
  size_t frame_bytes = 0;
  size_t frame_messages = 0;
  BatchWriter batch;
  absl::flat_hash_map<ActorRef, uint32_t> refs;
  absl::flat_hash_map<const void*, uint32_t> manifests;  // By codec.
  std::map<std::pair<ActorPathParts, uint64_t>, uint32_t> nodes;

  uint64_t next_number = 1;
  Instant last_use;
  Instant last_handshake = Instant::InfinitePast();
  Instant retry_at = Instant::InfinitePast();
  absl::Duration backoff = absl::ZeroDuration();

  size_t queued() const { return frame_messages + batch.messages(); }
  size_t queued_bytes() const { return frame_bytes + batch.bytes(); }
  bool has_work() const { return !frames.empty() || !batch.empty(); }
  void DropAll() {
    frames.clear();
    frame_bytes = frame_messages = 0;
    batch.Clear();
    ForgetTables();
  }
  void ForgetTables() {
    refs.clear();
    manifests.clear();
    nodes.clear();
  }
};

// One life of the peer that references lead to.
struct PeerLife {
  NodeLink* link = nullptr;
  // What its actors are called, as far as it was said: for people.
  absl::flat_hash_map<uint64_t, std::string> paths;
};

// A reference by path.
struct PathEntry {
  std::string path;
  bool is_selection = false;
  uint32_t turn = 0;  // How often the place was used.
};

// An actor there that is watched from here.
struct OutboundWatch {
  std::vector<ActorRef> watchers;
  // The life that has been told; 0 for none.
  uint64_t told = 0;
  uint64_t order = 0;
};

// An actor here that is watched from there.
struct InboundWatch {
  std::string path;  // By which it was named; empty if by its uid.
  uint64_t order = 0;
};

// The end of an actor there, which waits for messages that were sent before.
struct HeldNotice {
  wire::DeathNotice notice;
  Instant until;
};

struct Peer {
  Peer(const ActorPathParts& its_parts, const SystemOutboxOptions& system)
      : parts(its_parts), authority(*its_parts.authority()), outbox(system) {}

  ActorPathParts parts;
  const PathAuthority authority;

  // Whom this node has dealings with: the life that answered last. Kept while the streams are down.
  uint64_t uid = 0;
  bool is_associated = false;
  uint32_t version = 0;
  bool was_told_goodbye = false;
  // Lives that are over: whatever comes from them is late.
  std::vector<uint64_t> dead;

  // Whether that life has answered a question of ours: a request of its own may have been late.
  bool is_verified = false;

  // Handshakes under way. The nonces of the last ones.
  bool is_shaking = false;
  Instant shaking_since;
  Instant next_request;
  std::array<uint64_t, 4> nonces{};
  size_t next_nonce = 0;
  Instant unanswered_since = Instant::InfiniteFuture();
  // Selections that asked who is there, and are answered if nobody is.
  std::vector<std::pair<ActorRef, EnvelopePtr>> identifies;

  std::array<OutboundLane, kLaneCount> lanes;
  std::deque<Instant> failures;
  SystemOutbox outbox;

  // What has come from the current life.
  SystemInbox inbox;
  std::array<uint64_t, kLaneCount> received{};
  std::vector<HeldNotice> held;

  // In quarantine: since when, and when a notice was sent last.
  uint64_t quarantined_uid = 0;
  Instant quarantined_at;
  Instant last_notice = Instant::InfinitePast();

  // References.
  NodeLink* by_path = nullptr;
  std::vector<PathEntry> paths;
  absl::flat_hash_map<std::string, uint32_t> path_index;
  std::vector<uint32_t> selections;  // Places that are used again, the oldest first.
  size_t next_selection = 0;
  std::map<uint64_t, PeerLife> lives;
  absl::flat_hash_set<uint64_t> told_paths;  // Uids of ours whose paths the current life has been told.

  // Watching. By reference; what is done for all is done by their order.
  absl::flat_hash_map<ActorRef, OutboundWatch> watches;
  uint64_t next_watch = 0;
  // By watchee, here, and watcher, there.
  absl::flat_hash_map<std::pair<ActorRef, ActorRef>, InboundWatch> watched_here;
  std::unique_ptr<FailureDetector> detector;
  Instant next_heartbeat = Instant::InfinitePast();
  Instant first_heartbeat = Instant::InfiniteFuture();
  uint64_t heartbeats = 0;

  // A flush under way: lanes that have not been answered.
  uint32_t unflushed = 0;

  OutboundLane& lane(Lane which) { return lanes[IndexOf(which)]; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_PEER_H_
