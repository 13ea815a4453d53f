// What comes from other nodes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/dispatch/internal/guest_seat.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/send/internal/foreign_burst.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/internal/system_core.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::FailRemoteAsk;
using actor_internal::ForeignBurst;
using actor_internal::GuestSeat;
using actor_internal::GuestStay;
using actor_internal::NonBlockingScope;

namespace {

// Frames that wait until the one before, which came on another stream, has been read. A peer writes one after the other, so
// more of them come only if streams fail again and again.
constexpr size_t kMaxWaitingFrames = 4;

// Of the wire, it names an actor of this node: it leads nowhere else, and to one at most.
bool IsPlainPath(std::string_view path) {
  if (path.empty() || path.front() != '/' || path.find_first_of("*?") != std::string_view::npos) return false;
  for (size_t at = 0; (at = path.find("/..", at)) != std::string_view::npos; at += 3) {
    if (at + 3 == path.size() || path[at + 3] == '/') return false;
  }
  return true;
}

// Whom a message is for.
struct Recipient {
  ActorRef ref = {};
  // Set if it is found by path each time: a selection, or a path that nobody has.
  std::string path = {};
  bool is_selection = false;
};

// A batch that has come to a door.
class DoorStay {
 public:
  DoorStay() = default;
  ~DoorStay() { End(); }
  DoorStay(const DoorStay&) = delete;
  DoorStay& operator=(const DoorStay&) = delete;

  uint32_t Begin(RemoteDoor& door) {
    if (door_ == nullptr) {
      batch_ = door.BeginBatch();
      door_ = &door;
    }
    return batch_;
  }
  void End() {
    if (RemoteDoor* const door = std::exchange(door_, nullptr)) door->EndBatch(batch_);
  }

 private:
  RemoteDoor* door_ = nullptr;
  uint32_t batch_ = 0;
};

class BatchDelivery final : public ActorRefCodec {
 public:
  BatchDelivery(CoreHandle& handle, const LocalNode& node, const BatchAdmission& admission)
      : handle_(handle), node_(node), from_(admission.peer->parts), life_(admission.uid), link_(admission.link) {
    if (const Doorway::Door* const door = node.doorway->current.load(std::memory_order_acquire)) door_ = *door;
  }

  // All that could be read is in the mailboxes then: who has waited for it goes on.
  absl::Status Run(std::string_view body) {
    absl::Status read = ReadAll(body);
    burst_.Flush();
    stay_.End();
    return read;
  }

  absl::Status Write(ActorRef, std::string&) override { return absl::UnimplementedError("this side reads"); }
  absl::StatusOr<ActorRef> Read(std::string_view bytes) override {
    ByteReader reader(bytes);
    const uint64_t place = reader.Varint();
    if (!reader.ok() || !reader.rest().empty() || place == 0 || place > refs_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("a reference to place ", place, " of ", refs_.size()));
    }
    const Recipient& found = refs_[place - 1];
    return found.is_selection ? ActorRef() : found.ref;
  }

 private:
  struct Manifest {
    BatchManifestView view = {};
    const MessageCodec* codec = nullptr;
  };

  absl::Status ReadAll(std::string_view body) {
    BatchReader reader(body, node_.options.limits);
    for (;;) {
      FRAKTOR_ASSIGN_OR_RETURN(const BatchReader::Step step, reader.Next());
      switch (step) {
        case BatchReader::Step::kNode:
          AddNode(reader.node());
          break;
        case BatchReader::Step::kRef:
          refs_.push_back(Resolve(reader.ref()));
          break;
        case BatchReader::Step::kManifest:
          AddManifest(reader.manifest());
          break;
        case BatchReader::Step::kMessage:
          Deliver(reader.message());
          break;
        case BatchReader::Step::kEnd:
          return absl::OkStatus();
      }
    }
  }

  void AddNode(const BatchNodeView& view) {
    absl::StatusOr<PathAuthority> authority = PathAuthority::Create(view.protocol, view.host, view.port);
    absl::StatusOr<ActorPathParts> parts =
        authority.ok() ? ActorPathParts::Remote(view.system, *std::move(authority)) : authority.status();
    nodes_.emplace_back(std::move(parts), view.uid);
  }

  void AddManifest(const BatchManifestView& view) {
    const MessageCodec* codec = node_.codecs.FindManifest(view.name);
    if (codec == nullptr) codec = RuntimeCodecs().FindManifest(view.name);
    manifests_.push_back({view, codec});
  }

  Recipient Resolve(const BatchRefView& view) {
    if (view.home == BatchHome::kReceiver) return ResolveHere(view);
    if (view.home == BatchHome::kSender) return {.ref = RefOfSender(view)};
    const auto& [parts, life] = nodes_[view.home - BatchHome::kFirstNode];
    if (!parts.ok()) return {};
    if (*parts == node_.parts) return life == 0 || life == node_.uid ? ResolveHere(view) : Recipient();
    return {.ref = RefThere(*parts, life, view)};
  }

  // Most have been told before, and need no lock.
  ActorRef RefOfSender(const BatchRefView& view) {
    if (link_ != nullptr && view.uid != 0 && view.path.empty() && !view.is_selection) {
      const ActorRef ref = view.is_promise ? link_->PromiseOfUid(view.uid) : link_->RefOfUid(view.uid);
      if (!ref.IsNoOne()) return ref;
    }
    return RefThere(from_, life_, view);
  }

  ActorRef RefThere(const ActorPathParts& parts, uint64_t life, const BatchRefView& view) {
    if (view.is_selection || (view.uid == 0 && !IsPlainPath(view.path))) return {};
    Section section(handle_);
    if (section.core() == nullptr) return {};
    return section.core()->RefOfActor(parts, life, view.uid, view.path, view.is_promise);
  }

  // A uid means one actor, whoever has its path by now.
  Recipient ResolveHere(const BatchRefView& view) {
    if (view.uid != 0) return {.ref = node_.FindUid(view.uid)};
    Recipient recipient{.path = std::string(view.path), .is_selection = view.is_selection};
    if (!view.is_selection && IsPlainPath(view.path)) recipient.ref = node_.FindPath(view.path);
    return recipient;
  }

  void Deliver(const BatchMessageView& message) {
    const Recipient& to = refs_[message.to - 1];
    const ActorRef sender = message.from == 0 ? ActorRef() : refs_[message.from - 1].ref;
    const Manifest& manifest = manifests_[message.manifest - 1];
    if (door_.door != nullptr && to.ref == door_.actor && manifest.codec != nullptr &&
        manifest.codec->type() == door_.type) {
      const CodecContext context{.refs = this, .max_bytes = message.payload.size()};
      std::optional<RemoteDoor::Delivery> delivery =
          door_.door->Enter(stay_.Begin(*door_.door), {.from = from_,
                                                       .sender = sender,
                                                       .version = manifest.view.version,
                                                       .payload = message.payload,
                                                       .context = context});
      if (delivery.has_value()) {
        burst_.Send(delivery->to, std::move(delivery->message));
        return;
      }
    }
    absl::StatusOr<EnvelopePtr> decoded =
        manifest.codec == nullptr ? absl::StatusOr<EnvelopePtr>(CodecRegistry::UnknownManifest(manifest.view.name))
                                  : manifest.codec->Decode(manifest.view.version, message.payload, sender,
                                                           {.refs = this, .max_bytes = message.payload.size()});
    if (!decoded.ok()) {
      // The link lives on.
      burst_.Flush();
      node_.Log(LogLevel::kWarning, absl::StrCat("a message from ", from_.ToString(), " for ", Describe(to),
                                                 " cannot be read: ", decoded.status().message()));
      LoseUnread(to, sender, manifest.view.name);
      FailUnread(to, sender, manifest.view.name, decoded.status());
      return;
    }
    EnvelopePtr envelope = *std::move(decoded);
    if (node_.options.untrusted && !MayReceive(to, *envelope)) {
      FailRemoteAsk(sender, [&] {
        return absl::PermissionDeniedError(absl::StrCat(
            ToAbsl(envelope->type()->name()), " gets no reply: peers are not trusted at ", node_.parts.ToString()));
      });
      return;
    }
    if (!to.ref.IsNoOne() && !envelope->type()->is_intercepted()) [[likely]] {
      burst_.Send(to.ref, std::move(envelope));
      return;
    }
    burst_.Flush();  // Nothing overtakes.
    if (!to.path.empty() && to.ref.IsNoOne()) {
      // A selection is one of this node. What is not marked as one is a path that nobody has: no wildcard, no other node.
      const bool may_look = to.is_selection ? to.path.front() == '/' : IsPlainPath(to.path);
      if (may_look) {
        Select(node_.system, to.path).Send(std::move(envelope));
      } else {
        LoseAt(to.path, *envelope);
      }
    } else if (to.ref.IsNoOne()) {
      node_.Lose(ActorRef(), std::move(envelope), DeadLetterReason::kStopped);
    } else {
      SendIntercepted(to.ref, std::move(envelope));
    }
  }

  // Of peers that are not trusted.
  bool MayReceive(const Recipient& to, const Envelope& message) const {
    const std::vector<std::string>& trusted = node_.options.trusted_selections;
    const bool is_harmful = IsHarmful(message.type());
    const bool is_other = to.is_selection && std::find(trusted.begin(), trusted.end(), to.path) == trusted.end();
    if (!is_harmful && !is_other) return true;
    node_.Log(LogLevel::kWarning, absl::StrCat(ToAbsl(message.type()->name()), " from ", from_.ToString(), " for ",
                                               Describe(to), " was dropped: peers are not trusted here"));
    return false;
  }

  std::string Describe(const Recipient& to) const { return to.path.empty() ? node_.system.PathOf(to.ref) : to.path; }

  void LoseAt(const std::string& path, const Envelope& message) const {
    const std::string from = message.sender().IsNoOne() ? std::string() : node_.system.PathOf(message.sender());
    node_.system.dead_letters().Publish(
        DeadLetter{
            {.reason = DeadLetterReason::kInvalidPath,
             .sender = from,
             .recipient = path,
             .message = {.type_name = message.type()->name(), .type = message.type(), .message = message.payload()}}},
        node_.Now());
    FailRemoteAsk(message.sender(), [&] {
      return absl::InvalidArgumentError(absl::StrCat(ToAbsl(message.type()->name()),
                                                     " gets no reply: it is for a path that is none of an actor of ",
                                                     node_.parts.ToString()));
    });
  }

  // Who asked need not wait: elsewhere, or here, if it is an answer.
  void FailUnread(const Recipient& to, ActorRef sender, std::string_view manifest, const absl::Status& why) const {
    FailRemoteAsk(sender, [&] {
      return absl::InvalidArgumentError(absl::StrCat(ToAbsl(manifest), " gets no reply: ", node_.parts.ToString(),
                                                     " cannot read it: ", why.message()));
    });
    if (!to.ref.IsPromise()) return;
    fraktor::Tell(
        to.ref,
        ErrorReply{absl::InvalidArgumentError(absl::StrCat("the answer ", ToAbsl(manifest), " from ", from_.ToString(),
                                                           " cannot be read here: ", why.message()))});
  }

  void LoseUnread(const Recipient& to, ActorRef sender, std::string_view manifest) const {
    const std::string from = sender.IsNoOne() ? std::string() : node_.system.PathOf(sender);
    const std::string recipient = Describe(to);
    node_.system.dead_letters().Publish(DeadLetter{{.reason = DeadLetterReason::kNotReadable,
                                                    .sender = from,
                                                    .recipient = recipient,
                                                    .message = {.type_name = manifest}}},
                                        node_.Now());
  }

  CoreHandle& handle_;
  const LocalNode& node_;
  const ActorPathParts& from_;
  const uint64_t life_;
  const NodeLink* const link_;
  // For no one if there is none.
  Doorway::Door door_;
  // Ends after the burst.
  DoorStay stay_;
  std::vector<std::pair<absl::StatusOr<ActorPathParts>, uint64_t>> nodes_;
  std::vector<Recipient> refs_;
  std::vector<Manifest> manifests_;
  ForeignBurst burst_;
};

// Runs the actors that a frame has made ready, on the thread that has brought it.
class GuestSequel final : public FrameSequel {
 public:
  explicit GuestSequel(const std::shared_ptr<GuestSeat>& seat) : stay_(seat) {}
  bool is_guest() const { return stay_.is_guest(); }

 private:
  GuestStay stay_;
};

class Receiver final : public FrameReceiver {
 public:
  Receiver(CoreHandle& handle, std::shared_ptr<const LocalNode> node) : handle_(handle), node_(std::move(node)) {}

  bool OnStreamOpened(uint64_t stream, const StreamOrigin& origin) override {
    Section section(handle_);
    return section.core() != nullptr && section.core()->OnStreamOpened(section, stream, origin);
  }

  void OnStreamClosed(uint64_t stream) override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnStreamClosed(stream);
  }

  // Not of the control lane: heartbeats wait for no handler.
  std::unique_ptr<FrameSequel> BeginFrame(std::string_view bytes) override {
    if (node_->guest_seat == nullptr || bytes.size() > node_->options.max_guest_frame_bytes) return nullptr;
    const absl::StatusOr<FrameView> frame = ReadFrame(bytes, node_->options.limits);
    if (!frame.ok() || frame->header.kind != FrameKind::kBatch) return nullptr;
    auto sequel = std::make_unique<GuestSequel>(node_->guest_seat);
    return sequel->is_guest() ? std::move(sequel) : nullptr;
  }

  bool OnFrame(uint64_t stream, std::string_view bytes) override {
    // A full mailbox must not hold the stream up.
    const NonBlockingScope non_blocking;
    const absl::StatusOr<FrameView> frame = ReadFrame(bytes, node_->options.limits);
    if (!frame.ok()) return Refuse(frame.status());
    if (frame->header.kind == FrameKind::kControl) {
      absl::StatusOr<wire::ControlMessage> message = DecodeControl(frame->body, node_->options.limits);
      if (!message.ok()) return Refuse(message.status());
      Section section(handle_);
      if (section.core() == nullptr) return true;
      return section.core()->OnControl(section, stream, frame->header, *std::move(message));
    }
    BatchAdmission admission;
    {
      Section section(handle_);
      if (section.core() != nullptr) admission = section.core()->Admit(section, stream, frame->header, bytes);
    }
    if (admission.verdict != BatchAdmission::Verdict::kRead) return admission.verdict == BatchAdmission::Verdict::kDrop;
    return ReadBatches(admission, frame->body);
  }

 private:
  // This one, and those of its lane that come meanwhile on other streams.
  bool ReadBatches(BatchAdmission admission, std::string_view body) {
    const uint64_t stream = admission.stream;
    bool goes_on = true;
    std::string kept;
    for (;;) {
      BatchDelivery delivery(handle_, *node_, admission);
      const absl::Status delivered = delivery.Run(body);
      if (!delivered.ok()) Refuse(delivered);
      Section section(handle_);
      if (section.core() == nullptr) return true;
      if (!delivered.ok()) {
        if (admission.stream == stream) {
          goes_on = false;
        } else {
          section.core()->CutStream(admission.stream);
        }
      }
      BatchAdmission next;
      if (!section.core()->OnBatchRead(section, admission, next, kept)) return goes_on;
      admission = next;
      body = std::string_view(kept).substr(kFrameHeaderBytes);
    }
  }

  bool Refuse(const absl::Status& why) {
    node_->Log(LogLevel::kWarning, absl::StrCat("a stream is cut: ", why.message()));
    return false;
  }

  CoreHandle& handle_;
  const std::shared_ptr<const LocalNode> node_;
};

}  // namespace

std::shared_ptr<FrameReceiver> MakeReceiver(CoreHandle& handle, std::shared_ptr<const LocalNode> node) {
  return std::make_shared<Receiver>(handle, std::move(node));
}

bool RemotingCore::OnStreamOpened(Section& section, uint64_t stream, const StreamOrigin& origin) {
  if (streams_.size() >= node_->options.max_inbound_streams) {
    // One that has not said whose it is makes place, the oldest first.
    auto oldest = streams_.end();
    for (auto one = streams_.begin(); one != streams_.end(); ++one) {
      if (one->second.peer != nullptr) continue;
      if (oldest == streams_.end() || one->second.since < oldest->second.since) oldest = one;
    }
    if (oldest == streams_.end()) {
      LogLater(section, LogLevel::kWarning,
               absl::StrCat("a stream from ", origin.endpoint, " was refused: ", streams_.size(),
                            " are open; raise RemoteOptions.max_inbound_streams"));
      return false;
    }
    transport_->Cut(oldest->first);
    streams_.erase(oldest);
  }
  streams_.insert_or_assign(stream, InboundStream{.origin = origin, .since = node_->Now()});
  return true;
}

void RemotingCore::OnStreamClosed(uint64_t stream) { streams_.erase(stream); }

void RemotingCore::CutStream(uint64_t stream) {
  streams_.erase(stream);
  transport_->Cut(stream);
}

BatchAdmission RemotingCore::Admit(Section& section, uint64_t id, const FrameHeader& header, std::string_view frame) {
  BatchAdmission admission{.uid = header.origin_uid, .lane = header.lane, .stream = id, .number = header.number};
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    admission.verdict = BatchAdmission::Verdict::kCut;
    return admission;
  }
  const InboundStream& stream = found->second;
  if (stream.peer == nullptr) return admission;  // Nobody has said whose it is.
  if (stream.uid != header.origin_uid) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat("a stream of ", stream.peer->parts.ToString(), " is cut: a frame on it is of somebody else"));
    admission.verdict = BatchAdmission::Verdict::kCut;
    return admission;
  }
  Peer& peer = *stream.peer;
  if (header.target_uid != node_->uid) return admission;  // For an earlier life of this node.
  if (peer.quarantined_uid == stream.uid) {
    SendNotice(section, peer);
    return admission;
  }
  if (peer.uid != stream.uid) return admission;
  InboundLane& lane = peer.in(header.lane);
  if (header.number <= lane.received) return admission;
  if (lane.is_busy) {
    if (lane.waiting.size() >= kMaxWaitingFrames) return admission;
    lane.received = header.number;
    lane.waiting.push_back({id, header.number, std::string(frame)});
    return admission;
  }
  lane.received = header.number;
  lane.is_busy = true;
  admission.verdict = BatchAdmission::Verdict::kRead;
  admission.peer = &peer;
  admission.link = LinkTo(peer, stream.uid).value_or(nullptr);
  admission.session = peer.session;
  return admission;
}

bool RemotingCore::OnBatchRead(Section& section, const BatchAdmission& read, BatchAdmission& next, std::string& frame) {
  Peer& peer = *read.peer;
  InboundLane& lane = peer.in(read.lane);
  if (read.session == peer.session) {
    lane.handled = read.number;
    DeliverHeld(section, peer, false);
  }
  if (lane.waiting.empty()) {
    lane.is_busy = false;
    return false;
  }
  // What waits is of the current life: that of another one was dropped with it.
  next = read;
  next.verdict = BatchAdmission::Verdict::kRead;
  next.session = peer.session;
  next.uid = peer.uid;
  next.link = LinkTo(peer, peer.uid).value_or(nullptr);
  next.stream = lane.waiting.front().stream;
  next.number = lane.waiting.front().number;
  frame = std::move(lane.waiting.front().frame);
  lane.waiting.pop_front();
  return true;
}

bool RemotingCore::OnControl(Section& section, uint64_t id, const FrameHeader& header, wire::ControlMessage message) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  InboundStream& stream = found->second;
  switch (message.body_case()) {
    case wire::ControlMessage::kHandshakeRequest:
      return OnRequest(section, stream, header, message.handshake_request());
    case wire::ControlMessage::kHandshakeResponse:
      if (header.target_uid != node_->uid) return true;
      return OnResponse(section, stream, header, message.handshake_response());
    case wire::ControlMessage::kHandshakeRefusal:
      OnRefusal(section, stream, message.handshake_refusal());
      return true;
    default:
      break;
  }
  if (stream.peer == nullptr) return true;  // Nobody has said whose it is.
  Peer* const peer = stream.peer;
  if (header.origin_uid != stream.uid) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat("a stream of ", peer->parts.ToString(), " is cut: a frame on it is of somebody else"));
    return false;
  }
  if (header.target_uid != node_->uid) return true;
  if (peer->quarantined_uid == stream.uid) {
    const bool is_answered = message.body_case() != wire::ControlMessage::kHeartbeat &&
                             message.body_case() != wire::ControlMessage::kHeartbeatAnswer &&
                             message.body_case() != wire::ControlMessage::kQuarantineNotice;
    if (is_answered) SendNotice(section, *peer);
    return true;
  }
  if (peer->uid != stream.uid) return true;
  if (message.body_case() == wire::ControlMessage::kQuarantineNotice) {
    if (message.quarantine_notice().quarantined_uid() != node_->uid) return true;
    section.Later([node = node_, who = peer->parts.ToString(), why = message.quarantine_notice().reason()] {
      node->Log(LogLevel::kError, absl::StrCat(who, " has put this system into quarantine: ", why));
      node->system.events().PublishToAll(ThisSystemQuarantined{.node = who, .reason = why});
    });
    Quarantine(section, *peer,
               absl::StrCat("it has put this system into quarantine: ", message.quarantine_notice().reason()), false);
    return true;
  }
  switch (message.body_case()) {
    case wire::ControlMessage::kSystemMessages:
      OnSystemMessages(section, *peer, message.system_messages());
      break;
    case wire::ControlMessage::kSystemAck:
      peer->outbox.Acknowledge(message.system_ack().number(), node_->Now());
      SendSystemDue(section, *peer);
      if (is_flushing_) CheckFlush(section, node_->Now());
      break;
    case wire::ControlMessage::kHeartbeat: {
      wire::ControlMessage answer;
      answer.mutable_heartbeat_answer()->set_number(message.heartbeat().number());
      SendControl(section, *peer, answer);
      break;
    }
    case wire::ControlMessage::kHeartbeatAnswer:
      if (peer->detector != nullptr) peer->detector->Heartbeat(node_->Now());
      break;
    case wire::ControlMessage::kFlush: {
      wire::ControlMessage answer;
      answer.mutable_flush_done()->set_number(message.flush().number());
      answer.mutable_flush_done()->set_lane(message.flush().lane());
      SendControl(section, *peer, answer);
      break;
    }
    case wire::ControlMessage::kFlushDone:
      if (message.flush_done().number() != peer->flush) break;
      peer->unflushed &= ~(1u << message.flush_done().lane());
      if (is_flushing_) CheckFlush(section, node_->Now());
      break;
    case wire::ControlMessage::kGoodbye: {
      LogLater(section, LogLevel::kInfo, absl::StrCat(peer->parts.ToString(), " has ended"));
      EndLife(section, *peer, "it has ended", true);
      // By path nobody is there either, until another start of it answers.
      EndWatches(section, *peer, 0, ByPath::kAll);
      authorities_->Disconnect(peer->authority, node_->Now()).IgnoreError();
      DrainRegistry(section);
      for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) CloseLane(*peer, lane);
      break;
    }
    default:
      break;
  }
  return true;
}

}  // namespace fraktor::inline v0
