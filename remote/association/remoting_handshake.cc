// How nodes meet, and how they part: handshakes, lives, quarantine.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Lives of a peer whose late frames are known as such.
constexpr size_t kMaxDead = 64;
// So soon a trouble with a peer is a warning again: the same one, and another one.
constexpr absl::Duration kSameTrouble = absl::Minutes(1);
constexpr absl::Duration kOtherTrouble = absl::Seconds(1);

// Whether who has shown these names may say that it is at `host`.
bool MaySpeakFor(const StreamOrigin& origin, std::string_view host) {
  if (origin.hosts.empty()) return true;
  return std::any_of(origin.hosts.begin(), origin.hosts.end(), [&](std::string_view name) {
    if (name == host) return true;
    if (name.substr(0, 2) != "*.") return false;
    const size_t dot = host.find('.');
    return dot != std::string_view::npos && dot > 0 && host.substr(dot) == name.substr(1);
  });
}

}  // namespace

void RemotingCore::FillNode(wire::Node& node, const ActorPathParts& parts, uint64_t uid) const {
  const auto text = [](std::string_view view) { return std::string(view); };
  node.set_protocol(text(parts.authority()->protocol()));
  node.set_system(text(parts.system()));
  node.set_host(text(parts.authority()->host()));
  node.set_port(parts.authority()->port());
  node.set_uid(uid);
}

absl::StatusOr<ActorPathParts> RemotingCore::PartsOf(const wire::Node& node) const {
  FRAKTOR_ASSIGN_OR_RETURN(PathAuthority authority,
                           PathAuthority::Create(node.protocol(), node.host(), static_cast<uint16_t>(node.port())));
  return ActorPathParts::Remote(node.system(), std::move(authority));
}

std::string RemotingCore::RequestFrame(Peer& peer, Lane which) {
  wire::ControlMessage message;
  wire::HandshakeRequest& request = *message.mutable_handshake_request();
  FillNode(*request.mutable_from(), node_->parts, node_->uid);
  FillNode(*request.mutable_to(), peer.parts, 0);
  request.set_min_version(node_->options.versions.min);
  request.set_max_version(node_->options.versions.max);
  request.set_features(node_->options.features);
  // An answer to any of the last few counts.
  const uint64_t nonce = random_.Next() | 1;
  peer.nonces[peer.next_nonce++ % peer.nonces.size()] = nonce;
  request.set_nonce(nonce);
  peer.lane(which).last_handshake = node_->Now();
  return EncodeControl({.lane = which, .origin_uid = node_->uid, .target_uid = 0}, message);
}

void RemotingCore::WantPeer(Section& section, Peer& peer) {
  const Instant now = node_->Now();
  if (!peer.is_associated && !peer.is_shaking) {
    peer.is_shaking = true;
    peer.shaking_since = now;
    peer.next_request = now + node_->options.handshake_retry;
    peer.unanswered_since = std::min(peer.unanswered_since, now);
  }
  OpenLane(section, peer, Lane::kControl);
  Pump(section, peer, Lane::kControl);
}

void RemotingCore::OnTrouble(Section& section, Peer& peer, const std::string& why, std::string_view before) {
  const Instant now = node_->Now();
  Trouble& trouble = peer.trouble;
  const bool is_new = now >= trouble.warned_at + (why == trouble.warned ? kSameTrouble : kOtherTrouble);
  trouble.why = why;
  if (is_new) {
    trouble.warned = why;
    trouble.warned_at = now;
  }
  LogLater(section, is_new ? LogLevel::kWarning : LogLevel::kInfo, absl::StrCat(ToAbsl(before), why));
}

void RemotingCore::OnSilence(Section& section, Peer& peer) {
  OnTrouble(
      section, peer,
      absl::StrCat(peer.authority.ToString(), " takes the stream and does not answer the handshake: is the system ",
                   "there called \"", ToAbsl(peer.parts.system()), "\", does it call itself \"",
                   ToAbsl(peer.authority.host()), "\", and can it reach this node at ",
                   node_->parts.authority()->ToString(), "? Its log says what it has dropped"));
}

void RemotingCore::GiveUpHandshake(Section& section, Peer& peer) {
  peer.is_shaking = false;
  CloseLane(peer, Lane::kControl);
  peer.lane(Lane::kControl).retry_at = node_->Now() + node_->options.max_backoff;
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(peer.parts.ToString(), " has not answered a handshake within ",
                        absl::FormatDuration(node_->options.handshake_timeout), "; it is tried again later"));
  for (const WaitingMessage& waiting : std::exchange(peer.identifies, {})) {
    const ActorRef sender = waiting.message->sender();
    const uint64_t id = waiting.message->As<Identify>().id;
    if (sender.IsNoOne()) continue;
    section.Later([sender, id] { fraktor::Tell(sender, ActorIdentity{.id = id, .ref = ActorRef()}); });
  }
}

// What is pending goes out, if there is a way.
void RemotingCore::WantPending(Section& section, Peer& peer) {
  peer.pending_since = node_->Now();
  Pump(section, peer, Lane::kControl);
}

void RemotingCore::Refuse(Section& section, Peer& peer, uint64_t nonce, std::string_view text) {
  wire::ControlMessage message;
  wire::HandshakeRefusal& refusal = *message.mutable_handshake_refusal();
  FillNode(*refusal.mutable_from(), node_->parts, node_->uid);
  refusal.set_reason(wire::HandshakeRefusal::NO_COMMON_VERSION);
  refusal.set_text(std::string(text.substr(0, node_->options.limits.max_reason_bytes)));
  refusal.set_min_version(node_->options.versions.min);
  refusal.set_max_version(node_->options.versions.max);
  refusal.set_nonce(nonce);
  peer.pending.refusal = EncodeControl({.lane = Lane::kControl, .origin_uid = node_->uid}, message);
  WantPending(section, peer);
  section.Later([node = node_, who = peer.parts.ToString(), why = std::string(text)] {
    node->system.events().PublishToAll(HandshakeRefused{.node = who, .reason = why});
  });
}

// From now on the stream is of this life of the peer, and of nobody else.
bool RemotingCore::Bind(Section& section, InboundStream& stream, Peer& peer, uint64_t uid) {
  if (stream.peer == nullptr) {
    stream.peer = &peer;
    stream.uid = uid;
  }
  if (stream.peer == &peer && stream.uid == uid) return true;
  LogLater(section, LogLevel::kWarning,
           absl::StrCat("a stream of ", stream.peer->parts.ToString(), " is cut: a handshake of ",
                        peer.parts.ToString(), " came on it"));
  return false;
}

bool RemotingCore::OnRequest(Section& section, InboundStream& stream, const FrameHeader& header,
                             const wire::HandshakeRequest& request) {
  const Instant now = node_->Now();
  const absl::StatusOr<ActorPathParts> from = PartsOf(request.from());
  const absl::StatusOr<ActorPathParts> to = PartsOf(request.to());
  const uint64_t uid = request.from().uid();
  // Those of peers that are known come all the time, and cost little.
  const Peer* const known = from.ok() ? FindPeer(*from->authority()) : nullptr;
  if (known == nullptr || known->uid != uid) {
    if (now >= handshake_second_ + absl::Seconds(1)) {
      handshake_second_ = now;
      handshakes_ = 0;
    }
    if (++handshakes_ > node_->options.max_handshakes_per_second) return true;
  }
  const auto cut = [&](std::string_view why) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat("a stream from ", stream.origin.endpoint, " is cut: ", ToAbsl(why)));
    return false;
  };
  if (!from.ok() || !to.ok() || *to != node_->parts) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat("a handshake was dropped: it is for ", request.to().system(), "@", request.to().host(), ":",
                          request.to().port(), ", and this is ", node_->parts.ToString(),
                          from.ok() ? absl::StrCat("; it came from ", from->ToString()) : std::string()));
    return true;
  }
  if (uid == 0 || uid != header.origin_uid) return cut("a handshake without the uid of who sends it");
  if (*from == node_->parts) return true;
  if (uid == node_->uid) {
    return cut(absl::StrCat(from->ToString(), " has the same uid as this node; give each start of a node its own, or ",
                            "leave RemoteOptions.system_uid 0"));
  }
  if (!MaySpeakFor(stream.origin, from->authority()->host())) {
    return cut(absl::StrCat("a handshake of ", from->ToString(), ", and its certificate is for ",
                            absl::StrJoin(stream.origin.hosts, ", ")));
  }
  const absl::StatusOr<Peer*> found = PeerOf(*from);
  if (!found.ok()) {
    LogLater(section, LogLevel::kWarning, absl::StrCat("a handshake was dropped: ", found.status().message()));
    return true;
  }
  Peer& peer = **found;
  if (IsDead(peer, uid)) return true;
  if (!Bind(section, stream, peer, uid)) return false;
  if (peer.quarantined_uid == uid) {
    SendNotice(section, peer);
    return true;
  }
  const absl::StatusOr<uint32_t> version =
      ChooseVersion(node_->options.versions, {.min = request.min_version(), .max = request.max_version()});
  if (!version.ok()) {
    Refuse(section, peer, request.nonce(), ToStd(version.status().message()));
    return true;
  }
  peer.pending.response_to = uid;
  peer.pending.response_nonce = request.nonce();
  peer.pending.response_version = *version;
  if (peer.uid == 0 || peer.uid == uid) {
    Complete(section, peer, uid, {.version = *version, .features = request.features()}, false);
  } else if (now >= peer.lane(Lane::kControl).last_handshake + node_->options.min_backoff) {
    // Another life than the one that is known. Frames can be late, so it is asked, and its answer counts.
    peer.pending.request = true;
  }
  WantPending(section, peer);
  return true;
}

bool RemotingCore::OnResponse(Section& section, InboundStream& stream, const FrameHeader& header,
                              const wire::HandshakeResponse& response) {
  const absl::StatusOr<ActorPathParts> from = PartsOf(response.from());
  const uint64_t uid = response.from().uid();
  if (!from.ok() || uid == 0 || uid != header.origin_uid) return true;
  Peer* const peer = FindPeer(*from->authority());
  if (peer == nullptr || peer->parts != *from || response.nonce() == 0) return true;
  const bool is_asked = std::find(peer->nonces.begin(), peer->nonces.end(), response.nonce()) != peer->nonces.end();
  const VersionRange& ours = node_->options.versions;
  const bool is_version = response.version() >= ours.min && response.version() <= ours.max;
  if (!is_asked || !is_version || IsDead(*peer, uid) || peer->quarantined_uid == uid) return true;
  // Who knows the number that was sent there is there: its request may have been lost.
  if (!MaySpeakFor(stream.origin, from->authority()->host()) || !Bind(section, stream, *peer, uid)) return false;
  Complete(section, *peer, uid, {.version = response.version(), .features = response.features()}, true);
  return true;
}

void RemotingCore::OnRefusal(Section& section, const InboundStream& stream, const wire::HandshakeRefusal& refusal) {
  const absl::StatusOr<ActorPathParts> from = PartsOf(refusal.from());
  if (!from.ok() || !MaySpeakFor(stream.origin, from->authority()->host())) return;
  Peer* const peer = FindPeer(*from->authority());
  if (peer == nullptr || peer->parts != *from || peer->is_associated) return;
  // Version 2 and older do not say what they answer.
  const bool is_asked = refusal.nonce() == 0 ||
                        std::find(peer->nonces.begin(), peer->nonces.end(), refusal.nonce()) != peer->nonces.end();
  if (!is_asked || !peer->is_shaking) return;
  GiveUpHandshake(section, *peer);
  peer->trouble.why = absl::StrCat("it refuses this node: ", refusal.text());
  section.Later([node = node_, who = peer->parts.ToString(), why = refusal.text()] {
    node->Log(LogLevel::kError, absl::StrCat(who, " refuses this node: ", why));
    node->system.events().PublishToAll(HandshakeRefused{.node = who, .reason = why});
  });
}

void RemotingCore::Complete(Section& section, Peer& peer, uint64_t uid, const Agreement& agreed, bool is_verified) {
  const Instant now = node_->Now();
  peer.version = agreed.version;
  peer.features = node_->options.features & agreed.features;
  peer.is_shaking = false;
  peer.unanswered_since = Instant::InfiniteFuture();
  if (peer.uid != uid) peer.is_verified = false;
  if (!peer.is_verified) peer.unverified_since = peer.is_associated && peer.uid == uid ? peer.unverified_since : now;
  peer.is_verified = peer.is_verified || is_verified;
  if (peer.is_associated && peer.uid == uid) return;
  peer.next_request = now + node_->options.handshake_retry;
  if (peer.uid != 0 && peer.uid != uid) {
    EndLife(section, peer, "another start of the system answers at its address", true);
  }
  absl::StatusOr<std::deque<DeferredMessage>> waiting =
      authorities_->Connect(peer.authority, peer.authority.ToString(), uid, now);
  if (!waiting.ok()) {
    LogLater(section, LogLevel::kWarning, std::string(waiting.status().message()));
    DrainRegistry(section);
    return;
  }
  if (peer.numbered_uid != uid) {
    // The numbers of the one before mean nothing to it.
    peer.numbered_uid = uid;
    peer.outbox.Restart();
    peer.inbox.Reset();
    for (InboundLane& lane : peer.inbound) lane.received = lane.handled = 0;
    ++peer.session;
  }
  peer.uid = uid;
  peer.quarantined_uid = 0;
  peer.is_harmless = false;
  peer.is_associated = true;
  peer.trouble.why = {};
  DrainRegistry(section);
  // What has waited is encoded without the lock, in the order in which it was sent; what comes meanwhile waits behind it.
  for (DeferredMessage& message : *waiting) {
    const uint64_t order = message.order();
    const ActorRef to = message.to();
    peer.backlog.push_back({order, to, message.Take()});
  }
  for (WaitingMessage& identify : std::exchange(peer.identifies, {})) peer.backlog.push_back(std::move(identify));
  std::stable_sort(peer.backlog.begin(), peer.backlog.end(),
                   [](const WaitingMessage& a, const WaitingMessage& b) { return a.order < b.order; });
  if (!peer.backlog.empty() && !peer.is_draining) {
    peer.is_draining = true;
    section.Later([handle = &handle_, authority = peer.authority] { DrainBacklog(*handle, authority); });
  }
  TellWatches(section, peer);
  for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) Pump(section, peer, lane);
}

void RemotingCore::EndLife(Section& section, Peer& peer, std::string_view reason, bool is_over) {
  if (peer.uid == 0) return;
  DeliverHeld(section, peer, true);
  const uint64_t uid = std::exchange(peer.uid, 0);
  if (is_over) {
    if (peer.dead.size() >= kMaxDead) peer.dead.erase(peer.dead.begin());
    peer.dead.push_back(uid);
  }
  peer.is_associated = false;
  peer.is_verified = false;
  DropQueues(section, peer, reason);
  for (InboundLane& lane : peer.inbound) lane.waiting.clear();
  if (is_over) peer.numbered_uid = 0;
  ++peer.session;
  peer.outbox.Clear();
  peer.told_paths.clear();
  ForgetDetector(peer);
  // A path may have somebody in the next life as well: he is not who was watched.
  EndWatches(section, peer, uid, is_over ? ByPath::kToldOf : ByPath::kNone);
  ForgetWatchers(section, peer);
  for (auto& [ref, watch] : peer.watches) watch.told = 0;
  TerminatedLater(section, peer, uid, std::string(reason));
}

void RemotingCore::Quarantine(Section& section, Peer& peer, std::string reason, bool tells_peer, bool is_harmless) {
  const Instant now = node_->Now();
  const uint64_t uid = peer.uid;
  const absl::Status quarantined = authorities_->Quarantine(peer.authority, uid, reason, now);
  if (!quarantined.ok()) {
    LogLater(section, LogLevel::kInfo, std::string(quarantined.message()));
    DrainRegistry(section);
    return;
  }
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(peer.parts.ToString(), " (uid ", uid, ") is in quarantine: ", reason));
  DeliverHeld(section, peer, true);
  peer.is_associated = false;
  peer.is_shaking = false;
  peer.quarantined_uid = uid;
  peer.is_harmless = is_harmless;
  peer.quarantined_at = now;
  DropQueues(section, peer, "it is in quarantine");
  for (InboundLane& lane : peer.inbound) lane.waiting.clear();
  peer.pending = {};
  peer.outbox.Clear();
  ForgetDetector(peer);
  peer.failures.clear();
  EndWatches(section, peer, uid, ByPath::kAll);
  ForgetWatchers(section, peer);
  DrainRegistry(section);
  TerminatedLater(section, peer, uid, std::move(reason));
  if (tells_peer) {
    peer.last_notice = Instant::InfinitePast();
    SendNotice(section, peer);
  }
}

void RemotingCore::SendNotice(Section& section, Peer& peer) {
  const Instant now = node_->Now();
  // One that goes by its own will is left in peace.
  if (peer.is_harmless || now < peer.last_notice + absl::Seconds(1)) return;
  peer.last_notice = now;
  peer.quarantined_at = std::max(peer.quarantined_at, now);  // Its streams stay for a moment.
  peer.pending.notice = true;
  WantPending(section, peer);
}

}  // namespace fraktor::inline v0
