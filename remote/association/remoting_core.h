// RemotingCore: what a node does with others: associations, their streams, and what goes over them.
//
// All of it is guarded by the lock of its CoreHandle, except what is constant. It opens and closes streams with the lock,
// and calls nothing else that could come back; frames are written, and what is for users is done, later, without it
// (Section).
#ifndef FRAKTOR_REMOTE_ASSOCIATION_REMOTING_CORE_H_
#define FRAKTOR_REMOTE_ASSOCIATION_REMOTING_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/path/actor_path_parts.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/registry/internal/remote_authority_registry.h"
#include "fraktor/actor/selection/actor_selection.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/remote/association/core_handle.h"
#include "fraktor/remote/association/node_link.h"
#include "fraktor/remote/association/outgoing_message.h"
#include "fraktor/remote/association/peer.h"
#include "fraktor/remote/association/peer_info.h"
#include "fraktor/remote/association/remote_door.h"
#include "fraktor/remote/association/remote_options.h"
#include "fraktor/remote/transport/transport.h"
#include "fraktor/remote/wire/batch_reader.h"
#include "fraktor/remote/wire/control.pb.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// A message to a peer that is not connected: it waits in the registry of authorities. One that the registry gives up is
// not lost: it goes to those that are to become dead letters when the lock is free.
class DeferredMessage {
 public:
  using Lost = std::vector<std::pair<ActorRef, EnvelopePtr>>;

  DeferredMessage(uint64_t order, ActorRef to, EnvelopePtr envelope, Lost& lost)
      : order_(order), to_(to), envelope_(std::move(envelope)), lost_(&lost) {}
  DeferredMessage(DeferredMessage&&) noexcept = default;
  DeferredMessage& operator=(DeferredMessage&& other) noexcept {
    GiveUp();
    order_ = other.order_;
    to_ = other.to_;
    envelope_ = std::move(other.envelope_);
    lost_ = other.lost_;
    return *this;
  }
  ~DeferredMessage() { GiveUp(); }

  // When it was sent, among all.
  uint64_t order() const { return order_; }
  ActorRef to() const { return to_; }
  const Envelope& envelope() const { return *envelope_; }
  EnvelopePtr Take() { return std::move(envelope_); }

 private:
  void GiveUp() {
    if (envelope_ != nullptr) lost_->emplace_back(to_, std::move(envelope_));
  }

  uint64_t order_;
  ActorRef to_;
  EnvelopePtr envelope_;
  Lost* lost_;
};

// See Remoting::OpenDoor.
struct Doorway {
  struct Door {
    ActorRef actor = {};
    const MessageType* type = nullptr;
    RemoteDoor* door = nullptr;
  };
  // Null if there is none. Set with release by OpenDoor, read with acquire by who reads a batch.
  std::atomic<const Door*> current{nullptr};
  // With the lock of the node: also those of before, since somebody may be reading.
  std::vector<std::unique_ptr<const Door>> all;
};

// What is constant, and used without the lock as well.
struct LocalNode {
  ActorSystem& system;
  const CodecRegistry& codecs;
  const RemoteOptions options;
  const ActorPathParts parts;  // As others know it.
  const uint64_t uid;
  // Where threads of the transport run actors; null if they do not.
  const std::shared_ptr<actor_internal::GuestSeat> guest_seat;
  const std::shared_ptr<Doorway> doorway = std::make_shared<Doorway>();

  // Of an actor, or a promise, of this system; 0 if it is none.
  uint64_t WireUidOf(ActorRef ref) const;
  // Whoever has that uid here; no one if nobody has, or had.
  ActorRef FindUid(uint64_t wanted) const;
  // Whoever has the path "/user/cart" here.
  ActorRef FindPath(std::string_view text) const;
  Instant Now() const { return system.toolbox().Now(); }
  // Not with the lock.
  void Log(LogLevel level, std::string_view text, LogSite site = LogSite::Here()) const;
  // `why`, if there is one, is what somebody hears who has asked this of an actor elsewhere.
  void Lose(ActorRef to, EnvelopePtr message, DeadLetterReason reason,
            const absl::Status& why = absl::OkStatus()) const;
};

// A stream that a peer has opened, and whose it is: the first handshake says so, for as long as it lasts.
struct InboundStream {
  StreamOrigin origin = {};
  Instant since = {};
  Peer* peer = nullptr;
  uint64_t uid = 0;
};

// A batch that is to be read, and its sender. Nobody changes what this points to until the batch
// has been read.
struct BatchAdmission {
  enum class Verdict : uint8_t { kRead, kDrop, kCut };
  Verdict verdict = Verdict::kDrop;
  Peer* peer = nullptr;
  // Where references of the sender lead.
  NodeLink* link = nullptr;
  uint64_t uid = 0;
  uint64_t session = 0;
  Lane lane = Lane::kOrdinary;
  uint64_t stream = 0;
  uint64_t number = 0;
};

// What a handshake has brought.
struct Agreement {
  uint32_t version = 0;
  uint64_t features = 0;
};

class RemotingCore {
 public:
  using Registry = actor_internal::RemoteAuthorityRegistry<DeferredMessage>;

  static absl::StatusOr<std::unique_ptr<RemotingCore>> Make(CoreHandle& handle, ActorSystem& system,
                                                            std::unique_ptr<Transport> transport,
                                                            const RemoteOptions& options);
  ~RemotingCore();
  RemotingCore(const RemotingCore&) = delete;
  RemotingCore& operator=(const RemotingCore&) = delete;

  const std::shared_ptr<const LocalNode>& node() const { return node_; }
  Transport& transport() { return *transport_; }

  // From references. False if the message is to be encoded again, with base 0.
  bool Send(Section& section, NodeLink& link, ActorRef to, EnvelopePtr& message, OutgoingMessage& outgoing,
            bool is_backlog = false);
  EnvelopePtr SendSystem(Section& section, NodeLink& link, ActorRef to, EnvelopePtr message);
  // The next of those that have waited for a peer; false if there is none, and others need not wait any more.
  bool TakeBacklog(const PathAuthority& authority, ActorRef& to, EnvelopePtr& message);
  // "/user/cart"; empty if it is not known.
  std::string PathTextOf(const NodeLink& link, ActorRef ref) const;
  // What is known of a node that does not answer, for people.
  std::string StateOf(const NodeLink& link) const;

  // As RemoteProvider. Without the lock.
  size_t MaxMessageBytes(std::string_view path) const;

  // References by path. Errors: kUnsupportedAuthority, ResourceExhausted.
  absl::StatusOr<ActorRef> RefAt(const ActorPathParts& parts, std::string_view path, bool is_selection,
                                 bool is_of_peer = false);
  // To an actor of a life of a node, met or not. No one if there are too many of them.
  ActorRef RefOfActor(const ActorPathParts& parts, uint64_t life, uint64_t uid, std::string_view path,
                      bool is_promise = false);

  // From the transport.
  void OnOpened(Section& section, const PathAuthority& authority, Lane lane, uint64_t serial);
  void OnWritten(Section& section, const PathAuthority& authority, Lane lane, uint64_t serial);
  void OnClosed(Section& section, const PathAuthority& authority, Lane lane, uint64_t serial, const absl::Status& why);
  // From streams of others. False: the stream is cut.
  bool OnStreamOpened(Section& section, uint64_t stream, const StreamOrigin& origin);
  void OnStreamClosed(uint64_t stream);
  bool OnControl(Section& section, uint64_t stream, const FrameHeader& header, wire::ControlMessage message);
  // Whether a batch is to be read now. One that comes while another one of its lane is being read waits: the frame is kept.
  BatchAdmission Admit(Section& section, uint64_t stream, const FrameHeader& header, std::string_view frame);
  // A batch has been read. True if another one has waited: it is `next` and `frame` now.
  bool OnBatchRead(Section& section, const BatchAdmission& read, BatchAdmission& next, std::string& frame);
  void CutStream(uint64_t stream);

  void Tick(Section& section);

  // From programs.
  absl::Status Quarantine(Section& section, const PathAuthority& authority, uint64_t uid, std::string_view reason,
                          bool is_harmless);
  absl::Status EndQuarantine(Section& section, const PathAuthority& authority);
  std::vector<PeerInfo> Peers() const;
  // See Remoting.
  void GiveBack(Section& section, const PathAuthority& authority, absl::Span<const MessageType* const> types);

  // Sends what is on its way, says goodbye, and calls `done`, once, later.
  void Flush(Section& section, absl::AnyInvocable<void() &&> done);

  // Ends all streams; afterwards nobody calls any more. Without the lock.
  void Close();

 private:
  RemotingCore(CoreHandle& handle, std::shared_ptr<const LocalNode> node, std::unique_ptr<Transport> transport);

  // Peers.
  Peer* FindPeer(const PathAuthority& authority);
  absl::StatusOr<Peer*> PeerOf(const ActorPathParts& parts);
  // Null if there is none, and none can be.
  Peer* PeerOfLink(NodeLink& link);
  absl::StatusOr<NodeLink*> LinkTo(Peer& peer, uint64_t life);
  bool IsWanted(const Peer& peer) const;
  bool IsIdle(const Peer& peer) const;
  bool MakeRoomForPeer();
  NodeLink* RecycleLink(const ActorPathParts& parts, uint64_t life);
  void RememberText(NodeLink& link, uint64_t uid, std::string_view path);
  // References to it find out anew where they lead.
  void Detach(Peer& peer);
  bool IsDead(const Peer& peer, uint64_t uid) const;
  bool IsQuarantined(const Peer& peer) const { return peer.quarantined_uid != 0; }

  // What is for users.
  void LoseLater(Section& section, ActorRef to, EnvelopePtr message, DeadLetterReason reason, absl::Status why = {});
  void LogLater(Section& section, LogLevel level, std::string text, LogSite site = LogSite::Here()) const;
  void TerminatedLater(Section& section, Peer& peer, uint64_t uid, std::string reason) const;
  void ListenToRegistry();
  // What the registry has said since the last call.
  void DrainRegistry(Section& section);

  // Sending.
  bool Append(Section& section, Peer& peer, ActorRef to, EnvelopePtr& message, OutgoingMessage& outgoing);
  absl::Status AddToBatch(Peer& peer, OutboundLane& lane, ActorRef to, ActorRef sender,
                          const OutgoingMessage& outgoing);
  void TakeBack(Peer& peer, OutboundLane& lane, const BatchWriter::Mark& mark);
  Lane LaneOfPath(std::string_view path) const;
  Lane LaneOf(NodeLink& link, ActorRef to);
  uint32_t PlaceOf(Peer& peer, OutboundLane& lane, ActorRef ref);
  uint32_t AddPlace(Peer& peer, OutboundLane& lane, ActorRef ref);
  void SealBatch(Peer& peer, Lane which);
  void SendControl(Section& section, Peer& peer, const wire::ControlMessage& message, Lane which = Lane::kControl);
  // The next of what goes ahead of the rest; empty if there is nothing.
  std::string TakePending(Peer& peer);
  void Pump(Section& section, Peer& peer, Lane which);
  void OpenLane(Section& section, Peer& peer, Lane which);
  void CloseLane(Peer& peer, Lane which);
  void DropQueues(Section& section, Peer& peer, std::string_view why);
  // Nobody says any more that it is there: until it answers again, messages wait.
  void LoseTouch(Section& section, Peer& peer);

  // Handshakes.
  void WantPeer(Section& section, Peer& peer);
  std::string RequestFrame(Peer& peer, Lane which);
  void FillNode(wire::Node& node, const ActorPathParts& parts, uint64_t uid) const;
  absl::StatusOr<ActorPathParts> PartsOf(const wire::Node& node) const;
  // False: the stream is cut.
  bool OnRequest(Section& section, InboundStream& stream, const FrameHeader& header,
                 const wire::HandshakeRequest& request);
  bool OnResponse(Section& section, InboundStream& stream, const FrameHeader& header,
                  const wire::HandshakeResponse& response);
  void OnRefusal(Section& section, const InboundStream& stream, const wire::HandshakeRefusal& refusal);
  bool Bind(Section& section, InboundStream& stream, Peer& peer, uint64_t uid);
  void Refuse(Section& section, Peer& peer, uint64_t nonce, std::string_view text);
  void WantPending(Section& section, Peer& peer);
  void Complete(Section& section, Peer& peer, uint64_t uid, const Agreement& agreed, bool is_verified);
  // `is_over`: nothing of it counts any more.
  void EndLife(Section& section, Peer& peer, std::string_view reason, bool is_over);
  void GiveUpHandshake(Section& section, Peer& peer);
  // Why it is not connected: kept for who asks, and logged, as a warning if it is new.
  void OnTrouble(Section& section, Peer& peer, const std::string& why, std::string_view before = {});
  // Somebody is there, and does not answer.
  void OnSilence(Section& section, Peer& peer);

  // Quarantine.
  void Quarantine(Section& section, Peer& peer, std::string reason, bool tells_peer, bool is_harmless = false);
  void SendNotice(Section& section, Peer& peer);

  // System messages and watching.
  bool AddSystem(Section& section, Peer& peer, wire::SystemMessage message);
  void SendSystemDue(Section& section, Peer& peer);
  void OnSystemMessages(Section& section, Peer& peer, const wire::SystemMessages& messages);
  void OnSystemMessage(Section& section, Peer& peer, const wire::SystemMessage& message);
  void OnWatch(Section& section, Peer& peer, const wire::Watch& watch);
  void OnDeathNotice(Section& section, Peer& peer, const wire::DeathNotice& notice);
  void DeliverNotice(Section& section, Peer& peer, const wire::DeathNotice& notice);
  void DeliverHeld(Section& section, Peer& peer, bool all);
  void ForgetDetector(Peer& peer);
  void EraseWatch(Peer& peer, ActorRef watchee);
  void SendDeathNotice(Section& section, Peer& peer, ActorRef watchee, ActorRef watcher, bool existed);
  void SendWatch(Section& section, Peer& peer, ActorRef watchee, ActorRef watcher);
  void TellWatches(Section& section, Peer& peer);
  // Besides those of the life: watches by path, all of them, or those that the life was told of.
  enum class ByPath : uint8_t { kNone, kToldOf, kAll };
  void EndWatches(Section& section, Peer& peer, uint64_t life, ByPath by_path);
  void ForgetWatchers(Section& section, Peer& peer);
  void FillOurRef(wire::Ref& ref, ActorRef ours) const;
  bool FillTheirRef(const Peer& peer, wire::Ref& ref, ActorRef theirs) const;
  ActorRef OurRef(const wire::Ref& ref) const;
  ActorRef TheirRef(Peer& peer, const wire::Ref& ref);

  // Ticking.
  void TickPeer(Section& section, Peer& peer, Instant now);
  void TickWatch(Section& section, Peer& peer, Instant now);
  void TickIdle(Section& section, Peer& peer, Instant now);
  void CheckFlush(Section& section, Instant now);

  CoreHandle& handle_;
  const std::shared_ptr<const LocalNode> node_;
  const std::unique_ptr<Transport> transport_;
  std::vector<ActorSelection> large_;

  // The registry publishes while it is called: what it says is kept, and told later.
  EventStream registry_events_;
  DeadLetters registry_letters_{registry_events_};
  std::vector<EventSubscription> listening_;
  std::vector<std::function<void(const LocalNode&)>> said_;
  // Why a message was refused, by its payload.
  struct Refusal {
    DeadLetterReason reason = DeadLetterReason::kUnsupported;
    bool is_invalid_association = false;
    std::string why = {};
    Instant deadline = {};

    // What somebody hears who has asked; OK if there is nothing to say that the reason does not.
    absl::Status ToStatus(const PathAuthority& authority, Instant now) const;
  };
  absl::flat_hash_map<const void*, Refusal> refusals_;
  DeferredMessage::Lost lost_;
  std::unique_ptr<Registry> authorities_;

  std::map<PathAuthority, std::unique_ptr<Peer>> peers_;
  std::map<std::pair<ActorPathParts, uint64_t>, NodeLink*> links_;
  std::vector<NodeLink*> all_links_;
  size_t next_recycled_ = 0;
  // What they keep together: paths, twice; texts for people; lanes.
  size_t path_bytes_ = 0;
  size_t text_bytes_ = 0;
  size_t lanes_ = 0;
  std::map<uint64_t, InboundStream> streams_;
  uint64_t next_serial_ = 1;
  uint64_t next_order_ = 1;
  uint64_t uses_ = 0;
  Random random_;

  // Handshakes of others in this second.
  Instant handshake_second_;
  uint32_t handshakes_ = 0;

  bool is_flushing_ = false;
  bool is_ending_ = false;
  Instant flush_until_;
  std::vector<absl::AnyInvocable<void() &&>> flushed_;
};

// Sends what has waited for a peer. Without the lock.
void DrainBacklog(CoreHandle& handle, const PathAuthority& authority);

// Makes what the transport calls.
std::shared_ptr<FrameReceiver> MakeReceiver(CoreHandle& handle, std::shared_ptr<const LocalNode> node);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_REMOTING_CORE_H_
