#include "fraktor/remote/association/remoting_core.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_names.h"
#include "fraktor/actor/cell/actor_tree.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/turn/actor_worker.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr uint64_t kUidStream = 0x72656d6f74657569;  // Of the toolbox's generator.
constexpr uint64_t kNonceStream = 0x72656d6f746e6f6e;
// Besides the payload.
constexpr size_t kMessageOverhead = BatchWriter::kMaxEntryBytes;
// Places for selections, which are used again.
constexpr size_t kSelectionPlaces = 1024;
constexpr size_t kMaxIdentifies = 1000;

AllDeadLetters Describe(const DeferredMessage& message) {
  const Envelope& envelope = message.envelope();
  return {.message = {.type_name = envelope.type()->name(), .type = envelope.type(), .message = envelope.payload()}};
}

// Tells the core what becomes of a stream.
class LaneListener final : public StreamListener {
 public:
  LaneListener(CoreHandle& handle, const PathAuthority& authority, Lane lane, uint64_t serial)
      : handle_(handle), authority_(authority), lane_(lane), serial_(serial) {}

  void OnOpened() override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnOpened(section, authority_, lane_, serial_);
  }
  void OnWritten() override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnWritten(section, authority_, lane_, serial_);
  }
  void OnClosed(const absl::Status& why) override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnClosed(section, authority_, lane_, serial_, why);
  }

 private:
  CoreHandle& handle_;
  const PathAuthority authority_;
  const Lane lane_;
  const uint64_t serial_;
};

}  // namespace

uint64_t LocalNode::WireUidOf(ActorRef ref) const {
  if (ref.IsNoOne() || ref.IsRemote() || !system.tree().options().mailboxes.slots().Owns(ref.slot())) return 0;
  // Those of actors are odd, so there is room for promises.
  const uint32_t generation = ref.generation() + (ref.IsPromise() ? 1 : 0);
  return system.names().uids().UidOf({.slot = ActorSlotTable::IndexOf(ref.slot()), .generation = generation}).value();
}

ActorRef LocalNode::FindUid(uint64_t wanted) const {
  const std::optional<Pid> pid = system.names().uids().PidOf(ActorUid(wanted));
  if (!pid.has_value()) return {};
  ActorSlot* const slot = ProcessSlots().At(pid->slot);
  if (slot == nullptr || !system.tree().options().mailboxes.slots().Owns(slot)) return {};
  if (pid->generation % 2 == 0) return ActorRef(slot, uint64_t{pid->generation - 1} | ActorRef::kPromise);
  if (slot->IsAt(pid->generation)) {
    const ActorRef ref = slot->ref();
    if (ref.generation() == pid->generation) return ref;
  }
  return ActorRef(slot, pid->generation);
}

void LocalNode::Log(LogLevel level, std::string_view text) const {
  system.log().Log(level, {.at = system.toolbox().WallNow(), .path = "remote", .text = text});
}

void LocalNode::Lose(ActorRef to, EnvelopePtr message, DeadLetterReason reason) const {
  message->set_target_word(to.word());
  if (ForeignMetrics* const metrics = system.tree().options().mailboxes.core().metrics()) {
    metrics->CountDeadLetter(reason);
  }
  ActorLifecycle& lifecycle = system.tree();
  lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(message), to.slot(), reason);
  if (ActorWorker* const worker = ActorWorker::Current()) worker->outbox.Flush();
}

absl::StatusOr<std::unique_ptr<RemotingCore>> RemotingCore::Make(CoreHandle& handle, ActorSystem& system,
                                                                 std::unique_ptr<Transport> transport,
                                                                 const RemoteOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  const ActorSystemConfig& config = system.options().config;
  if (!config.remoting.has_value()) {
    return absl::FailedPreconditionError(
        "the system has no RemotingConfig: set ActorSystemConfig.remoting to the address that others know");
  }
  FRAKTOR_ASSIGN_OR_RETURN(ActorPathParts parts, config.CanonicalParts());
  uint64_t uid = options.system_uid;
  if (uid == 0) {
    Random random = system.toolbox().MakeRandom(kUidStream);
    uid = random.Next() | 1;
  }
  auto node = std::make_shared<const LocalNode>(
      LocalNode{.system = system, .codecs = CodecsOf(system), .options = options, .parts = parts, .uid = uid});
  std::unique_ptr<RemotingCore> core(new RemotingCore(handle, std::move(node), std::move(transport)));
  FRAKTOR_ASSIGN_OR_RETURN(core->authorities_, Registry::Create(*config.remoting, &Describe, core->registry_events_,
                                                                core->registry_letters_));
  for (const std::string& pattern : options.large_destinations) {
    FRAKTOR_ASSIGN_OR_RETURN(ActorSelection selection, ActorSelection::Parse(pattern));
    core->large_.push_back(std::move(selection));
  }
  core->ListenToRegistry();
  return core;
}

RemotingCore::RemotingCore(CoreHandle& handle, std::shared_ptr<const LocalNode> node,
                           std::unique_ptr<Transport> transport)
    : handle_(handle),
      node_(std::move(node)),
      transport_(std::move(transport)),
      registry_events_(EventStreamOptions()),
      random_(node_->system.toolbox().MakeRandom(kNonceStream ^ node_->uid)) {}

RemotingCore::~RemotingCore() = default;

void RemotingCore::Close() { transport_->Shutdown(); }

// Peers.

Peer* RemotingCore::FindPeer(const PathAuthority& authority) {
  const auto found = peers_.find(authority);
  return found == peers_.end() ? nullptr : found->second.get();
}

absl::StatusOr<Peer*> RemotingCore::PeerOf(const ActorPathParts& parts) {
  const auto unsupported = [&](std::string_view why) {
    return MakeError(absl::StatusCode::kInvalidArgument, ActorPathErrorKind::kUnsupportedAuthority,
                     absl::StrCat(parts.ToString(), " cannot be reached: ", ToAbsl(why)));
  };
  if (!parts.authority().has_value()) return unsupported("it has no host and port");
  if (!IsKnownProtocol(parts.authority()->protocol())) return unsupported("its protocol is not known here");
  if (Peer* const known = FindPeer(*parts.authority())) {
    if (known->parts == parts) return known;
    if (known->uid != 0) {
      return unsupported(absl::StrCat("the system there is called ", ToAbsl(known->parts.system())));
    }
    known->parts = parts;
    known->by_path = nullptr;  // References by path to the other name lead on to it, in vain.
    known->paths.clear();
    known->path_index.clear();
    known->selections.clear();
    return known;
  }
  if (peers_.size() >= node_->system.options().config.remoting->max_authorities) {
    return absl::ResourceExhaustedError(
        absl::StrCat(parts.ToString(), " would be one peer too many; raise RemotingConfig.max_authorities"));
  }
  return peers_.emplace(*parts.authority(), std::make_unique<Peer>(parts, node_->options.system)).first->second.get();
}

Peer* RemotingCore::PeerOfUid(uint64_t uid) {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second;
}

bool RemotingCore::IsDead(const Peer& peer, uint64_t uid) const {
  return std::find(peer.dead.begin(), peer.dead.end(), uid) != peer.dead.end();
}

PeerLife* RemotingCore::LifeOf(Peer& peer, uint64_t uid) {
  const auto found = peer.lives.find(uid);
  if (found != peer.lives.end()) return &found->second;
  if (peer.lives.size() >= node_->options.max_lives) return nullptr;
  const absl::StatusOr<NodeLink*> link = NodeLink::Make(handle_, peer.parts, uid);
  if (!link.ok()) return nullptr;
  return &peer.lives.emplace(uid, PeerLife{.link = *link, .paths = {}}).first->second;
}

// References.

absl::StatusOr<ActorRef> RemotingCore::RefAt(const ActorPathParts& parts, std::string_view path, bool is_selection) {
  FRAKTOR_ASSIGN_OR_RETURN(Peer* const peer, PeerOf(parts));
  if (peer->by_path == nullptr) {
    FRAKTOR_ASSIGN_OR_RETURN(peer->by_path, NodeLink::Make(handle_, parts, 0));
  }
  const std::string key = absl::StrCat(is_selection ? "?" : "", ToAbsl(path));
  if (const auto found = peer->path_index.find(key); found != peer->path_index.end()) {
    return peer->by_path->RefOfPath(found->second, peer->paths[found->second].turn);
  }
  uint32_t index = 0;
  if (is_selection && peer->selections.size() >= kSelectionPlaces) {
    // The place of the one that was made longest ago.
    index = peer->selections[peer->next_selection];
    peer->next_selection = (peer->next_selection + 1) % kSelectionPlaces;
    PathEntry& entry = peer->paths[index];
    peer->path_index.erase(absl::StrCat("?", entry.path));
    entry = {.path = std::string(path), .is_selection = true, .turn = (entry.turn + 1) & 0x7fffffff};
  } else {
    if (peer->paths.size() >= node_->options.max_paths) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a reference to ", parts.ToString(), ToAbsl(path), " would be one too many by path; keep the ",
                       "references that answers bring, or raise RemoteOptions.max_paths"));
    }
    index = static_cast<uint32_t>(peer->paths.size());
    peer->paths.push_back({.path = std::string(path), .is_selection = is_selection});
    if (is_selection) peer->selections.push_back(index);
  }
  peer->path_index.insert_or_assign(key, index);
  return peer->by_path->RefOfPath(index, peer->paths[index].turn);
}

ActorRef RemotingCore::RefOfActor(const ActorPathParts& parts, uint64_t life, uint64_t uid, std::string_view path) {
  if (uid == 0 || life == 0) return RefAt(parts, path, false).value_or(ActorRef());
  const absl::StatusOr<Peer*> peer = PeerOf(parts);
  if (!peer.ok()) return {};
  PeerLife* const known = LifeOf(**peer, life);
  if (known == nullptr) return {};
  if (!path.empty()) {
    // Enough for logs: when there are too many, they begin anew.
    if (known->paths.size() >= node_->options.max_path_texts) known->paths.clear();
    known->paths.insert_or_assign(uid, std::string(path));
  }
  const ActorRef ref = known->link->RefOfUid(uid);
  // One uid in four thousand millions has no word of its own.
  return ref.IsNoOne() ? RefAt(parts, absl::StrCat("#", uid), false).value_or(ActorRef()) : ref;
}

std::string RemotingCore::PathTextOf(const NodeLink& link, ActorRef ref) const {
  const auto peer = peers_.find(*link.node().authority());
  if (peer == peers_.end()) return {};
  if (link.life() == 0) {
    const uint32_t index = NodeLink::PathIndexOf(ref);
    if (peer->second->by_path != &link || index >= peer->second->paths.size()) return {};
    const PathEntry& entry = peer->second->paths[index];
    return entry.turn == NodeLink::PathTurnOf(ref) ? entry.path : std::string();
  }
  const auto life = peer->second->lives.find(link.life());
  if (life == peer->second->lives.end()) return {};
  const auto path = life->second.paths.find(link.UidOf(ref));
  return path == life->second.paths.end() ? std::string() : path->second;
}

// What is for users.

void RemotingCore::LoseLater(Section& section, ActorRef to, EnvelopePtr message, DeadLetterReason reason) {
  section.Later(
      [node = node_, to, lost = std::move(message), reason]() mutable { node->Lose(to, std::move(lost), reason); });
}

void RemotingCore::LogLater(Section& section, LogLevel level, std::string text) const {
  section.Later([node = node_, level, text = std::move(text)] { node->Log(level, text); });
}

void RemotingCore::TerminatedLater(Section& section, const Peer& peer, uint64_t uid, std::string reason) const {
  section.Later([node = node_, text = peer.parts.ToString(), uid, reason = std::move(reason)] {
    node->system.events().Publish(AddressTerminated{.node = text, .system_uid = uid, .reason = reason});
  });
}

void RemotingCore::ListenToRegistry() {
  listening_.push_back(registry_events_.Listen<AllDeadLetters>(
      [this](const AllDeadLetters& letter) { refusals_[letter.message.message].reason = letter.reason; }));
  listening_.push_back(registry_events_.Listen<InvalidAssociation>([this](const InvalidAssociation& invalid) {
    Refusal& refusal = refusals_[invalid.message.message];
    refusal.is_invalid_association = true;
    refusal.why = std::string(invalid.reason);
    refusal.deadline = invalid.deadline;
  }));
  listening_.push_back(registry_events_.Listen<AuthorityStateChanged>([this](const AuthorityStateChanged& change) {
    said_.push_back(
        [change = change, authority = change.authority, reason = std::string(change.reason)](const LocalNode& node) {
          const AuthorityStateChanged copy{.authority = authority,
                                           .from = change.from,
                                           .to = change.to,
                                           .cause = change.cause,
                                           .reason = reason,
                                           .system_uid = change.system_uid,
                                           .deadline = change.deadline,
                                           .at = change.at,
                                           .flushed = change.flushed,
                                           .lost = change.lost};
          if (copy.to == AuthorityState::kQuarantine) {
            node.system.events().Publish(QuarantinedEvent{copy});
          } else {
            node.system.events().Publish(copy);
          }
        });
  }));
}

void RemotingCore::DrainRegistry(Section& section) {
  for (auto& say : said_) section.Later([node = node_, say = std::move(say)] { say(*node); });
  said_.clear();
  for (auto& [to, message] : lost_) {
    Refusal refusal;
    if (const auto found = refusals_.find(message->payload()); found != refusals_.end()) {
      refusal = std::move(found->second);
    }
    section.Later([node = node_, to = to, lost = std::move(message), refusal = std::move(refusal)]() mutable {
      if (refusal.is_invalid_association) {
        const PathAuthority authority = *NodeLink::Of(to).node().authority();
        const ActorRef sender = lost->sender();
        const std::string from = sender.IsNoOne() ? std::string() : node->system.PathOf(sender);
        const std::string recipient = node->system.PathOf(to);
        node->system.events().Publish(InvalidAssociation{
            .authority = authority,
            .sender = from,
            .recipient = recipient,
            .message = {.type_name = lost->type()->name(), .type = lost->type(), .message = lost->payload()},
            .reason = refusal.why,
            .deadline = refusal.deadline,
            .at = node->Now()});
      }
      node->Lose(to, std::move(lost), refusal.reason);
    });
  }
  lost_.clear();
  refusals_.clear();
}

// Sending.

void RemotingCore::Send(Section& section, NodeLink& link, ActorRef to, EnvelopePtr message) {
  Peer* const peer = FindPeer(*link.node().authority());
  if (peer == nullptr || (link.life() == 0 && peer->by_path != &link)) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kUnsupported);
    return;
  }
  if (is_ending_) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kShutdown);
    return;
  }
  if (link.life() != 0 && (IsDead(*peer, link.life()) || (peer->uid != 0 && peer->uid != link.life()))) {
    // A life that was not met yet may be there by now.
    if (!IsDead(*peer, link.life())) WantPeer(section, *peer);
    LoseLater(section, to, std::move(message), DeadLetterReason::kNewIncarnation);
    return;
  }
  if (peer->is_associated) {
    Enqueue(section, *peer, to, std::move(message));
    return;
  }
  const bool may_be_none = link.life() == 0 && message->Is<Identify>();
  if (may_be_none && !IsQuarantined(*peer) && peer->identifies.size() < kMaxIdentifies) {
    peer->identifies.emplace_back(to, std::move(message));
  } else {
    absl::StatusOr<std::optional<DeferredMessage>> now_or_later =
        authorities_->Offer(peer->authority, DeferredMessage(to, std::move(message), lost_), node_->Now());
    if (now_or_later.ok() && now_or_later->has_value()) {
      Enqueue(section, *peer, to, (*now_or_later)->Take());
    }
    DrainRegistry(section);
  }
  if (!IsQuarantined(*peer)) WantPeer(section, *peer);
}

// Writes references as places in the tables of a batch.
class OutboundRefs final : public ActorRefCodec {
 public:
  OutboundRefs(RemotingCore& core, Peer& peer, OutboundLane& lane) : core_(core), peer_(peer), lane_(lane) {}

  absl::Status Write(ActorRef ref, std::string& out) override {
    const uint32_t place = core_.PlaceOf(peer_, lane_, ref);
    if (place == 0) {
      return absl::InvalidArgumentError(
          "a reference in it is of another system of this process, or there are too many");
    }
    AppendVarint(out, place);
    return absl::OkStatus();
  }
  absl::StatusOr<ActorRef> Read(std::string_view) override { return absl::UnimplementedError("this side writes"); }

 private:
  RemotingCore& core_;
  Peer& peer_;
  OutboundLane& lane_;
};

uint32_t RemotingCore::PlaceOf(Peer& peer, OutboundLane& lane, ActorRef ref) {
  if (ref.IsNoOne()) return 0;
  if (const auto found = lane.refs.find(ref); found != lane.refs.end()) return found->second;
  const WireLimits& limits = node_->options.limits;
  if (lane.batch.refs() >= limits.max_refs) return 0;
  BatchRefView view;
  std::string path;
  if (!ref.IsRemote()) {
    view.home = BatchHome::kSender;
    view.uid = node_->WireUidOf(ref);
    if (view.uid == 0) return 0;
    if (!ref.IsPromise() && !peer.told_paths.contains(view.uid)) {
      if (peer.told_paths.size() >= node_->options.max_path_texts) peer.told_paths.clear();
      peer.told_paths.insert(view.uid);
      path = node_->system.names().TextOf(ref);
      // Without the address, which the receiver knows.
      const size_t root = path.find('/', path.find("://") + 3);
      view.path = root == std::string::npos ? std::string_view() : std::string_view(path).substr(root);
    }
  } else {
    const NodeLink& link = NodeLink::Of(ref);
    const bool is_theirs =
        &link.handle() == &handle_ && link.node() == peer.parts && (link.life() == 0 || link.life() == peer.uid);
    if (!is_theirs) {
      const auto key = std::make_pair(link.node(), link.life());
      auto found = lane.nodes.find(key);
      if (found == lane.nodes.end()) {
        if (lane.batch.nodes() >= limits.max_nodes) return 0;
        const PathAuthority& authority = *link.node().authority();
        found = lane.nodes
                    .emplace(key, lane.batch.AddNode({.protocol = authority.protocol(),
                                                      .system = link.node().system(),
                                                      .host = authority.host(),
                                                      .port = authority.port(),
                                                      .uid = link.life()}))
                    .first;
      }
      view.home = found->second;
    }
    if (link.life() != 0) view.uid = link.UidOf(ref);
    // A reference of another system of this process: its lock is not to be taken.
    if (&link.handle() == &handle_) path = PathTextOf(link, ref);
    if (link.life() == 0) {
      if (path.empty()) return 0;
      if (path.front() == '#') {
        view.uid = std::strtoull(path.c_str() + 1, nullptr, 10);
      } else {
        view.path = path;
        view.is_selection = FindPeer(*link.node().authority())->paths[NodeLink::PathIndexOf(ref)].is_selection;
      }
    } else if (!is_theirs) {
      view.path = path;
    }
  }
  if (view.path.size() > limits.max_path_bytes) return 0;
  const uint32_t place = lane.batch.AddRef(view);
  lane.refs.emplace(ref, place);
  return place;
}

Lane RemotingCore::LaneOf(const Peer& peer, const NodeLink& link, ActorRef to) const {
  if (large_.empty()) return Lane::kOrdinary;
  const std::string path = PathTextOf(link, to);
  if (path.empty()) return Lane::kOrdinary;
  for (const ActorSelection& pattern : large_) {
    const absl::StatusOr<ActorSelection> elements = ActorSelection::Parse(path);
    if (!elements.ok() || elements->elements().size() != pattern.elements().size()) continue;
    bool matches = true;
    for (size_t i = 0; i < pattern.elements().size() && matches; ++i) {
      const SelectionElement& wanted = pattern.elements()[i];
      const std::string_view name = elements->elements()[i].text();
      matches = wanted.kind() == SelectionElement::Kind::kPattern ? wanted.Matches(name) : wanted.text() == name;
    }
    if (matches) return Lane::kLarge;
  }
  static_cast<void>(peer);
  return Lane::kOrdinary;
}

void RemotingCore::Enqueue(Section& section, Peer& peer, ActorRef to, EnvelopePtr message) {
  const RemoteOptions& options = node_->options;
  const NodeLink& link = NodeLink::Of(to);
  if (link.life() != 0 && link.life() != peer.uid) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kNewIncarnation);
    return;
  }
  const Lane which = LaneOf(peer, link, to);
  OutboundLane& lane = peer.lane(which);
  const size_t most = which == Lane::kLarge ? options.max_queued_large : options.max_queued_messages;
  if (lane.queued() >= most || lane.queued_bytes() >= options.max_queued_bytes) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kMailboxFull);
    return;
  }
  const MessageCodec* codec = node_->codecs.FindType(message->type());
  const CodecRegistry& codecs = codec != nullptr ? node_->codecs : RuntimeCodecs();
  const size_t max_frame = MaxFrameBytes(which, options.limits);
  const size_t max_payload = max_frame - kFrameHeaderBytes - kMessageOverhead - options.limits.max_manifest_bytes;
  OutboundRefs refs(*this, peer, lane);
  absl::Status encoded;
  for (int attempt = 0; attempt < 2; ++attempt) {
    BatchWriter& batch = lane.batch;
    if (batch.refs() > options.limits.max_refs / 2 || batch.nodes() > options.limits.max_nodes / 2 ||
        batch.manifests() >= options.limits.max_manifests || batch.messages() >= options.limits.max_messages) {
      SealBatch(peer, which);
    }
    const uint32_t place = PlaceOf(peer, lane, to);
    // No one is no answer to a message from another system of this process.
    const uint32_t from = PlaceOf(peer, lane, message->sender());
    scratch_.clear();
    const absl::StatusOr<const MessageCodec*> written =
        codecs.Encode(*message, scratch_, {.refs = &refs, .max_bytes = max_payload});
    encoded = place == 0 ? absl::InvalidArgumentError("there is no such path any more") : written.status();
    if (!encoded.ok()) break;
    codec = *written;
    const size_t manifest_bytes = codec->manifest().size() + kMessageOverhead;
    const bool fits = batch.bytes() + scratch_.size() + manifest_bytes + kMessageOverhead <= max_frame;
    if (!fits && !batch.empty()) {
      SealBatch(peer, which);  // The places begin anew.
      continue;
    }
    if (!fits) {
      encoded = absl::OutOfRangeError(absl::StrCat("with its references it is larger than a frame of ", max_frame));
      break;
    }
    auto manifest = lane.manifests.find(codec);
    if (manifest == lane.manifests.end()) {
      manifest = lane.manifests.emplace(codec, batch.AddManifest(codec->manifest(), codec->version())).first;
    }
    batch.AddMessage({.to = place, .from = from, .manifest = manifest->second, .payload = scratch_});
    Pump(section, peer, which);
    return;
  }
  // What was written for it, such as references, does no harm.
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(ToAbsl(message->type()->name()), " cannot leave this node: ", encoded.message()));
  LoseLater(section, to, std::move(message), DeadLetterReason::kNotSerializable);
}

void RemotingCore::SealBatch(Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  if (lane.batch.empty()) {
    lane.batch.Clear();
    lane.ForgetTables();
    return;
  }
  const size_t messages = lane.batch.messages();
  std::string frame = lane.batch.Seal({.kind = FrameKind::kBatch,
                                       .lane = which,
                                       .origin_uid = node_->uid,
                                       .target_uid = peer.uid,
                                       .number = lane.next_number++});
  lane.frame_bytes += frame.size();
  lane.frame_messages += messages;
  lane.frames.push_back({std::move(frame), messages});
  lane.ForgetTables();
}

void RemotingCore::PushFrame(Section& section, Peer& peer, Lane which, std::string frame, size_t messages) {
  OutboundLane& lane = peer.lane(which);
  lane.frame_bytes += frame.size();
  lane.frame_messages += messages;
  lane.frames.push_back({std::move(frame), messages});
  Pump(section, peer, which);
}

void RemotingCore::SendControl(Section& section, Peer& peer, const wire::ControlMessage& message, Lane which) {
  OutboundLane& lane = peer.lane(which);
  if (which == Lane::kControl && lane.frames.size() >= node_->options.max_queued_control) {
    if (!IsQuarantined(peer)) Quarantine(section, peer, "too much waits for the control stream", false);
    return;
  }
  if (which != Lane::kControl) SealBatch(peer, which);  // It must not overtake.
  PushFrame(section, peer, which,
            EncodeControl({.lane = which, .origin_uid = node_->uid, .target_uid = peer.uid}, message), 0);
}

void RemotingCore::Pump(Section& section, Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  if (lane.stream == nullptr) {
    if (lane.has_work()) OpenLane(section, peer, which);
    return;
  }
  if (!lane.is_open || lane.is_writing || lane.is_closing) return;
  if (lane.frames.empty()) {
    if (lane.batch.empty()) return;
    SealBatch(peer, which);
  }
  const Instant now = node_->Now();
  lane.last_use = now;
  lane.is_writing = true;
  if (now >= lane.last_handshake + node_->options.inject_handshake) {
    // Ahead of the rest: a peer that has been restarted answers with another uid.
    lane.stream->Write(RequestFrame(peer, which));
    return;
  }
  OutboundLane::Frame frame = std::move(lane.frames.front());
  lane.frames.pop_front();
  lane.frame_bytes -= frame.bytes.size();
  lane.frame_messages -= frame.messages;
  lane.stream->Write(std::move(frame.bytes));
}

void RemotingCore::OpenLane(Section& /*section*/, Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  const Instant now = node_->Now();
  if (lane.stream != nullptr || now < lane.retry_at) return;
  lane.serial = next_serial_++;
  lane.is_open = lane.is_writing = lane.is_closing = false;
  lane.last_use = now;
  lane.stream = transport_->Connect(peer.authority, which,
                                    std::make_shared<LaneListener>(handle_, peer.authority, which, lane.serial));
}

void RemotingCore::CloseLane(Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  if (lane.stream == nullptr || lane.is_closing) return;
  lane.is_closing = true;
  lane.stream->Close();
}

void RemotingCore::DropQueues(Section& section, Peer& peer, std::string_view why) {
  size_t messages = 0;
  for (OutboundLane& lane : peer.lanes) {
    messages += lane.queued();
    lane.DropAll();
  }
  if (messages == 0) return;
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(messages, " messages to ", peer.parts.ToString(),
                        " that waited for a stream are lost: ", ToAbsl(why)));
}

void RemotingCore::OnOpened(Section& section, const PathAuthority& authority, Lane which, uint64_t serial) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr || peer->lane(which).serial != serial) return;
  OutboundLane& lane = peer->lane(which);
  lane.is_open = true;
  lane.backoff = absl::ZeroDuration();
  if (lane.is_closing) return;
  // The first thing on every stream.
  lane.is_writing = true;
  lane.last_use = node_->Now();
  lane.stream->Write(RequestFrame(*peer, which));
  static_cast<void>(section);
}

void RemotingCore::OnWritten(Section& section, const PathAuthority& authority, Lane which, uint64_t serial) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr || peer->lane(which).serial != serial) return;
  peer->lane(which).is_writing = false;
  Pump(section, *peer, which);
  if (is_flushing_) CheckFlush(section, node_->Now());
}

void RemotingCore::OnClosed(Section& section, const PathAuthority& authority, Lane which, uint64_t serial,
                            const absl::Status& why) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr || peer->lane(which).serial != serial) return;
  OutboundLane& lane = peer->lane(which);
  const bool was_open = lane.is_open;
  const bool is_ours = lane.is_closing;
  lane.stream = nullptr;
  lane.is_open = lane.is_writing = lane.is_closing = false;
  const RemoteOptions& options = node_->options;
  const Instant now = node_->Now();
  if (!is_ours) {
    lane.backoff = std::min(options.max_backoff, std::max(options.min_backoff, lane.backoff * 2));
    lane.retry_at = now + lane.backoff;
    LogLater(section, LogLevel::kInfo,
             absl::StrCat("the ", ToAbsl(NameOf(which)), " stream to ", peer->parts.ToString(),
                          was_open ? " is gone: " : " could not be opened: ", why.message()));
    if (was_open && peer->uid != 0 && !IsQuarantined(*peer)) {
      while (!peer->failures.empty() && peer->failures.front() + options.restart_window <= now) {
        peer->failures.pop_front();
      }
      peer->failures.push_back(now);
      if (peer->failures.size() > static_cast<size_t>(options.max_restarts)) {
        Quarantine(section, *peer,
                   absl::StrCat("its streams have failed ", peer->failures.size(), " times within ",
                                absl::FormatDuration(options.restart_window)),
                   true);
        return;
      }
    }
    if (which == Lane::kControl && peer->is_associated) {
      // Until it answers again, messages wait.
      peer->is_associated = false;
      authorities_->Disconnect(peer->authority, now).IgnoreError();
      DrainRegistry(section);
    }
  }
  if (lane.has_work() || (which == Lane::kControl && !peer->watches.empty())) WantPeer(section, *peer);
}

// From programs.

std::vector<PeerInfo> RemotingCore::Peers() const {
  std::vector<PeerInfo> infos;
  for (const auto& [authority, peer] : peers_) {
    PeerInfo info{.parts = peer->parts,
                  .uid = peer->uid,
                  .is_associated = peer->is_associated,
                  .is_quarantined = IsQuarantined(*peer),
                  .version = peer->version,
                  .pending_system = peer->outbox.pending(),
                  .watches = peer->watches.size(),
                  .heartbeats = peer->heartbeats,
                  .has_detector = peer->detector != nullptr};
    for (const OutboundLane& lane : peer->lanes) {
      info.queued += lane.queued();
      if (lane.is_open) ++info.open_streams;
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

absl::Status RemotingCore::Quarantine(Section& section, const PathAuthority& authority, uint64_t uid,
                                      std::string_view reason, bool is_harmless) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr || uid == 0 || peer->uid != uid) {
    absl::Status ignored = absl::FailedPreconditionError(
        absl::StrCat("no quarantine of ", authority.ToString(), " for uid ", uid, ": ",
                     peer == nullptr || peer->uid == 0 ? "no system was met there"
                                                       : absl::StrCat("the system there has uid ", peer->uid)));
    LogLater(section, LogLevel::kInfo, std::string(ignored.message()));
    return ignored;
  }
  if (is_harmless) {
    section.Later([node = node_, text = peer->parts.ToString(), uid, why = std::string(reason)] {
      node->system.events().Publish(HarmlessQuarantine{.node = text, .system_uid = uid, .reason = why});
    });
  }
  Quarantine(section, *peer, std::string(reason), !is_harmless);
  return absl::OkStatus();
}

absl::Status RemotingCore::EndQuarantine(Section& section, const PathAuthority& authority) {
  Peer* const peer = FindPeer(authority);
  absl::Status ended = authorities_->Override(authority, authority.ToString(), node_->Now());
  if (ended.ok() && peer != nullptr) {
    peer->quarantined_uid = 0;
    peer->is_associated = true;
    by_uid_.insert_or_assign(peer->uid, peer);
    TellWatches(section, *peer);
  }
  DrainRegistry(section);
  return ended;
}

void RemotingCore::Flush(Section& section, absl::AnyInvocable<void() &&> done) {
  flushed_.push_back(std::move(done));
  if (is_flushing_) return;
  is_flushing_ = true;
  flush_until_ = node_->Now() + node_->options.shutdown_flush;
  for (const auto& [authority, peer] : peers_) {
    if (!peer->is_associated) continue;
    for (const Lane lane : {Lane::kOrdinary, Lane::kLarge}) {
      if (peer->lane(lane).stream == nullptr && !peer->lane(lane).has_work()) continue;
      wire::ControlMessage message;
      message.mutable_flush()->set_lane(static_cast<uint32_t>(lane));
      peer->unflushed |= 1u << static_cast<uint32_t>(lane);
      SendControl(section, *peer, message, lane);
    }
  }
  CheckFlush(section, node_->Now());
}

void RemotingCore::CheckFlush(Section& section, Instant now) {
  const bool is_late = now >= flush_until_;
  if (!is_ending_) {
    for (const auto& [authority, peer] : peers_) {
      if (!is_late && peer->is_associated && (peer->unflushed != 0 || peer->outbox.pending() != 0)) return;
    }
    is_ending_ = true;
    for (const auto& [authority, peer] : peers_) {
      if (!peer->is_associated) continue;
      wire::ControlMessage message;
      message.mutable_goodbye();
      SendControl(section, *peer, message);
    }
  }
  for (const auto& [authority, peer] : peers_) {
    const OutboundLane& control = peer->lane(Lane::kControl);
    if (!is_late && peer->is_associated && (control.has_work() || control.is_writing)) return;
  }
  is_flushing_ = false;
  for (auto& done : flushed_) section.Later(std::move(done));
  flushed_.clear();
}

}  // namespace fraktor::inline v0
