// Who watches whom across nodes, and the messages of the system, which arrive exactly once.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/cell/internal/tree_signals.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/wire/protocol_version.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::ActorEnded;
using actor_internal::StopActor;
using actor_internal::UnwatchActor;
using actor_internal::WatchActor;

namespace {

constexpr size_t kSystemMessagesPerFrame = 64;
// What else is in a frame of system messages.
constexpr size_t kSystemFrameBytes = 256;
// What is kept for an actor that is watched, besides paths; and by how many paths one watcher may know it.
constexpr size_t kWatchBytes = 128;
constexpr size_t kMaxWatchPaths = 16;

size_t BytesOf(const InboundWatch& watch) {
  size_t bytes = kWatchBytes;
  for (const std::string& path : watch.paths) bytes += path.size();
  return bytes;
}

}  // namespace

void RemotingCore::FillOurRef(wire::Ref& ref, ActorRef ours) const {
  ref.set_home(wire::Ref::SENDER);
  ref.set_uid(node_->WireUidOf(ours));
}

bool RemotingCore::FillTheirRef(const Peer& peer, wire::Ref& ref, ActorRef theirs) const {
  const NodeLink& link = NodeLink::Of(theirs);
  ref.set_home(wire::Ref::RECEIVER);
  if (link.life() != 0) {
    ref.set_uid(link.UidOf(theirs));
    return link.life() == peer.uid;
  }
  const std::string path = PathTextOf(link, theirs);
  if (path.empty()) return false;
  if (path.front() == '#') {
    ref.set_uid(std::strtoull(path.c_str() + 1, nullptr, 10));
  } else {
    ref.set_path(path);
  }
  return true;
}

// What a peer names as ours. A uid means one actor, whoever has its path by now.
ActorRef RemotingCore::OurRef(const wire::Ref& ref) const {
  return ref.uid() != 0 ? node_->FindUid(ref.uid()) : node_->FindPath(ref.path());
}

// By path, only those that this node has asked about.
ActorRef RemotingCore::TheirRef(Peer& peer, const wire::Ref& ref) {
  if (ref.uid() != 0) {
    const ActorRef found = RefOfActor(peer.parts, peer.uid, ref.uid(), {});
    if (!found.IsNoOne()) return found;
  }
  if (peer.by_path == nullptr || ref.path().empty()) return {};
  const auto found = peer.by_path->path_index.find(ref.path());
  if (found == peer.by_path->path_index.end()) return {};
  return peer.by_path->RefOfPath(found->second, peer.by_path->paths[found->second].turn);
}

void RemotingCore::ForgetDetector(Peer& peer) {
  peer.detector = nullptr;
  peer.first_heartbeat = Instant::InfiniteFuture();
}

// Nobody here watches it any more.
void RemotingCore::EraseWatch(Peer& peer, ActorRef watchee) {
  if (peer.watches.erase(watchee) == 0) return;
  --NodeLink::Of(watchee).watches;
  // Nobody asks how the node is any more.
  if (peer.watches.empty()) ForgetDetector(peer);
}

bool RemotingCore::AddSystem(Section& section, Peer& peer, wire::SystemMessage message) {
  if (!peer.outbox.Add(std::move(message), node_->Now())) {
    Quarantine(section, peer,
               absl::StrCat("more than ", node_->options.system.max_pending, " system messages wait for an answer"),
               true);
    return false;
  }
  SendSystemDue(section, peer);
  return true;
}

void RemotingCore::SendSystemDue(Section& section, Peer& peer) {
  if (!peer.is_associated) return;
  const WireLimits& wire = node_->options.limits;
  const SystemFrameLimits limits{.messages = std::min(kSystemMessagesPerFrame, wire.max_system_messages),
                                 .bytes = wire.max_control_frame_bytes - kSystemFrameBytes};
  wire::ControlMessage message;
  while (peer.outbox.TakeDue(node_->Now(), limits, *message.mutable_system_messages())) {
    SendControl(section, peer, message);
    if (!peer.is_associated) return;
  }
}

void RemotingCore::SendWatch(Section& section, Peer& peer, ActorRef watchee, ActorRef watcher) {
  wire::SystemMessage message;
  FillOurRef(*message.mutable_watch()->mutable_watcher(), watcher);
  if (FillTheirRef(peer, *message.mutable_watch()->mutable_watchee(), watchee)) {
    AddSystem(section, peer, std::move(message));
  }
}

EnvelopePtr RemotingCore::SendSystem(Section& section, NodeLink& link, ActorRef to, EnvelopePtr message) {
  Peer* const peer = PeerOfLink(link);
  const bool is_gone =
      peer == nullptr || (link.life() == 0 && link.FindPath(to) == nullptr) || IsQuarantined(*peer) ||
      (link.life() != 0 && (IsDead(*peer, link.life()) || (peer->uid != 0 && peer->uid != link.life())));
  if (const auto* const watch = message->TryAs<WatchActor>()) {
    if (is_gone || is_ending_) return message;
    OutboundWatch& watched = peer->watches[to];
    if (watched.watchers.empty()) {
      watched.order = peer->next_watch++;
      ++link.watches;
    }
    if (!watched.watchers.Insert(watch->watcher)) return nullptr;
    if (peer->is_associated) {
      watched.told = peer->uid;
      SendWatch(section, *peer, to, watch->watcher);
    } else {
      WantPeer(section, *peer);
    }
    return nullptr;
  }
  if (const auto* const unwatch = message->TryAs<UnwatchActor>()) {
    if (peer == nullptr) return nullptr;
    const auto found = peer->watches.find(to);
    if (found == peer->watches.end()) return nullptr;
    auto& watchers = found->second.watchers;
    watchers.Erase(unwatch->watcher.Plain());
    const bool was_told = found->second.told != 0 && found->second.told == peer->uid;
    if (watchers.empty()) EraseWatch(*peer, to);
    if (was_told && !is_gone) {
      wire::SystemMessage gone;
      FillOurRef(*gone.mutable_unwatch()->mutable_watcher(), unwatch->watcher);
      if (FillTheirRef(*peer, *gone.mutable_unwatch()->mutable_watchee(), to))
        AddSystem(section, *peer, std::move(gone));
    }
    return nullptr;
  }
  if (const auto* const ended = message->TryAs<ActorEnded>()) {
    if (!is_gone) SendDeathNotice(section, *peer, ended->actor, to, ended->existence_confirmed);
    return nullptr;
  }
  if (message->Is<StopActor>() && !is_gone) {
    wire::SystemMessage stop;
    if (FillTheirRef(*peer, *stop.mutable_stop()->mutable_actor(), to)) AddSystem(section, *peer, std::move(stop));
    if (!peer->is_associated) WantPeer(section, *peer);
    return nullptr;
  }
  return message;
}

void RemotingCore::SendDeathNotice(Section& section, Peer& peer, ActorRef watchee, ActorRef watcher, bool existed) {
  const auto found = peer.watched_here.find({watchee.Plain(), watcher});
  if (found == peer.watched_here.end()) return;  // It has stopped watching meanwhile.
  const InboundWatch watch = std::move(found->second);
  peer.watch_bytes -= BytesOf(watch);
  peer.watched_here.erase(found);
  wire::SystemMessage message;
  wire::DeathNotice& notice = *message.mutable_death_notice();
  if (!FillTheirRef(peer, *notice.mutable_watcher(), watcher)) return;
  notice.set_existence_confirmed(existed);
  if (peer.version >= kOrderedDeathNotices) {
    const auto sent = [&](Lane lane) {
      const OutboundLane& out = peer.lane(lane);
      return out.batch.empty() ? out.next_number - 1 : out.next_number;
    };
    notice.set_after_ordinary(sent(Lane::kOrdinary));
    notice.set_after_large(sent(Lane::kLarge));
  }
  // By each name by which it is watched.
  if (watch.by_uid) {
    FillOurRef(*notice.mutable_watchee(), watchee);
    if (!AddSystem(section, peer, message)) return;
  }
  for (const std::string& path : watch.paths) {
    notice.mutable_watchee()->Clear();
    notice.mutable_watchee()->set_home(wire::Ref::SENDER);
    notice.mutable_watchee()->set_path(path);
    if (!AddSystem(section, peer, message)) return;
  }
}

void RemotingCore::TellWatches(Section& section, Peer& peer) {
  std::vector<std::pair<uint64_t, ActorRef>> untold;
  for (const auto& [ref, watch] : peer.watches) {
    if (watch.told != peer.uid) untold.emplace_back(watch.order, ref);
  }
  std::sort(untold.begin(), untold.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, ref] : untold) {
    if (!peer.is_associated) return;  // One of them was too many.
    const auto found = peer.watches.find(ref);
    if (found == peer.watches.end()) continue;
    const uint64_t life = NodeLink::Of(ref).life();
    if (life != 0 && life != peer.uid) {
      EndWatches(section, peer, life, ByPath::kNone);
      continue;
    }
    found->second.told = peer.uid;
    const auto& watchers = found->second.watchers;
    for (const ActorRef watcher : std::vector<ActorRef>(watchers.begin(), watchers.end())) {
      SendWatch(section, peer, ref, watcher);
    }
  }
}

// The life is over: whoever watches somebody there hears of it.
void RemotingCore::EndWatches(Section& section, Peer& peer, uint64_t life, ByPath by_path) {
  std::vector<std::pair<uint64_t, ActorRef>> over;
  for (const auto& [ref, watch] : peer.watches) {
    const uint64_t its_life = NodeLink::Of(ref).life();
    const bool is_over_by_path = by_path == ByPath::kAll || (by_path == ByPath::kToldOf && watch.told == life);
    if (its_life == life || (its_life == 0 && is_over_by_path)) over.emplace_back(watch.order, ref);
  }
  std::sort(over.begin(), over.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, ref] : over) {
    for (const ActorRef watcher : peer.watches[ref].watchers) {
      section.Later(
          [watcher, ended = ref] { TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), ended, false, true)); });
    }
    EraseWatch(peer, ref);
  }
}

// Nobody there watches anybody here any more.
void RemotingCore::ForgetWatchers(Section& section, Peer& peer) {
  std::vector<std::pair<uint64_t, std::pair<ActorRef, ActorRef>>> all;
  for (const auto& [pair, watch] : peer.watched_here) all.emplace_back(watch.order, pair);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, pair] : all) {
    section.Later([pair = pair] { TellSystem(pair.first, MakeEnvelope<UnwatchActor>(ActorRef(), pair.second)); });
  }
  peer.watched_here.clear();
  peer.watch_bytes = 0;
}

void RemotingCore::OnSystemMessages(Section& section, Peer& peer, const wire::SystemMessages& messages) {
  const uint64_t session = peer.session;
  for (const wire::SystemMessage* const message : peer.inbox.Take(messages)) {
    OnSystemMessage(section, peer, *message);
    // Handling one may have been the end of it.
    if (peer.session != session || IsQuarantined(peer)) return;
  }
  if (!peer.is_associated) return;
  wire::ControlMessage answer;
  answer.mutable_system_ack()->set_number(peer.inbox.delivered());
  SendControl(section, peer, answer);
}

void RemotingCore::OnSystemMessage(Section& section, Peer& peer, const wire::SystemMessage& message) {
  const auto is_refused = [&](std::string_view what) {
    if (!node_->options.untrusted) return false;
    LogLater(section, LogLevel::kWarning,
             absl::StrCat(ToAbsl(what), " from ", peer.parts.ToString(), " was dropped: peers are not trusted here"));
    return true;
  };
  switch (message.body_case()) {
    case wire::SystemMessage::kWatch:
      if (!is_refused("a watch")) OnWatch(section, peer, message.watch());
      break;
    case wire::SystemMessage::kUnwatch: {
      const ActorRef watchee = OurRef(message.unwatch().watchee());
      const ActorRef watcher = TheirRef(peer, message.unwatch().watcher());
      if (watchee.IsNoOne() || watcher.IsNoOne()) break;
      const auto found = peer.watched_here.find({watchee.Plain(), watcher});
      if (found == peer.watched_here.end()) break;
      InboundWatch& watch = found->second;
      peer.watch_bytes -= BytesOf(watch);
      if (message.unwatch().watchee().uid() != 0) {
        watch.by_uid = false;
      } else {
        std::erase(watch.paths, message.unwatch().watchee().path());
      }
      if (watch.by_uid || !watch.paths.empty()) {
        peer.watch_bytes += BytesOf(watch);
        break;
      }
      peer.watched_here.erase(found);
      section.Later([watchee, watcher] { TellSystem(watchee, MakeEnvelope<UnwatchActor>(ActorRef(), watcher)); });
      break;
    }
    case wire::SystemMessage::kDeathNotice:
      OnDeathNotice(section, peer, message.death_notice());
      break;
    case wire::SystemMessage::kStop: {
      const ActorRef actor = OurRef(message.stop().actor());
      if (is_refused("a stop") || actor.IsNoOne()) break;
      section.Later([actor] { TellSystem(actor, MakeEnvelope<StopActor>(ActorRef())); });
      break;
    }
    case wire::SystemMessage::BODY_NOT_SET:
      LogLater(section, LogLevel::kInfo,
               absl::StrCat("a system message of a later version came from ", peer.parts.ToString()));
      break;
  }
}

void RemotingCore::OnWatch(Section& section, Peer& peer, const wire::Watch& watch) {
  // Watchers are known by their uids.
  const ActorRef watchee = OurRef(watch.watchee());
  const ActorRef watcher = watch.watcher().uid() == 0 ? ActorRef() : TheirRef(peer, watch.watcher());
  if (watcher.IsNoOne()) return;
  const RemoteOptions& options = node_->options;
  const bool is_by_uid = watch.watchee().uid() != 0;
  const bool has_room = peer.watched_here.size() < options.max_watches &&
                        peer.watch_bytes + kWatchBytes + watch.watchee().path().size() <= options.max_watch_bytes;
  if (!has_room) {
    LogLater(section, LogLevel::kWarning,
             absl::StrCat(peer.parts.ToString(), " watches ", peer.watched_here.size(),
                          " actors here, and no more: it is told that a further one has ended; raise ",
                          "RemoteOptions.max_watches and max_watch_bytes"));
  }
  if (watchee.IsNoOne() || watchee.IsPromise() || !has_room) {
    wire::SystemMessage message;
    wire::DeathNotice& notice = *message.mutable_death_notice();
    *notice.mutable_watchee() = watch.watchee();
    notice.mutable_watchee()->set_home(wire::Ref::SENDER);
    *notice.mutable_watcher() = watch.watcher();
    notice.mutable_watcher()->set_home(wire::Ref::RECEIVER);
    AddSystem(section, peer, std::move(message));
    return;
  }
  const auto [found, is_new] = peer.watched_here.try_emplace({watchee.Plain(), watcher});
  InboundWatch& known = found->second;
  if (is_new) {
    known.order = peer.next_watch++;
  } else {
    peer.watch_bytes -= BytesOf(known);
  }
  if (is_by_uid) {
    known.by_uid = true;
  } else if (std::find(known.paths.begin(), known.paths.end(), watch.watchee().path()) == known.paths.end() &&
             known.paths.size() < kMaxWatchPaths) {
    known.paths.push_back(watch.watchee().path());
  }
  peer.watch_bytes += BytesOf(known);
  if (!is_new) return;
  section.Later([watchee, watcher] {
    if (TellSystem(watchee, MakeEnvelope<WatchActor>(ActorRef(), watcher)) == nullptr) return;
    // It has ended before.
    TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), watchee, true, false));
  });
}

void RemotingCore::OnDeathNotice(Section& section, Peer& peer, const wire::DeathNotice& notice) {
  const bool must_wait = notice.after_ordinary() > peer.in(Lane::kOrdinary).handled ||
                         notice.after_large() > peer.in(Lane::kLarge).handled;
  if (!must_wait) {
    DeliverNotice(section, peer, notice);
    return;
  }
  if (peer.held.size() >= node_->options.max_held_notices) {
    const HeldNotice oldest = std::move(peer.held.front());
    peer.held.pop_front();
    DeliverNotice(section, peer, oldest.notice);
  }
  peer.held.push_back({notice, node_->Now() + node_->options.death_notice_flush});
}

void RemotingCore::DeliverNotice(Section& section, Peer& peer, const wire::DeathNotice& notice) {
  ActorRef watchee = TheirRef(peer, notice.watchee());
  const ActorRef watcher = OurRef(notice.watcher());
  if (watchee.IsNoOne() || watcher.IsNoOne()) return;
  auto found = peer.watches.find(watchee);
  if (found == peer.watches.end() && notice.watchee().uid() != 0 && NodeLink::Of(watchee).life() != 0) {
    // A promise is known by another reference than an actor.
    const ActorRef promise = NodeLink::Of(watchee).PromiseOfUid(notice.watchee().uid());
    found = peer.watches.find(promise);
    if (found != peer.watches.end()) watchee = promise;
  }
  if (found != peer.watches.end()) {
    auto& watchers = found->second.watchers;
    watchers.Erase(watcher.Plain());
    if (watchers.empty()) EraseWatch(peer, watchee);
  }
  section.Later([watcher, watchee, existed = notice.existence_confirmed()] {
    TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), watchee, existed, false));
  });
}

void RemotingCore::DeliverHeld(Section& section, Peer& peer, bool all) {
  if (peer.held.empty()) return;
  const Instant now = node_->Now();
  std::deque<HeldNotice> left;
  for (HeldNotice& held : std::exchange(peer.held, {})) {
    const bool has_come = held.notice.after_ordinary() <= peer.in(Lane::kOrdinary).handled &&
                          held.notice.after_large() <= peer.in(Lane::kLarge).handled;
    if (all || has_come || now >= held.until) {
      DeliverNotice(section, peer, held.notice);
    } else {
      left.push_back(std::move(held));
    }
  }
  peer.held = std::move(left);
}

}  // namespace fraktor::inline v0
