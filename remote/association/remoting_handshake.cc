// How nodes meet, and how they part: handshakes, lives, quarantine.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Lives of a peer whose late frames are known as such.
constexpr size_t kMaxDead = 64;

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

void RemotingCore::GiveUpHandshake(Section& section, Peer& peer) {
  peer.is_shaking = false;
  CloseLane(peer, Lane::kControl);
  peer.lane(Lane::kControl).retry_at = node_->Now() + node_->options.max_backoff;
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(peer.parts.ToString(), " has not answered a handshake within ",
                        absl::FormatDuration(node_->options.handshake_timeout), "; it is tried again later"));
  for (auto& [to, message] : peer.identifies) {
    const ActorRef sender = message->sender();
    const uint64_t id = message->As<Identify>().id;
    if (sender.IsNoOne()) continue;
    section.Later([sender, id] { fraktor::Tell(sender, ActorIdentity{.id = id, .ref = ActorRef()}); });
  }
  peer.identifies.clear();
}

void RemotingCore::Refuse(Section& section, Peer& peer, wire::HandshakeRefusal::Reason reason, std::string_view text) {
  wire::ControlMessage message;
  wire::HandshakeRefusal& refusal = *message.mutable_handshake_refusal();
  FillNode(*refusal.mutable_from(), node_->parts, node_->uid);
  refusal.set_reason(reason);
  refusal.set_text(std::string(text.substr(0, node_->options.limits.max_reason_bytes)));
  refusal.set_min_version(node_->options.versions.min);
  refusal.set_max_version(node_->options.versions.max);
  SendControl(section, peer, message);
  section.Later([node = node_, who = peer.parts.ToString(), why = std::string(text)] {
    node->system.events().Publish(HandshakeRefused{.node = who, .reason = why});
  });
}

void RemotingCore::OnRequest(Section& section, const wire::HandshakeRequest& request) {
  const Instant now = node_->Now();
  if (now >= handshake_second_ + absl::Seconds(1)) {
    handshake_second_ = now;
    handshakes_ = 0;
  }
  // Those of peers that are known come all the time, and cost little.
  const bool is_known = PeerOfUid(request.from().uid()) != nullptr;
  if (!is_known && ++handshakes_ > node_->options.max_handshakes_per_second) return;
  const absl::StatusOr<ActorPathParts> from = PartsOf(request.from());
  const absl::StatusOr<ActorPathParts> to = PartsOf(request.to());
  const uint64_t uid = request.from().uid();
  if (!from.ok() || !to.ok() || *to != node_->parts) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat("a handshake was dropped: it is for ", request.to().system(), "@", request.to().host(), ":",
                          request.to().port(), ", and this is ", node_->parts.ToString(),
                          from.ok() ? absl::StrCat("; it came from ", from->ToString()) : std::string()));
    return;
  }
  if (uid == 0 || uid == node_->uid || *from == node_->parts) return;
  const absl::StatusOr<Peer*> found = PeerOf(*from);
  if (!found.ok()) {
    LogLater(section, LogLevel::kWarning, absl::StrCat("a handshake was dropped: ", found.status().message()));
    return;
  }
  Peer& peer = **found;
  if (IsDead(peer, uid)) return;
  if (peer.quarantined_uid == uid) {
    SendNotice(section, peer);
    return;
  }
  const absl::StatusOr<uint32_t> version =
      ChooseVersion(node_->options.versions, {.min = request.min_version(), .max = request.max_version()});
  if (!version.ok()) {
    Refuse(section, peer, wire::HandshakeRefusal::NO_COMMON_VERSION, ToStd(version.status().message()));
    return;
  }
  if (peer.uid == 0 || peer.uid == uid) {
    Complete(section, peer, uid, *version, false);
  } else if (now >= peer.lane(Lane::kControl).last_handshake + node_->options.min_backoff) {
    // Another life than the one that is known. Frames can be late, so it is asked, and its answer counts.
    PushFrame(section, peer, Lane::kControl, RequestFrame(peer, Lane::kControl), 0);
  }
  wire::ControlMessage answer;
  wire::HandshakeResponse& response = *answer.mutable_handshake_response();
  FillNode(*response.mutable_from(), node_->parts, node_->uid);
  response.set_version(*version);
  response.set_nonce(request.nonce());
  PushFrame(section, peer, Lane::kControl,
            EncodeControl({.lane = Lane::kControl, .origin_uid = node_->uid, .target_uid = uid}, answer), 0);
}

void RemotingCore::OnResponse(Section& section, const wire::HandshakeResponse& response) {
  const absl::StatusOr<ActorPathParts> from = PartsOf(response.from());
  const uint64_t uid = response.from().uid();
  if (!from.ok() || uid == 0) return;
  Peer* const peer = FindPeer(*from->authority());
  if (peer == nullptr || peer->parts != *from || response.nonce() == 0) return;
  const bool is_asked = std::find(peer->nonces.begin(), peer->nonces.end(), response.nonce()) != peer->nonces.end();
  const VersionRange& ours = node_->options.versions;
  const bool is_version = response.version() >= ours.min && response.version() <= ours.max;
  if (!is_asked || !is_version || IsDead(*peer, uid) || peer->quarantined_uid == uid) return;
  Complete(section, *peer, uid, response.version(), true);
}

void RemotingCore::OnRefusal(Section& section, const wire::HandshakeRefusal& refusal) {
  const absl::StatusOr<ActorPathParts> from = PartsOf(refusal.from());
  if (!from.ok()) return;
  Peer* const peer = FindPeer(*from->authority());
  if (peer == nullptr || peer->parts != *from || peer->is_associated) return;
  GiveUpHandshake(section, *peer);
  section.Later([node = node_, who = peer->parts.ToString(), why = refusal.text()] {
    node->Log(LogLevel::kError, absl::StrCat(who, " refuses this node: ", why));
    node->system.events().Publish(HandshakeRefused{.node = who, .reason = why});
  });
}

void RemotingCore::Complete(Section& section, Peer& peer, uint64_t uid, uint32_t version, bool is_verified) {
  const Instant now = node_->Now();
  peer.version = version;
  peer.is_shaking = false;
  peer.unanswered_since = Instant::InfiniteFuture();
  if (peer.uid != uid) peer.is_verified = false;
  peer.is_verified = peer.is_verified || is_verified;
  if (peer.is_associated && peer.uid == uid) return;
  peer.next_request = now + node_->options.handshake_retry;
  if (peer.uid != 0 && peer.uid != uid) EndLife(section, peer, "another start of the system answers at its address");
  absl::StatusOr<std::deque<DeferredMessage>> waiting =
      authorities_->Connect(peer.authority, peer.authority.ToString(), uid, now);
  if (!waiting.ok()) {
    LogLater(section, LogLevel::kWarning, std::string(waiting.status().message()));
    DrainRegistry(section);
    return;
  }
  peer.uid = uid;
  peer.quarantined_uid = 0;
  peer.is_associated = true;
  by_uid_.insert_or_assign(uid, &peer);
  DrainRegistry(section);
  TellWatches(section, peer);
  for (DeferredMessage& message : *waiting) {
    const ActorRef to = message.to();
    Enqueue(section, peer, to, message.Take());
  }
  for (auto& [to, message] : std::exchange(peer.identifies, {})) Enqueue(section, peer, to, std::move(message));
  for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) Pump(section, peer, lane);
}

void RemotingCore::EndLife(Section& section, Peer& peer, std::string_view reason) {
  if (peer.uid == 0) return;
  DeliverHeld(section, peer, true);
  const uint64_t uid = std::exchange(peer.uid, 0);
  if (peer.dead.size() >= kMaxDead) peer.dead.erase(peer.dead.begin());
  peer.dead.push_back(uid);
  by_uid_.erase(uid);
  peer.is_associated = false;
  DropQueues(section, peer, reason);
  peer.outbox.Reset();
  peer.inbox.Reset();
  peer.received = {};
  peer.told_paths.clear();
  peer.detector = nullptr;
  peer.first_heartbeat = Instant::InfiniteFuture();
  EndWatches(section, peer, uid, false);
  ForgetWatchers(section, peer);
  for (auto& [ref, watch] : peer.watches) watch.told = 0;
  TerminatedLater(section, peer, uid, std::string(reason));
}

void RemotingCore::Quarantine(Section& section, Peer& peer, std::string reason, bool tells_peer) {
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
  peer.quarantined_at = now;
  by_uid_.erase(uid);
  DropQueues(section, peer, "it is in quarantine");
  peer.outbox.Clear();
  peer.detector = nullptr;
  peer.first_heartbeat = Instant::InfiniteFuture();
  peer.failures.clear();
  EndWatches(section, peer, uid, true);
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
  if (now < peer.last_notice + absl::Seconds(1)) return;
  peer.last_notice = now;
  peer.quarantined_at = std::max(peer.quarantined_at, now);  // Its streams stay for a moment.
  wire::ControlMessage message;
  message.mutable_quarantine_notice()->set_quarantined_uid(peer.quarantined_uid);
  if (const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority)) {
    message.mutable_quarantine_notice()->set_reason(info->reason.substr(0, node_->options.limits.max_reason_bytes));
  }
  PushFrame(
      section, peer, Lane::kControl,
      EncodeControl({.lane = Lane::kControl, .origin_uid = node_->uid, .target_uid = peer.quarantined_uid}, message),
      0);
}

}  // namespace fraktor::inline v0
