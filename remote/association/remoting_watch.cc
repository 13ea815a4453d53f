// Who watches whom across nodes, and the messages of the system, which arrive exactly once.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/actor_names.h"
#include "fraktor/actor/cell/tree_signals.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/turn/mailing.h"
#include "fraktor/remote/association/remoting_core.h"
#include "fraktor/remote/wire/protocol_version.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kSystemMessagesPerFrame = 64;

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

// What a peer names as ours.
ActorRef RemotingCore::OurRef(const wire::Ref& ref) const {
  if (ref.path().empty()) return node_->FindUid(ref.uid());
  const absl::StatusOr<ActorPath> path =
      ActorPathParser::Parse(absl::StrCat(ActorPathParts::Local(node_->parts.system())->ToString(), ref.path()));
  return path.ok() ? node_->system.names().Find(*path) : ActorRef();
}

ActorRef RemotingCore::TheirRef(Peer& peer, const wire::Ref& ref) {
  return RefOfActor(peer.parts, ref.path().empty() ? peer.uid : 0, ref.uid(), ref.path());
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
  wire::ControlMessage message;
  while (peer.outbox.TakeDue(node_->Now(), kSystemMessagesPerFrame, *message.mutable_system_messages())) {
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
  Peer* const peer = FindPeer(*link.node().authority());
  const bool is_gone =
      peer == nullptr || (link.life() == 0 && peer->by_path != &link) || IsQuarantined(*peer) ||
      (link.life() != 0 && (IsDead(*peer, link.life()) || (peer->uid != 0 && peer->uid != link.life())));
  if (const auto* const watch = message->TryAs<WatchActor>()) {
    if (is_gone || is_ending_) return message;
    OutboundWatch& watched = peer->watches[to];
    if (watched.watchers.empty()) watched.order = peer->next_watch++;
    if (std::find(watched.watchers.begin(), watched.watchers.end(), watch->watcher) != watched.watchers.end()) {
      return nullptr;
    }
    watched.watchers.push_back(watch->watcher);
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
    watchers.erase(std::remove(watchers.begin(), watchers.end(), unwatch->watcher), watchers.end());
    const bool was_told = found->second.told != 0 && found->second.told == peer->uid;
    if (watchers.empty()) peer->watches.erase(found);
    if (was_told && !is_gone) {
      wire::SystemMessage gone;
      FillOurRef(*gone.mutable_unwatch()->mutable_watcher(), unwatch->watcher);
      if (FillTheirRef(*peer, *gone.mutable_unwatch()->mutable_watchee(), to))
        AddSystem(section, *peer, std::move(gone));
    }
    if (peer->watches.empty()) {
      // Nobody asks how it is any more.
      peer->detector = nullptr;
      peer->first_heartbeat = Instant::InfiniteFuture();
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
  wire::SystemMessage message;
  wire::DeathNotice& notice = *message.mutable_death_notice();
  const auto found = peer.watched_here.find({ActorRef(watchee.slot(), watchee.generation()), watcher});
  if (found != peer.watched_here.end() && !found->second.path.empty()) {
    notice.mutable_watchee()->set_home(wire::Ref::SENDER);
    notice.mutable_watchee()->set_path(found->second.path);
  } else {
    FillOurRef(*notice.mutable_watchee(), watchee);
  }
  if (found != peer.watched_here.end()) peer.watched_here.erase(found);
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
  AddSystem(section, peer, std::move(message));
}

void RemotingCore::TellWatches(Section& section, Peer& peer) {
  std::vector<std::pair<uint64_t, ActorRef>> untold;
  for (const auto& [ref, watch] : peer.watches) {
    if (watch.told != peer.uid) untold.emplace_back(watch.order, ref);
  }
  std::sort(untold.begin(), untold.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, ref] : untold) {
    const auto found = peer.watches.find(ref);
    if (found == peer.watches.end()) continue;
    const uint64_t life = NodeLink::Of(ref).life();
    if (life != 0 && life != peer.uid) {
      EndWatches(section, peer, life, false);
      continue;
    }
    found->second.told = peer.uid;
    for (const ActorRef watcher : std::vector<ActorRef>(found->second.watchers)) {
      SendWatch(section, peer, ref, watcher);
    }
  }
}

// The life is over: whoever watches somebody there hears of it.
void RemotingCore::EndWatches(Section& section, Peer& peer, uint64_t life, bool by_path) {
  std::vector<std::pair<uint64_t, ActorRef>> over;
  for (const auto& [ref, watch] : peer.watches) {
    const uint64_t its_life = NodeLink::Of(ref).life();
    if (its_life == life || (by_path && its_life == 0)) over.emplace_back(watch.order, ref);
  }
  std::sort(over.begin(), over.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, ref] : over) {
    for (const ActorRef watcher : peer.watches[ref].watchers) {
      section.Later(
          [watcher, ended = ref] { TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), ended, false, true)); });
    }
    peer.watches.erase(ref);
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
}

void RemotingCore::OnSystemMessages(Section& section, Peer& peer, const wire::SystemMessages& messages) {
  for (const wire::SystemMessage* const message : peer.inbox.Take(messages)) OnSystemMessage(section, peer, *message);
  // Handling one may have been the end of it.
  if (!peer.is_associated) return;
  wire::ControlMessage answer;
  answer.mutable_system_ack()->set_number(peer.inbox.delivered());
  SendControl(section, peer, answer);
}

void RemotingCore::OnSystemMessage(Section& section, Peer& peer, const wire::SystemMessage& message) {
  const bool untrusted = node_->options.untrusted;
  switch (message.body_case()) {
    case wire::SystemMessage::kWatch:
      if (!untrusted) OnWatch(section, peer, message.watch());
      break;
    case wire::SystemMessage::kUnwatch: {
      const ActorRef watchee = OurRef(message.unwatch().watchee());
      const ActorRef watcher = TheirRef(peer, message.unwatch().watcher());
      if (watchee.IsNoOne() || watcher.IsNoOne()) break;
      peer.watched_here.erase({ActorRef(watchee.slot(), watchee.generation()), watcher});
      section.Later([watchee, watcher] { TellSystem(watchee, MakeEnvelope<UnwatchActor>(ActorRef(), watcher)); });
      break;
    }
    case wire::SystemMessage::kDeathNotice:
      OnDeathNotice(section, peer, message.death_notice());
      break;
    case wire::SystemMessage::kStop: {
      const ActorRef actor = OurRef(message.stop().actor());
      if (untrusted || actor.IsNoOne()) break;
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
  const ActorRef watchee = OurRef(watch.watchee());
  const ActorRef watcher = TheirRef(peer, watch.watcher());
  if (watcher.IsNoOne()) return;
  const bool has_room = peer.watched_here.size() < node_->options.max_watches;
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
  peer.watched_here[{ActorRef(watchee.slot(), watchee.generation()), watcher}] = {.path = watch.watchee().path(),
                                                                                  .order = peer.next_watch++};
  section.Later([watchee, watcher] {
    if (TellSystem(watchee, MakeEnvelope<WatchActor>(ActorRef(), watcher)) == nullptr) return;
    // It has ended before.
    TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), watchee, true, false));
  });
}

void RemotingCore::OnDeathNotice(Section& section, Peer& peer, const wire::DeathNotice& notice) {
  const bool must_wait = notice.after_ordinary() > peer.received[IndexOf(Lane::kOrdinary)] ||
                         notice.after_large() > peer.received[IndexOf(Lane::kLarge)];
  if (!must_wait) {
    DeliverNotice(section, peer, notice);
    return;
  }
  peer.held.push_back({notice, node_->Now() + node_->options.death_notice_flush});
}

void RemotingCore::DeliverNotice(Section& section, Peer& peer, const wire::DeathNotice& notice) {
  const ActorRef watchee = TheirRef(peer, notice.watchee());
  const ActorRef watcher = OurRef(notice.watcher());
  if (watchee.IsNoOne() || watcher.IsNoOne()) return;
  const auto found = peer.watches.find(watchee);
  if (found != peer.watches.end()) {
    auto& watchers = found->second.watchers;
    watchers.erase(std::remove_if(watchers.begin(), watchers.end(),
                                  [&](ActorRef one) {
                                    return one.slot() == watcher.slot() && one.generation() == watcher.generation();
                                  }),
                   watchers.end());
    if (watchers.empty()) peer.watches.erase(found);
    if (peer.watches.empty()) {
      peer.detector = nullptr;
      peer.first_heartbeat = Instant::InfiniteFuture();
    }
  }
  section.Later([watcher, watchee, existed = notice.existence_confirmed()] {
    TellSystem(watcher, MakeEnvelope<ActorEnded>(ActorRef(), watchee, existed, false));
  });
}

void RemotingCore::DeliverHeld(Section& section, Peer& peer, bool all) {
  if (peer.held.empty()) return;
  const Instant now = node_->Now();
  std::vector<HeldNotice> left;
  for (HeldNotice& held : std::exchange(peer.held, {})) {
    const bool has_come = held.notice.after_ordinary() <= peer.received[IndexOf(Lane::kOrdinary)] &&
                          held.notice.after_large() <= peer.received[IndexOf(Lane::kLarge)];
    if (all || has_come || now >= held.until) {
      DeliverNotice(section, peer, held.notice);
    } else {
      left.push_back(std::move(held));
    }
  }
  peer.held = std::move(left);
}

}  // namespace fraktor::inline v0
