// Peer: all that a node knows of another one. Guarded by the lock of the node's CoreHandle.
#ifndef FRAKTOR_REMOTE_ASSOCIATION_PEER_H_
#define FRAKTOR_REMOTE_ASSOCIATION_PEER_H_

#include <array>
#include <atomic>
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
#include "absl/container/inlined_vector.h"
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
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// A message that waits for the peer, and when it came among all.
struct WaitingMessage {
  uint64_t order;
  ActorRef to;
  EnvelopePtr message;
};

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

  // The batch, and what is in its tables. The last ones are looked at first.
  using NodeKey = std::pair<ActorPathParts, uint64_t>;
  BatchWriter batch;
  // The bytes of its messages, for the listener of the stream, who looks without the lock. Pairs with nothing.
  const std::shared_ptr<std::atomic<size_t>> gathered = std::make_shared<std::atomic<size_t>>(0);
  absl::flat_hash_map<ActorRef, uint32_t> refs;
  absl::flat_hash_map<const void*, uint32_t> manifests;  // By codec.
  std::map<NodeKey, uint32_t> nodes;
  struct Place {
    ActorRef ref = {};
    uint32_t place = 0;
  };
  Place last_to;
  Place last_from;
  const void* last_codec = nullptr;
  uint32_t last_manifest = 0;

  // What the message that is being added has brought into the tables, in case that it does not fit.
  struct Added {
    absl::InlinedVector<ActorRef, 4> refs;
    absl::InlinedVector<NodeKey, 1> nodes;
    absl::InlinedVector<uint64_t, 4> told_paths;
    const void* codec = nullptr;

    // Most messages bring nothing, and one by one this is cheaper than to assign.
    void Clear() {
      if (!refs.empty()) refs.clear();
      if (!nodes.empty()) nodes.clear();
      if (!told_paths.empty()) told_paths.clear();
      codec = nullptr;
    }
  };
  Added added;

  // As long as nothing has gone over the current stream, or there is none: the messages that are in the batch and the
  // frames, all of them or none. What has not left this node can be given back so.
  bool has_sent = false;
  std::deque<WaitingMessage> kept;

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
    gathered->store(0, std::memory_order_relaxed);
    refs.clear();
    manifests.clear();
    nodes.clear();
    last_to = last_from = {};
    last_codec = nullptr;
  }
};

// What goes over the control stream of a peer ahead of the rest, one of each at most: however often a peer that cannot be
// reached asks, nothing piles up.
struct PendingControl {
  bool request = false;
  // The answer to the last request, for which life of the peer.
  uint64_t response_to = 0;
  uint64_t response_nonce = 0;
  uint32_t response_version = 0;
  // A frame that refuses it.
  std::string refusal = {};
  bool notice = false;

  bool any() const { return request || response_to != 0 || !refusal.empty() || notice; }
};

// What comes from the peer on one lane. Batches are handled one after the other, whatever streams they come on.
struct InboundLane {
  uint64_t received = 0;  // The number of the last frame that was taken.
  uint64_t handled = 0;   // And of the last one whose messages are in their mailboxes.
  bool is_busy = false;
  struct Waiting {
    uint64_t stream;
    uint64_t number;
    std::string frame;
  };
  std::deque<Waiting> waiting;
};

// An actor of the peer that actors of this node watch. A test replaces ActorRef by a key that
// counts comparisons.
template <class Ref>
struct OutboundWatchOf {
  // A peer names a watcher without the flags of its reference.
  struct PlainRef {
    Ref operator()(Ref ref) const { return ref.Plain(); }
  };
  IndexedSet<Ref, 1, PlainRef> watchers;
  // The life that has been told; 0 for none.
  uint64_t told = 0;
  uint64_t order = 0;
};
using OutboundWatch = OutboundWatchOf<ActorRef>;

// An actor here that is watched from there: by its uid, and by paths; each name is told of the end.
struct InboundWatch {
  bool by_uid = false;
  std::vector<std::string> paths = {};
  uint64_t order = 0;
};

// The end of an actor there, which waits for messages that were sent before.
struct HeldNotice {
  wire::DeathNotice notice;
  Instant until;
};

// What stands between this node and the peer, since it was connected last.
struct Trouble {
  std::string why = {};
  // The last one that was a warning.
  std::string warned = {};
  Instant warned_at = Instant::InfinitePast();
};

struct Peer {
  Peer(const ActorPathParts& its_parts, const SystemOutboxOptions& system)
      : parts(its_parts), authority(*its_parts.authority()), outbox(system) {}

  ActorPathParts parts;
  const PathAuthority authority;
  uint64_t last_use = 0;

  // Whom this node has dealings with: the life that answered last. Kept while the streams are down.
  uint64_t uid = 0;
  bool is_associated = false;
  uint32_t version = 0;
  uint64_t features = 0;
  // Lives that are over: whatever comes from them is late.
  std::vector<uint64_t> dead;
  // The life that the numbers of frames and system messages belong to: they go on if it comes back after a quarantine.
  uint64_t numbered_uid = 0;
  // Changes with each life.
  uint64_t session = 0;
  // The last life of which it was told that it is gone.
  uint64_t terminated_uid = 0;

  // Whether that life has answered a question of ours: a request of its own may have been late.
  bool is_verified = false;
  Instant unverified_since;

  // Handshakes under way. The nonces of the last ones.
  bool is_shaking = false;
  Instant shaking_since;
  Instant next_request;
  std::array<uint64_t, 16> nonces{};
  size_t next_nonce = 0;
  Instant unanswered_since = Instant::InfiniteFuture();
  PendingControl pending;
  Instant pending_since;
  Trouble trouble;
  // Those that ask who is there, and are answered if nobody is.
  std::vector<WaitingMessage> identifies;
  // Messages that waited, while they are being encoded; others wait behind them.
  std::deque<WaitingMessage> backlog;
  bool is_draining = false;

  std::array<OutboundLane, kLaneCount> lanes;
  std::deque<Instant> failures;
  SystemOutbox outbox;
  // Messages that have waited for a stream in vain.
  uint64_t lost = 0;

  // What has come from the current life.
  SystemInbox inbox;
  std::array<InboundLane, kLaneCount> inbound;
  std::deque<HeldNotice> held;

  // In quarantine: since when, and when a notice was sent last.
  uint64_t quarantined_uid = 0;
  bool is_harmless = false;
  Instant quarantined_at;
  Instant last_notice = Instant::InfinitePast();

  // References.
  NodeLink* by_path = nullptr;
  absl::flat_hash_map<uint64_t, NodeLink*> lives;
  absl::flat_hash_set<uint64_t> told_paths;  // Uids of ours whose paths the current life has been told.

  // Watching. By reference; what is done for all is done by their order.
  absl::flat_hash_map<ActorRef, OutboundWatch> watches;
  uint64_t next_watch = 0;
  // By watchee, here, and watcher, there.
  absl::flat_hash_map<std::pair<ActorRef, ActorRef>, InboundWatch> watched_here;
  size_t watch_bytes = 0;
  std::unique_ptr<FailureDetector> detector;
  Instant next_heartbeat = Instant::InfinitePast();
  Instant first_heartbeat = Instant::InfiniteFuture();
  uint64_t heartbeats = 0;

  // A flush under way: its number, and lanes that have not been answered.
  uint64_t flush = 0;
  uint32_t unflushed = 0;

  OutboundLane& lane(Lane which) { return lanes[IndexOf(which)]; }
  InboundLane& in(Lane which) { return inbound[IndexOf(which)]; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_PEER_H_
