// What comes from other nodes.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_names.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/selection/selection.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/actor/turn/system_core.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Whom a message is for.
struct Recipient {
  ActorRef ref = {};
  // Set if it is found by path each time: a selection, or a path that nobody has.
  std::string path = {};
  bool is_selection = false;
};

class BatchDelivery final : public ActorRefCodec {
 public:
  BatchDelivery(CoreHandle& handle, const LocalNode& node, const ActorPathParts& from, uint64_t life)
      : handle_(handle), node_(node), from_(from), life_(life) {}

  absl::Status Run(std::string_view body) {
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
          manifests_.push_back(reader.manifest());
          break;
        case BatchReader::Step::kMessage:
          Deliver(reader.message());
          break;
        case BatchReader::Step::kEnd:
          return absl::OkStatus();
      }
    }
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
  void AddNode(const BatchNodeView& view) {
    absl::StatusOr<PathAuthority> authority = PathAuthority::Create(view.protocol, view.host, view.port);
    absl::StatusOr<ActorPathParts> parts =
        authority.ok() ? ActorPathParts::Remote(view.system, *std::move(authority)) : authority.status();
    nodes_.emplace_back(std::move(parts), view.uid);
  }

  Recipient Resolve(const BatchRefView& view) {
    if (view.home == BatchHome::kReceiver) return ResolveHere(view);
    if (view.home == BatchHome::kSender) return {.ref = RefThere(from_, life_, view)};
    const auto& [parts, life] = nodes_[view.home - BatchHome::kFirstNode];
    if (!parts.ok()) return {};
    if (*parts == node_.parts) return life == 0 || life == node_.uid ? ResolveHere(view) : Recipient();
    return {.ref = RefThere(*parts, life, view)};
  }

  ActorRef RefThere(const ActorPathParts& parts, uint64_t life, const BatchRefView& view) {
    if (view.is_selection) return {};
    Section section(handle_);
    if (section.core() == nullptr) return {};
    return section.core()->RefOfActor(parts, life, view.uid, view.path);
  }

  Recipient ResolveHere(const BatchRefView& view) {
    if (view.uid != 0 && view.path.empty()) return {.ref = node_.FindUid(view.uid)};
    Recipient recipient{.path = std::string(view.path), .is_selection = view.is_selection};
    if (!view.is_selection) recipient.ref = FindPath(recipient.path);
    return recipient;
  }

  ActorRef FindPath(const std::string& text) const {
    const absl::StatusOr<ActorPath> path =
        ActorPathParser::Parse(absl::StrCat("pekko://", ToAbsl(node_.system.name()), text));
    return path.ok() ? node_.system.names().Find(*path) : ActorRef();
  }

  void Deliver(const BatchMessageView& message) {
    const Recipient& to = refs_[message.to - 1];
    const ActorRef sender = message.from == 0 ? ActorRef() : refs_[message.from - 1].ref;
    const BatchManifestView& manifest = manifests_[message.manifest - 1];
    const bool is_users = node_.codecs.FindManifest(manifest.name) != nullptr;
    const CodecRegistry& codecs = is_users ? node_.codecs : RuntimeCodecs();
    absl::StatusOr<EnvelopePtr> decoded =
        codecs.Decode({.manifest = manifest.name, .version = manifest.version, .bytes = message.payload}, sender,
                      {.refs = this, .max_bytes = message.payload.size()});
    if (!decoded.ok()) {
      // The link lives on.
      node_.Log(LogLevel::kWarning, absl::StrCat("a message from ", from_.ToString(), " for ", Describe(to),
                                                 " cannot be read: ", decoded.status().message()));
      LoseUnread(to, sender, manifest.name);
      return;
    }
    EnvelopePtr envelope = *std::move(decoded);
    if (!MayReceive(to, *envelope)) return;
    if (to.is_selection || (to.ref.IsNoOne() && !to.path.empty())) {
      Select(node_.system, to.path).Send(std::move(envelope));
    } else if (to.ref.IsNoOne()) {
      node_.Lose(ActorRef(), std::move(envelope), DeadLetterReason::kStopped);
    } else if (envelope->type()->is_marked()) {
      SendMarked(to.ref, std::move(envelope));
    } else {
      SendForeign(to.ref, std::move(envelope)).IgnoreError();
    }
  }

  // Of peers that are not trusted.
  bool MayReceive(const Recipient& to, const Envelope& message) const {
    if (!node_.options.untrusted) return true;
    const std::vector<std::string>& trusted = node_.options.trusted_selections;
    const bool is_harmful = message.Is<PoisonPill>() || message.Is<Kill>() || message.Is<RemoteSpawn>();
    const bool is_other = to.is_selection && std::find(trusted.begin(), trusted.end(), to.path) == trusted.end();
    if (!is_harmful && !is_other) return true;
    node_.Log(LogLevel::kWarning, absl::StrCat(ToAbsl(message.type()->name()), " from ", from_.ToString(), " for ",
                                               Describe(to), " was dropped: peers are not trusted here"));
    return false;
  }

  std::string Describe(const Recipient& to) const { return to.path.empty() ? node_.system.PathOf(to.ref) : to.path; }

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
  std::vector<std::pair<absl::StatusOr<ActorPathParts>, uint64_t>> nodes_;
  std::vector<Recipient> refs_;
  std::vector<BatchManifestView> manifests_;
};

class Receiver final : public FrameReceiver {
 public:
  Receiver(CoreHandle& handle, std::shared_ptr<const LocalNode> node) : handle_(handle), node_(std::move(node)) {}

  bool OnFrame(uint64_t /*stream*/, std::string_view bytes) override {
    // A full mailbox must not hold the stream up.
    const NonBlockingScope non_blocking;
    const absl::StatusOr<FrameView> frame = ReadFrame(bytes, node_->options.limits);
    if (!frame.ok()) return Refuse(frame.status());
    if (frame->header.kind == FrameKind::kControl) {
      absl::StatusOr<wire::ControlMessage> message = DecodeControl(frame->body, node_->options.limits);
      if (!message.ok()) return Refuse(message.status());
      Section section(handle_);
      if (section.core() != nullptr) section.core()->OnControl(section, frame->header, *std::move(message));
      return true;
    }
    std::unique_ptr<const ActorPathParts> from;
    {
      Section section(handle_);
      if (section.core() != nullptr) from = section.core()->MayRead(section, frame->header);
    }
    if (from == nullptr) return true;
    BatchDelivery delivery(handle_, *node_, *from, frame->header.origin_uid);
    const absl::Status delivered = delivery.Run(frame->body);
    {
      Section section(handle_);
      if (section.core() != nullptr) section.core()->OnBatchRead(section, frame->header);
    }
    return delivered.ok() || Refuse(delivered);
  }

 private:
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

std::unique_ptr<const ActorPathParts> RemotingCore::MayRead(Section& section, const FrameHeader& header) {
  if (header.target_uid != node_->uid) return nullptr;  // For an earlier life of this node.
  Peer* const peer = PeerOfUid(header.origin_uid);
  if (peer == nullptr) {
    for (const auto& [authority, one] : peers_) {
      if (one->quarantined_uid == header.origin_uid) SendNotice(section, *one);
    }
    return nullptr;
  }
  uint64_t& last = peer->received[IndexOf(header.lane)];
  if (header.number <= last) return nullptr;
  last = header.number;
  return std::make_unique<const ActorPathParts>(peer->parts);
}

void RemotingCore::OnBatchRead(Section& section, const FrameHeader& header) {
  if (Peer* const peer = PeerOfUid(header.origin_uid)) DeliverHeld(section, *peer, false);
}

void RemotingCore::OnControl(Section& section, const FrameHeader& header, wire::ControlMessage message) {
  switch (message.body_case()) {
    case wire::ControlMessage::kHandshakeRequest:
      OnRequest(section, message.handshake_request());
      return;
    case wire::ControlMessage::kHandshakeResponse:
      if (header.target_uid == node_->uid) OnResponse(section, message.handshake_response());
      return;
    case wire::ControlMessage::kHandshakeRefusal:
      OnRefusal(section, message.handshake_refusal());
      return;
    default:
      break;
  }
  if (header.target_uid != node_->uid) return;
  Peer* const peer = PeerOfUid(header.origin_uid);
  if (message.body_case() == wire::ControlMessage::kQuarantineNotice) {
    if (peer == nullptr || message.quarantine_notice().quarantined_uid() != node_->uid) return;
    section.Later([node = node_, who = peer->parts.ToString(), why = message.quarantine_notice().reason()] {
      node->Log(LogLevel::kError, absl::StrCat(who, " has put this system into quarantine: ", why));
      node->system.events().Publish(ThisSystemQuarantined{.node = who, .reason = why});
    });
    Quarantine(section, *peer,
               absl::StrCat("it has put this system into quarantine: ", message.quarantine_notice().reason()), false);
    return;
  }
  if (peer == nullptr) {
    const bool is_heartbeat = message.body_case() == wire::ControlMessage::kHeartbeat ||
                              message.body_case() == wire::ControlMessage::kHeartbeatAnswer;
    for (const auto& [authority, one] : peers_) {
      if (one->quarantined_uid == header.origin_uid && !is_heartbeat) SendNotice(section, *one);
    }
    return;
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
      peer->unflushed &= ~(1u << message.flush_done().lane());
      if (is_flushing_) CheckFlush(section, node_->Now());
      break;
    case wire::ControlMessage::kGoodbye: {
      LogLater(section, LogLevel::kInfo, absl::StrCat(peer->parts.ToString(), " has ended"));
      EndLife(section, *peer, "it has ended");
      // By path nobody is there either, until another start of it answers.
      EndWatches(section, *peer, 0, true);
      authorities_->Disconnect(peer->authority, node_->Now()).IgnoreError();
      DrainRegistry(section);
      for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) CloseLane(*peer, lane);
      break;
    }
    default:
      break;
  }
}

}  // namespace fraktor::inline v0
