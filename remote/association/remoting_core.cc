#include "fraktor/remote/association/remoting_core.h"

#include <sched.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/dispatch/internal/ready_queue_scheduler.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/undelivered_message.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/path/actor_path_parser.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/actor/registry/authority_events.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/internal/promise_sending.h"
#include "fraktor/actor/send/internal/remote_sending.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/serialization_error.h"
#include "fraktor/actor/serialization/system_codecs.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/remote/association/remote_events.h"
#include "fraktor/remote/association/runtime_codecs.h"
#include "fraktor/remote/wire/control_codec.h"
#include "fraktor/utils/bytes/bytes.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using actor_internal::ActorLifecycle;
using actor_internal::ActorSlot;
using actor_internal::ActorSlotTable;
using actor_internal::ActorWorker;
using actor_internal::AnswerPromise;
using actor_internal::AuthorityInfo;
using actor_internal::FailRemoteAsk;
using actor_internal::ForeignMetrics;
using actor_internal::MailboxRegistry;
using actor_internal::NodeCache;
using actor_internal::ProcessPromises;
using actor_internal::PromiseSlot;
using actor_internal::PromiseSlotTable;
using actor_internal::SharedSender;

namespace {

constexpr uint64_t kUidStream = 0x72656d6f74657569;  // Of the toolbox's generator.
constexpr uint64_t kNonceStream = 0x72656d6f746e6f6e;
// Places for selections, which are used again.
constexpr size_t kSelectionPlaces = 1024;
constexpr size_t kMaxIdentifies = 1000;
// A path that is longer than that is not remembered for logs.
constexpr size_t kMaxTextBytes = 1024;
// Of all of them.
constexpr size_t kMaxAllTextBytes = size_t{16} << 20;
// Links that are looked at when one is needed that nobody uses.
constexpr int kRecycleCandidates = 16;
constexpr std::string_view kRefsOfOthers =
    "a reference in it is of another system of this process, or there are too many";

AllDeadLetters Describe(const DeferredMessage& message) {
  const Envelope& envelope = message.envelope();
  return {.message = {.type_name = envelope.type()->name(), .type = envelope.type(), .message = envelope.payload()}};
}

// Two nodes must not have the same one, nor two starts of a node, also where the toolbox begins with the same seed each
// time. A toolbox that chooses simulates: then it alone decides.
uint64_t DrawUid(RuntimeToolbox& toolbox, const ActorPathParts& parts) {
  Random random = toolbox.MakeRandom(kUidStream);
  uint64_t uid = random.Next();
  for (const char c : parts.ToString()) uid = (uid ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  if (!toolbox.chooses()) {
    std::random_device machine;
    uid ^= uint64_t{machine()} << 32 | machine();
  }
  return uid | 1;
}

// Tells the core what becomes of a stream.
class LaneListener final : public StreamListener {
 public:
  LaneListener(CoreHandle& handle, const PathAuthority& authority, Lane lane, uint64_t serial,
               std::shared_ptr<const std::atomic<size_t>> gathered)
      : handle_(handle), authority_(authority), lane_(lane), serial_(serial), gathered_(std::move(gathered)) {}

  void OnOpened() override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnOpened(section, authority_, lane_, serial_);
  }
  void OnWritten() override {
    Gather();
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnWritten(section, authority_, lane_, serial_);
  }
  void OnClosed(const absl::Status& why) override {
    Section section(handle_);
    if (section.core() != nullptr) section.core()->OnClosed(section, authority_, lane_, serial_, why);
  }

 private:
  // A frame costs as much as hundreds of short messages. If many have come while the last one was written, somebody is
  // about to send more: as long as they come, and the frame is not large, others are let run first.
  void Gather() const {
    size_t seen = gathered_->load(std::memory_order_relaxed);
    if (seen < kBurstBytes) return;
    const Visit visit(handle_);
    if (visit.node() == nullptr) return;
    const Instant until = visit.node()->Now() + kGatherFor;
    for (int still = 0; still < kStillLooks && seen < kGatheredBytes && visit.node()->Now() < until;) {
      sched_yield();
      const size_t now = gathered_->load(std::memory_order_relaxed);
      still = now == seen ? still + 1 : 0;
      seen = now;
    }
  }

  static constexpr size_t kBurstBytes = 512;
  static constexpr size_t kGatheredBytes = size_t{32} << 10;
  static constexpr absl::Duration kGatherFor = absl::Microseconds(200);
  static constexpr int kStillLooks = 4;

  CoreHandle& handle_;
  const PathAuthority authority_;
  const Lane lane_;
  const uint64_t serial_;
  const std::shared_ptr<const std::atomic<size_t>> gathered_;
};

// Whether who has sent it takes care of it.
bool IsTakenBack(const LocalNode& node, Envelope& message, DeadLetterReason reason, const absl::Status& why) {
  bool is_taken_back = false;
  const AllDeadLetters letter{
      .reason = reason,
      .message = {.type_name = message.type()->name(), .type = message.type(), .message = message.payload()},
      .at = node.Now()};
  node.system.events().PublishToAll(UndeliveredMessage{letter, message, is_taken_back, why});
  return is_taken_back;
}

// The same error, with its kind, in other words.
absl::Status Restated(const absl::Status& error, absl::StatusCode code, absl::string_view text) {
  absl::Status restated(code, text);
  error.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { restated.SetPayload(url, payload); });
  return restated;
}

// Why a message cannot leave, and what to do about it.
absl::Status WithHint(const absl::Status& why, Lane which, std::string_view path) {
  const bool is_too_large =
      absl::IsOutOfRange(why) || ErrorKindOf<SerializationErrorKind>(why) == SerializationErrorKind::kTooLarge;
  if (!is_too_large) return Restated(why, absl::StatusCode::kInvalidArgument, why.message());
  return Restated(
      why, absl::StatusCode::kResourceExhausted,
      absl::StrCat(
          why.message(),
          which == Lane::kLarge
              ? std::string("; send it in parts, or raise RemoteOptions.limits.max_large_frame_bytes (WireLimits) here "
                            "and there")
              : absl::StrCat("; send it in parts, name the actor among RemoteOptions.large_destinations",
                             path.empty() ? "" : absl::StrCat(" (\"", ToAbsl(path), "\")"),
                             ", or raise RemoteOptions.limits.max_frame_bytes (WireLimits) here and there")));
}

// Who waits because of a message that does not leave this node hears why: he has asked, or it is the answer.
void FailAsker(const LocalNode& node, ActorRef to, const Envelope& message, DeadLetterReason reason,
               const absl::Status& why) {
  if (message.Is<ErrorReply>()) return;
  const ActorRef sender = message.sender();
  const auto failed = [&] {
    return Restated(why, why.code(),
                    absl::StrCat(ToAbsl(message.type()->name()), ", which was for ", node.system.PathOf(to),
                                 ", gets no reply: ", why.message()));
  };
  if (sender.IsRemote()) {
    FailRemoteAsk(sender, failed);
  } else if (sender.IsPromise() && (sender.word() & ActorRef::kShared) == 0 && sender.IsCurrent()) {
    AnswerPromise(sender, MakeEnvelope<ErrorReply>(ActorRef(), failed()).release());
  }
  // Otherwise an error would not get there either.
  if (reason != DeadLetterReason::kNotSerializable) return;
  FailRemoteAsk(to, [&] {
    return Restated(why, why.code(),
                    absl::StrCat("the answer ", ToAbsl(message.type()->name()),
                                 sender.IsNoOne() ? "" : absl::StrCat(" of ", node.system.PathOf(sender)),
                                 " cannot leave ", node.parts.ToString(), ": ", why.message()));
  });
}

}  // namespace

uint64_t LocalNode::WireUidOf(ActorRef ref) const {
  MailboxRegistry& mailboxes = system.tree().options().mailboxes;
  const auto uid_of = [&](uint32_t slot, uint32_t generation) {
    return system.names().uids().UidOf({.slot = slot, .generation = generation}).value();
  };
  // Slots of promises have numbers of their own. The generations of actors are odd, so even ones stand for promises.
  if (ref.IsPromise()) {
    if (!mailboxes.promises().Owns(ref.promise_slot())) return 0;
    return uid_of(PromiseSlotTable::IndexOf(ref.promise_slot()), ref.generation() + 1);
  }
  if (!ref.IsActor() || !mailboxes.slots().Owns(ref.slot())) return 0;
  return uid_of(ActorSlotTable::IndexOf(ref.slot()), ref.generation());
}

ActorRef LocalNode::FindUid(uint64_t wanted) const {
  const std::optional<Pid> pid = system.names().uids().PidOf(ActorUid(wanted));
  if (!pid.has_value()) return {};
  MailboxRegistry& mailboxes = system.tree().options().mailboxes;
  if (pid->generation % 2 == 0) {
    PromiseSlot* const promise = ProcessPromises().At(pid->slot);
    if (promise == nullptr || !mailboxes.promises().Owns(promise)) return {};
    return ActorRef(promise, uint64_t{pid->generation - 1} | ActorRef::kPromise);
  }
  ActorSlot* const slot = ProcessSlots().At(pid->slot);
  if (slot == nullptr || !mailboxes.slots().Owns(slot)) return {};
  const ActorRef ref = slot->RefAt(pid->generation);
  return ref.IsNoOne() ? ActorRef(slot, pid->generation) : ref;
}

ActorRef LocalNode::FindPath(std::string_view text) const {
  const absl::StatusOr<ActorPath> path =
      ActorPathParser::Parse(absl::StrCat("pekko://", ToAbsl(system.name()), ToAbsl(text)));
  return path.ok() ? system.names().Find(*path) : ActorRef();
}

void LocalNode::Log(LogLevel level, std::string_view text, LogSite site) const {
  system.log().Log(level, {.at = system.toolbox().WallNow(), .path = "remote", .text = text}, site);
}

void LocalNode::Lose(ActorRef to, EnvelopePtr message, DeadLetterReason reason, const absl::Status& why) const {
  if (to.IsRemote() && IsTakenBack(*this, *message, reason, why)) return;
  if (!why.ok()) {
    FailAsker(*this, to, *message, reason, why);
    // He has heard it, if he is elsewhere; one who is here has his answer already.
    if (message->sender().IsRemote()) message->set_sender(SharedSender(message->sender()));
  }
  message->set_target_word(to.word());
  if (ForeignMetrics* const metrics = system.tree().options().mailboxes.core().metrics()) {
    metrics->CountDeadLetter(reason);
  }
  ActorLifecycle& lifecycle = system.tree();
  lifecycle.OnDeadLetter(NodeCache::OfThisThread(), std::move(message), to.any_slot(), reason);
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
  if (config.remoting->canonical_port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("RemotingConfig.canonical_port is 0, and others have to know the port; the transport listens at ",
                     transport->port(), ": use that, or what it is mapped to"));
  }
  const size_t largest = std::max(
      {options.limits.max_control_frame_bytes, options.limits.max_frame_bytes, options.limits.max_large_frame_bytes});
  if (transport->limits().max_frame_bytes < largest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the transport takes frames of ", transport->limits().max_frame_bytes, " bytes, and ",
                     "RemoteOptions.limits allows ", largest, "; raise TransportLimits.max_frame_bytes"));
  }
  const uint64_t uid = options.system_uid == 0 ? DrawUid(system.toolbox(), parts) : options.system_uid;
  auto node = std::make_shared<const LocalNode>(
      LocalNode{.system = system,
                .codecs = CodecsOf(system),
                .options = options,
                .parts = parts,
                .uid = uid,
                .guest_seat = system.scheduler().dispatchers().default_pool().guest_seat()});
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
    known->last_use = ++uses_;
    if (known->parts == parts) return known;
    if (known->uid != 0 || known->is_shaking || !IsIdle(*known)) {
      return unsupported(absl::StrCat("the system there is called ", ToAbsl(known->parts.system())));
    }
    // Nobody was met there, and nothing waits for the other name: this one may be right. References to the other one find
    // out when they are used.
    Detach(*known);
    known->parts = parts;
    return known;
  }
  if (peers_.size() >= node_->system.options().config.remoting->max_authorities && !MakeRoomForPeer()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        parts.ToString(), " would be one peer too many, and none is idle; raise RemotingConfig.max_authorities"));
  }
  Peer* const made =
      peers_.emplace(*parts.authority(), std::make_unique<Peer>(parts, node_->options.system)).first->second.get();
  made->last_use = ++uses_;
  return made;
}

// Whether somebody here waits for something from it.
bool RemotingCore::IsWanted(const Peer& peer) const {
  if (!peer.watches.empty() || peer.outbox.pending() != 0 || !peer.identifies.empty() || peer.is_draining) return true;
  const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority);
  if (info.has_value() && info->deferred != 0) return true;
  return std::any_of(peer.lanes.begin(), peer.lanes.end(), [](const OutboundLane& lane) { return lane.has_work(); });
}

// Whether nothing would be lost with it.
bool RemotingCore::IsIdle(const Peer& peer) const {
  if (peer.is_associated || IsQuarantined(peer) || !peer.watched_here.empty() || IsWanted(peer)) return false;
  return std::none_of(peer.inbound.begin(), peer.inbound.end(),
                      [](const InboundLane& lane) { return lane.is_busy || !lane.waiting.empty(); });
}

bool RemotingCore::MakeRoomForPeer() {
  Peer* oldest = nullptr;
  for (const auto& [authority, peer] : peers_) {
    if ((oldest == nullptr || peer->last_use < oldest->last_use) && IsIdle(*peer)) oldest = peer.get();
  }
  if (oldest == nullptr) return false;
  Detach(*oldest);
  for (const Lane lane : {Lane::kControl, Lane::kOrdinary, Lane::kLarge}) CloseLane(*oldest, lane);
  for (auto& [id, stream] : streams_) {
    if (stream.peer != oldest) continue;
    stream.peer = nullptr;
    stream.uid = 0;
  }
  const PathAuthority gone = oldest->authority;
  peers_.erase(gone);
  return true;
}

void RemotingCore::Detach(Peer& peer) {
  for (const auto& [life, link] : peer.lives) link->peer = nullptr;
  peer.lives.clear();
  if (peer.by_path != nullptr) peer.by_path->peer = nullptr;
  peer.by_path = nullptr;
}

Peer* RemotingCore::PeerOfLink(NodeLink& link) {
  link.last_use = ++uses_;
  if (link.peer != nullptr) return link.peer;
  const absl::StatusOr<Peer*> found = PeerOf(link.node());
  if (!found.ok()) return nullptr;
  link.peer = *found;
  if (link.life() == 0) {
    link.peer->by_path = &link;
  } else {
    link.peer->lives.insert_or_assign(link.life(), &link);
  }
  return link.peer;
}

bool RemotingCore::IsDead(const Peer& peer, uint64_t uid) const {
  return std::find(peer.dead.begin(), peer.dead.end(), uid) != peer.dead.end();
}

absl::StatusOr<NodeLink*> RemotingCore::LinkTo(Peer& peer, uint64_t life) {
  NodeLink* link = nullptr;
  if (life == 0) {
    link = peer.by_path;
  } else if (const auto found = peer.lives.find(life); found != peer.lives.end()) {
    link = found->second;
  }
  if (link == nullptr) {
    const auto key = std::make_pair(peer.parts, life);
    if (const auto known = links_.find(key); known != links_.end()) {
      link = known->second;
    } else {
      link = links_.size() < node_->options.max_links ? nullptr : RecycleLink(peer.parts, life);
      if (link == nullptr && links_.size() >= node_->options.max_links) {
        return absl::ResourceExhaustedError(absl::StrCat("references lead to ", links_.size(),
                                                         " nodes and lives of nodes, all of them in use; raise ",
                                                         "RemoteOptions.max_links"));
      }
      if (link == nullptr) {
        FRAKTOR_ASSIGN_OR_RETURN(link, NodeLink::Make(handle_, peer.parts, life));
        all_links_.push_back(link);
      }
      links_.emplace(key, link);
    }
    link->peer = &peer;
    if (life == 0) {
      peer.by_path = link;
    } else {
      peer.lives.insert_or_assign(life, link);
    }
  }
  link->last_use = ++uses_;
  return link;
}

// One that was not used for long, among a few that are looked at, if nobody has to do with whom it leads to. References by
// path stay: a peer that makes lives up must not take those of the program.
NodeLink* RemotingCore::RecycleLink(const ActorPathParts& parts, uint64_t life) {
  NodeLink* oldest = nullptr;
  int candidates = 0;
  for (size_t i = 0; i < all_links_.size() && candidates < kRecycleCandidates; ++i) {
    NodeLink* const link = all_links_[next_recycled_++ % all_links_.size()];
    if (link->life() == 0 || link->watches != 0) continue;
    if (link->peer != nullptr && link->peer->uid == link->life()) continue;
    ++candidates;
    if (oldest == nullptr || link->last_use < oldest->last_use) oldest = link;
  }
  if (oldest == nullptr) return nullptr;
  if (oldest->peer != nullptr) oldest->peer->lives.erase(oldest->life());
  links_.erase(std::make_pair(oldest->node(), oldest->life()));
  text_bytes_ -= oldest->text_bytes;
  lanes_ -= oldest->lanes.size();
  oldest->Recycle(parts, life);
  return oldest;
}

// References.

absl::StatusOr<ActorRef> RemotingCore::RefAt(const ActorPathParts& parts, std::string_view path, bool is_selection,
                                             bool is_of_peer) {
  const RemoteOptions& options = node_->options;
  // What peers bring has half of the room, so that there is always some for the program.
  const size_t max_bytes = is_of_peer ? options.max_path_table_bytes / 2 : options.max_path_table_bytes;
  if (is_of_peer && links_.size() >= options.max_links / 2 && !links_.contains(std::make_pair(parts, uint64_t{0}))) {
    return absl::ResourceExhaustedError(absl::StrCat("no more room for references to ", parts.ToString(), " by path"));
  }
  if (path.size() > options.limits.max_path_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a path at ", parts.ToString(), " has ", path.size(),
                                                   " bytes; WireLimits.max_path_bytes is ",
                                                   options.limits.max_path_bytes));
  }
  FRAKTOR_ASSIGN_OR_RETURN(Peer* const peer, PeerOf(parts));
  FRAKTOR_ASSIGN_OR_RETURN(NodeLink* const link, LinkTo(*peer, 0));
  std::string key = absl::StrCat(is_selection ? "?" : "", ToAbsl(path));
  if (const auto found = link->path_index.find(key); found != link->path_index.end()) {
    return link->RefOfPath(found->second, link->paths[found->second].turn);
  }
  uint32_t index = 0;
  if (is_selection && link->selections.size() >= kSelectionPlaces) {
    // The place of the one that was made longest ago.
    index = link->selections[link->next_selection];
    link->next_selection = (link->next_selection + 1) % kSelectionPlaces;
    path_bytes_ -= 2 * link->paths[index].path.size();
    link->path_index.erase(absl::StrCat("?", link->paths[index].path));
  } else {
    if (link->paths.size() >= options.max_paths || path_bytes_ + 2 * path.size() > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a reference to ", parts.ToString(), ToAbsl(path.substr(0, 200)), " would be one too many by path; keep the ",
          "references that answers bring, or raise RemoteOptions.max_paths and max_path_table_bytes"));
    }
    index = static_cast<uint32_t>(link->paths.size());
    link->paths.emplace_back();
    if (is_selection) link->selections.push_back(index);
  }
  // The text stands in the entry and in the index.
  path_bytes_ += 2 * path.size();
  link->paths[index] = {
      .path = std::string(path), .is_selection = is_selection, .turn = link->NextTurn(), .lane = LaneOfPath(path)};
  link->path_index.insert_or_assign(std::move(key), index);
  return link->RefOfPath(index, link->paths[index].turn);
}

ActorRef RemotingCore::RefOfActor(const ActorPathParts& parts, uint64_t life, uint64_t uid, std::string_view path,
                                  bool is_promise) {
  if (uid == 0 || life == 0) return RefAt(parts, path, false, true).value_or(ActorRef());
  const absl::StatusOr<Peer*> peer = PeerOf(parts);
  if (!peer.ok()) return {};
  const absl::StatusOr<NodeLink*> link = LinkTo(**peer, life);
  if (!link.ok()) return {};
  if (!path.empty()) {
    if (!large_.empty() && lanes_ < node_->options.max_paths) {
      if ((*link)->lanes.try_emplace(uid, LaneOfPath(path)).second) ++lanes_;
    }
    RememberText(**link, uid, path);
  }
  const ActorRef ref = is_promise ? (*link)->PromiseOfUid(uid) : (*link)->RefOfUid(uid);
  // One uid in four thousand millions has no word of its own.
  return ref.IsNoOne() ? RefAt(parts, absl::StrCat("#", uid), false, true).value_or(ActorRef()) : ref;
}

// Enough for logs: when there are too many, they begin anew.
void RemotingCore::RememberText(NodeLink& link, uint64_t uid, std::string_view path) {
  if (path.size() > kMaxTextBytes) return;
  const auto known = link.texts.find(uid);
  if (known != link.texts.end() && known->second == path) return;
  if (link.texts.size() >= node_->options.max_path_texts || text_bytes_ + path.size() > kMaxAllTextBytes) {
    text_bytes_ -= link.text_bytes;
    link.text_bytes = 0;
    link.texts.clear();
    if (text_bytes_ + path.size() > kMaxAllTextBytes) return;
  }
  std::string& text = link.texts[uid];
  const size_t grown = path.size() - std::min(path.size(), text.size());
  link.text_bytes += grown;
  text_bytes_ += grown;
  text = std::string(path);
}

std::string RemotingCore::PathTextOf(const NodeLink& link, ActorRef ref) const {
  if (link.life() == 0) {
    const PathEntry* const entry = link.FindPath(ref);
    return entry == nullptr ? std::string() : entry->path;
  }
  const auto path = link.texts.find(link.UidOf(ref));
  return path == link.texts.end() ? std::string() : path->second;
}

std::string RemotingCore::StateOf(const NodeLink& link) const {
  const auto found = peers_.find(*link.node().authority());
  const Peer* const peer = found == peers_.end() ? nullptr : found->second.get();
  if (peer != nullptr && IsQuarantined(*peer)) return "its node is in quarantine";
  if (peer == nullptr || !peer->is_associated) {
    const bool is_known = peer != nullptr && !peer->trouble.why.empty();
    return absl::StrCat("its node is not connected", is_known ? absl::StrCat(": ", peer->trouble.why) : "");
  }
  return "its node is connected, but what the target is doing is not known here";
}

// What is for users.

void RemotingCore::LoseLater(Section& section, ActorRef to, EnvelopePtr message, DeadLetterReason reason,
                             absl::Status why) {
  section.Later([node = node_, to, lost = std::move(message), reason, why = std::move(why)]() mutable {
    node->Lose(to, std::move(lost), reason, why);
  });
}

void RemotingCore::LogLater(Section& section, LogLevel level, std::string text, LogSite site) const {
  section.Later([node = node_, level, text = std::move(text), site] { node->Log(level, text, site); });
}

void RemotingCore::TerminatedLater(Section& section, Peer& peer, uint64_t uid, std::string reason) const {
  // Once for each life.
  if (uid != 0 && std::exchange(peer.terminated_uid, uid) == uid) return;
  section.Later([node = node_, text = peer.parts.ToString(), uid, reason = std::move(reason)] {
    node->system.events().PublishToAll(AddressTerminated{.node = text, .system_uid = uid, .reason = reason});
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
            node.system.events().PublishToAll(QuarantinedEvent{copy});
          } else {
            node.system.events().PublishToAll(copy);
          }
        });
  }));
}

absl::Status RemotingCore::Refusal::ToStatus(const PathAuthority& authority, Instant now) const {
  if (!is_invalid_association) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      authority.ToString(), " is in quarantine",
      deadline == Instant::InfiniteFuture()
          ? std::string()
          : absl::StrCat(" for another ", absl::FormatDuration(absl::Ceil(deadline - now, absl::Seconds(1)))),
      ": ", why, "; the next start of that node ends it, or Remoting::EndQuarantine"));
}

void RemotingCore::DrainRegistry(Section& section) {
  for (auto& say : said_) section.Later([node = node_, say = std::move(say)] { say(*node); });
  said_.clear();
  for (auto& [to, message] : lost_) {
    Refusal refusal;
    if (const auto found = refusals_.find(message->payload()); found != refusals_.end()) {
      refusal = std::move(found->second);
    }
    const PathAuthority authority = *NodeLink::Of(to).node().authority();
    section.Later(
        [node = node_, authority, to = to, lost = std::move(message), refusal = std::move(refusal)]() mutable {
          if (refusal.is_invalid_association) {
            const ActorRef sender = lost->sender();
            const std::string from = sender.IsNoOne() ? std::string() : node->system.PathOf(sender);
            const std::string recipient = node->system.PathOf(to);
            node->system.events().PublishToAll(InvalidAssociation{
                .authority = authority,
                .sender = from,
                .recipient = recipient,
                .message = {.type_name = lost->type()->name(), .type = lost->type(), .message = lost->payload()},
                .reason = refusal.why,
                .deadline = refusal.deadline,
                .at = node->Now()});
          }
          node->Lose(to, std::move(lost), refusal.reason, refusal.ToStatus(authority, node->Now()));
        });
  }
  lost_.clear();
  refusals_.clear();
}

// Sending.

bool RemotingCore::Send(Section& section, NodeLink& link, ActorRef to, EnvelopePtr& message, OutgoingMessage& outgoing,
                        bool is_backlog) {
  Peer* const peer = PeerOfLink(link);
  if (peer == nullptr) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kUnsupported);
    return true;
  }
  if (is_ending_) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kShutdown);
    return true;
  }
  if (link.life() != 0 && link.life() != peer->uid) {
    const bool is_dead = IsDead(*peer, link.life());
    if (is_dead || peer->uid != 0) {
      // A life that was not met yet may be there by now.
      if (!is_dead) WantPeer(section, *peer);
      LoseLater(section, to, std::move(message), DeadLetterReason::kNewIncarnation);
      return true;
    }
  }
  if (peer->is_draining && !is_backlog) {
    // Behind those that have waited longer.
    if (peer->backlog.size() < node_->options.max_queued_messages) {
      peer->backlog.push_back({next_order_++, to, std::move(message)});
    } else {
      LoseLater(
          section, to, std::move(message), DeadLetterReason::kMailboxFull,
          absl::ResourceExhaustedError(absl::StrCat(peer->backlog.size(), " messages wait for ", peer->parts.ToString(),
                                                    "; send less, or raise RemoteOptions.max_queued_messages")));
    }
    return true;
  }
  if (peer->is_associated) return Append(section, *peer, to, message, outgoing);
  const bool may_be_none = link.life() == 0 && message->Is<Identify>();
  if (may_be_none && !IsQuarantined(*peer) && peer->identifies.size() < kMaxIdentifies) {
    peer->identifies.push_back({next_order_++, to, std::move(message)});
  } else {
    // It never is to be sent now: the registry knows of a connection when the peer does.
    authorities_->Offer(peer->authority, DeferredMessage(next_order_++, to, std::move(message), lost_), node_->Now())
        .status()
        .IgnoreError();
    DrainRegistry(section);
  }
  if (!IsQuarantined(*peer)) {
    WantPeer(section, *peer);
  } else if (const Instant now = node_->Now(); now >= peer->next_request) {
    // Another start of it would be welcome.
    peer->next_request = now + node_->options.inject_handshake;
    peer->pending.request = true;
    WantPending(section, *peer);
  }
  return true;
}

bool RemotingCore::TakeBacklog(const PathAuthority& authority, ActorRef& to, EnvelopePtr& message) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr) return false;
  if (peer->backlog.empty()) {
    peer->is_draining = false;
    return false;
  }
  to = peer->backlog.front().to;
  message = std::move(peer->backlog.front().message);
  peer->backlog.pop_front();
  return true;
}

void DrainBacklog(CoreHandle& handle, const PathAuthority& authority) {
  const Visit visit(handle);
  if (visit.node() == nullptr) return;
  for (;;) {
    ActorRef to;
    EnvelopePtr message;
    {
      Section section(handle);
      if (section.core() == nullptr || !section.core()->TakeBacklog(authority, to, message)) return;
    }
    OutgoingMessage outgoing(*visit.node());
    for (bool is_done = false; !is_done;) {
      outgoing.Encode(*message, 0);
      Section section(handle);
      if (section.core() == nullptr) return;
      is_done = section.core()->Send(section, NodeLink::Of(to), to, message, outgoing, true);
    }
  }
}

// The place of a reference in the tables of the batch; 0 if it cannot have one.
uint32_t RemotingCore::PlaceOf(Peer& peer, OutboundLane& lane, ActorRef ref) {
  if (ref.IsNoOne()) return 0;
  const auto found = lane.refs.find(ref);
  return found != lane.refs.end() ? found->second : AddPlace(peer, lane, ref);
}

uint32_t RemotingCore::AddPlace(Peer& peer, OutboundLane& lane, ActorRef ref) {
  const WireLimits& limits = node_->options.limits;
  if (lane.batch.refs() >= limits.max_refs) return 0;
  BatchRefView view;
  std::string path;
  if (!ref.IsRemote()) {
    view.home = BatchHome::kSender;
    view.uid = node_->WireUidOf(ref);
    if (view.uid == 0) return 0;
    // Of one that others have been asked for too, nobody is to say that it has failed.
    view.is_promise = ref.IsPromise() && (ref.word() & ActorRef::kShared) == 0;
    if (!ref.IsPromise() && !peer.told_paths.contains(view.uid)) {
      path = node_->system.names().TextOf(ref);
      // Without the address, which the receiver knows.
      const size_t root = path.find('/', path.find("://") + 3);
      if (root != std::string::npos && path.size() - root <= limits.max_path_bytes) {
        if (peer.told_paths.size() >= node_->options.max_path_texts) peer.told_paths.clear();
        peer.told_paths.insert(view.uid);
        lane.added.told_paths.push_back(view.uid);
        view.path = std::string_view(path).substr(root);
      }
    }
  } else {
    const NodeLink& link = NodeLink::Of(ref);
    // A reference of another system of this process: its lock is not to be taken.
    if (&link.handle() != &handle_) return 0;
    const bool is_theirs = link.node() == peer.parts && (link.life() == 0 || link.life() == peer.uid);
    if (link.life() != 0) {
      view.uid = link.UidOf(ref);
      view.is_promise = link.IsPromise(ref);
      if (!is_theirs) path = PathTextOf(link, ref);
      view.path = path;
    } else {
      const PathEntry* const entry = link.FindPath(ref);
      if (entry == nullptr) return 0;
      if (entry->path.front() == '#') {
        view.uid = std::strtoull(entry->path.c_str() + 1, nullptr, 10);
      } else {
        view.path = entry->path;
        view.is_selection = entry->is_selection;
      }
    }
    if (!is_theirs) {
      auto key = std::make_pair(link.node(), link.life());
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
        lane.added.nodes.push_back(std::move(key));
      }
      view.home = found->second;
    }
  }
  const uint32_t place = lane.batch.AddRef(view);
  if (lane.refs.emplace(ref, place).second) lane.added.refs.push_back(ref);
  return place;
}

Lane RemotingCore::LaneOfPath(std::string_view path) const {
  if (large_.empty()) return Lane::kOrdinary;
  const absl::StatusOr<ActorSelection> elements = ActorSelection::Parse(path);
  if (!elements.ok()) return Lane::kOrdinary;
  for (const ActorSelection& pattern : large_) {
    if (elements->elements().size() != pattern.elements().size()) continue;
    bool matches = true;
    for (size_t i = 0; i < pattern.elements().size() && matches; ++i) {
      const SelectionElement& wanted = pattern.elements()[i];
      const std::string_view name = elements->elements()[i].text();
      matches = wanted.kind() == SelectionElement::Kind::kPattern ? wanted.Matches(name) : wanted.text() == name;
    }
    if (matches) return Lane::kLarge;
  }
  return Lane::kOrdinary;
}

size_t RemotingCore::MaxMessageBytes(std::string_view path) const {
  const WireLimits& limits = node_->options.limits;
  return MaxFrameBytes(LaneOfPath(path), limits) - kFrameHeaderBytes - limits.max_manifest_bytes;
}

Lane RemotingCore::LaneOf(NodeLink& link, ActorRef to) {
  if (large_.empty()) return Lane::kOrdinary;
  if (link.life() == 0) {
    const PathEntry* const entry = link.FindPath(to);
    return entry == nullptr ? Lane::kOrdinary : entry->lane;
  }
  // An actor whose path is not known when it is first sent to stays on the ordinary lane, as do those that there is no
  // room to remember.
  const uint64_t uid = link.UidOf(to);
  if (const auto known = link.lanes.find(uid); known != link.lanes.end()) return known->second;
  if (lanes_ < node_->options.max_paths) {
    link.lanes.emplace(uid, Lane::kOrdinary);
    ++lanes_;
  }
  return Lane::kOrdinary;
}

// Puts it into the batch, which may become too large by it: see TakeBack.
absl::Status RemotingCore::AddToBatch(Peer& peer, OutboundLane& lane, ActorRef to, ActorRef sender,
                                      const OutgoingMessage& outgoing) {
  for (const ActorRef ref : outgoing.refs()) {
    if (AddPlace(peer, lane, ref) == 0) return absl::InvalidArgumentError(ToAbsl(kRefsOfOthers));
  }
  if (lane.last_to.place == 0 || lane.last_to.ref != to) lane.last_to = {to, PlaceOf(peer, lane, to)};
  if (lane.last_to.place == 0) return absl::InvalidArgumentError("there is no such path any more");
  // No one is no answer to a message from another system of this process.
  if (lane.last_from.place == 0 || lane.last_from.ref != sender) lane.last_from = {sender, PlaceOf(peer, lane, sender)};
  const MessageCodec* const codec = outgoing.codec();
  if (lane.last_codec != codec) {
    auto manifest = lane.manifests.find(codec);
    if (manifest == lane.manifests.end()) {
      manifest = lane.manifests.emplace(codec, lane.batch.AddManifest(codec->manifest(), codec->version())).first;
      lane.added.codec = codec;
    }
    lane.last_codec = codec;
    lane.last_manifest = manifest->second;
  }
  lane.batch.AddMessage({.to = lane.last_to.place,
                         .from = lane.last_from.place,
                         .manifest = lane.last_manifest,
                         .payload = outgoing.payload()});
  return absl::OkStatus();
}

void RemotingCore::TakeBack(Peer& peer, OutboundLane& lane, const BatchWriter::Mark& mark) {
  lane.batch.Rollback(mark);
  for (const ActorRef ref : lane.added.refs) lane.refs.erase(ref);
  for (const OutboundLane::NodeKey& key : lane.added.nodes) lane.nodes.erase(key);
  for (const uint64_t uid : lane.added.told_paths) peer.told_paths.erase(uid);
  if (lane.added.codec != nullptr) lane.manifests.erase(lane.added.codec);
  lane.last_to = lane.last_from = {};
  lane.last_codec = nullptr;
}

bool RemotingCore::Append(Section& section, Peer& peer, ActorRef to, EnvelopePtr& message, OutgoingMessage& outgoing) {
  const RemoteOptions& options = node_->options;
  const WireLimits& limits = options.limits;
  const Lane which = LaneOf(NodeLink::Of(to), to);
  OutboundLane& lane = peer.lane(which);
  const size_t most = which == Lane::kLarge ? options.max_queued_large : options.max_queued_messages;
  if (lane.queued() >= most || lane.queued_bytes() >= options.max_queued_bytes) {
    LoseLater(section, to, std::move(message), DeadLetterReason::kMailboxFull,
              absl::ResourceExhaustedError(absl::StrCat(
                  lane.queued(), " messages, ", lane.queued_bytes(), " bytes, wait for the ", ToAbsl(NameOf(which)),
                  " stream to ", peer.parts.ToString(), "; send less, or raise ",
                  which == Lane::kLarge ? "RemoteOptions.max_queued_large" : "RemoteOptions.max_queued_messages",
                  " and max_queued_bytes")));
    return true;
  }
  absl::Status why = outgoing.status();
  const bool has_refs = !outgoing.refs().empty();
  const size_t max_frame = MaxFrameBytes(which, limits);
  while (why.ok()) {
    BatchWriter& batch = lane.batch;
    const bool is_full = batch.refs() + outgoing.refs().size() + 2 > limits.max_refs ||
                         batch.nodes() > limits.max_nodes / 2 || batch.manifests() >= limits.max_manifests ||
                         batch.messages() >= limits.max_messages;
    const bool is_misplaced = has_refs && outgoing.base() != batch.refs();
    if (is_full || (is_misplaced && outgoing.attempts() > 1)) SealBatch(peer, which);
    // Its references would stand elsewhere than it says. The second time it says that it begins a batch.
    if (has_refs && outgoing.base() != batch.refs()) return false;
    const bool was_empty = batch.empty();
    const BatchWriter::Mark mark = batch.mark();
    lane.added.Clear();
    why = AddToBatch(peer, lane, to, message->sender(), outgoing);
    if (why.ok() && batch.bytes() <= max_frame) {
      outgoing.set_places(batch.refs());
      lane.gathered->store(batch.bytes(), std::memory_order_relaxed);
      if (!lane.has_sent && lane.kept.size() + 1 == lane.queued()) {
        lane.kept.push_back({next_order_++, to, std::move(message)});
      }
      Pump(section, peer, which);
      return true;
    }
    // In a batch of its own it may have room.
    TakeBack(peer, lane, mark);
    if (was_empty) {
      if (why.ok()) {
        why = absl::OutOfRangeError(absl::StrCat("with its references it is larger than a frame of the ",
                                                 ToAbsl(NameOf(which)), " lane, ", max_frame, " bytes"));
      }
      break;
    }
    why = absl::OkStatus();
    SealBatch(peer, which);
  }
  why = WithHint(why, which, PathTextOf(NodeLink::Of(to), to));
  LogLater(section, LogLevel::kWarning,
           absl::StrCat(ToAbsl(message->type()->name()), " cannot leave this node: ", why.message()));
  LoseLater(section, to, std::move(message), DeadLetterReason::kNotSerializable, std::move(why));
  return true;
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

void RemotingCore::SendControl(Section& section, Peer& peer, const wire::ControlMessage& message, Lane which) {
  OutboundLane& lane = peer.lane(which);
  if (which == Lane::kControl && (lane.frames.size() >= node_->options.max_queued_control ||
                                  lane.queued_bytes() >= node_->options.max_queued_bytes)) {
    if (!IsQuarantined(peer)) Quarantine(section, peer, "too much waits for the control stream", false);
    return;
  }
  if (which != Lane::kControl) SealBatch(peer, which);  // It must not overtake.
  std::string frame = EncodeControl({.lane = which, .origin_uid = node_->uid, .target_uid = peer.uid}, message);
  lane.frame_bytes += frame.size();
  lane.frames.push_back({std::move(frame), 0});
  Pump(section, peer, which);
}

std::string RemotingCore::TakePending(Peer& peer) {
  PendingControl& pending = peer.pending;
  if (std::exchange(pending.request, false)) return RequestFrame(peer, Lane::kControl);
  if (!pending.refusal.empty()) return std::exchange(pending.refusal, {});
  wire::ControlMessage message;
  if (const uint64_t to = std::exchange(pending.response_to, 0); to != 0) {
    wire::HandshakeResponse& response = *message.mutable_handshake_response();
    FillNode(*response.mutable_from(), node_->parts, node_->uid);
    response.set_version(pending.response_version);
    response.set_features(node_->options.features);
    response.set_nonce(pending.response_nonce);
    return EncodeControl({.lane = Lane::kControl, .origin_uid = node_->uid, .target_uid = to}, message);
  }
  if (!std::exchange(pending.notice, false) || !IsQuarantined(peer)) return {};
  message.mutable_quarantine_notice()->set_quarantined_uid(peer.quarantined_uid);
  if (const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority)) {
    message.mutable_quarantine_notice()->set_reason(info->reason.substr(0, node_->options.limits.max_reason_bytes));
  }
  return EncodeControl({.lane = Lane::kControl, .origin_uid = node_->uid, .target_uid = peer.quarantined_uid}, message);
}

void RemotingCore::Pump(Section& section, Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  const bool is_pending = which == Lane::kControl && peer.pending.any();
  if (lane.stream == nullptr) {
    if (lane.has_work() || is_pending) OpenLane(section, peer, which);
    return;
  }
  if (!lane.is_open || lane.is_writing || lane.is_closing) return;
  if (!is_pending && lane.frames.empty()) {
    if (lane.batch.empty()) return;
    SealBatch(peer, which);
  }
  const Instant now = node_->Now();
  lane.last_use = now;
  if (now >= lane.last_handshake + node_->options.inject_handshake) {
    // Ahead of the rest: a peer that has been restarted answers with another uid.
    lane.is_writing = true;
    if (which == Lane::kControl) peer.pending.request = false;
    section.Write(lane.stream, RequestFrame(peer, which));
    return;
  }
  if (is_pending) {
    std::string frame = TakePending(peer);
    if (!frame.empty()) {
      lane.is_writing = true;
      section.Write(lane.stream, std::move(frame));
      return;
    }
    if (lane.frames.empty()) return;
  }
  if (!lane.has_sent) {
    lane.has_sent = true;
    // What they end with is users' code.
    if (!lane.kept.empty()) section.Later([sent = std::exchange(lane.kept, {})] {});
  }
  lane.is_writing = true;
  OutboundLane::Frame frame = std::move(lane.frames.front());
  lane.frames.pop_front();
  lane.frame_bytes -= frame.bytes.size();
  lane.frame_messages -= frame.messages;
  section.Write(lane.stream, std::move(frame.bytes));
}

void RemotingCore::OpenLane(Section& /*section*/, Peer& peer, Lane which) {
  OutboundLane& lane = peer.lane(which);
  const Instant now = node_->Now();
  if (lane.stream != nullptr || now < lane.retry_at) return;
  lane.serial = next_serial_++;
  lane.is_open = lane.is_writing = lane.is_closing = false;
  lane.last_use = now;
  lane.stream =
      transport_->Connect(peer.authority, which,
                          std::make_shared<LaneListener>(handle_, peer.authority, which, lane.serial, lane.gathered));
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
    messages += lane.queued() - lane.kept.size();
    lane.DropAll();
    for (WaitingMessage& kept : std::exchange(lane.kept, {})) {
      LoseLater(section, kept.to, std::move(kept.message), DeadLetterReason::kNewIncarnation);
    }
  }
  for (WaitingMessage& waiting : std::exchange(peer.backlog, {})) {
    LoseLater(section, waiting.to, std::move(waiting.message), DeadLetterReason::kNewIncarnation);
  }
  if (messages == 0) return;
  // They are bytes by now: who asked hears by the timeout.
  peer.lost += messages;
  section.Later([node = node_, messages, who = peer.parts.ToString(), why = std::string(why)] {
    if (ForeignMetrics* const metrics = node->system.tree().options().mailboxes.core().metrics()) {
      for (size_t i = 0; i < messages; ++i) metrics->CountDeadLetter(DeadLetterReason::kNewIncarnation);
    }
    node->Log(LogLevel::kWarning,
              absl::StrCat(messages, " messages to ", who, " that waited for a stream are lost: ", why));
    node->system.events().PublishToAll(QueuedMessagesLost{.node = who, .count = messages, .reason = why});
  });
}

void RemotingCore::OnOpened(Section& section, const PathAuthority& authority, Lane which, uint64_t serial) {
  Peer* const peer = FindPeer(authority);
  if (peer == nullptr || peer->lane(which).serial != serial) return;
  OutboundLane& lane = peer->lane(which);
  lane.is_open = true;
  lane.backoff = absl::ZeroDuration();
  if (lane.is_closing) return;
  // The first thing on every stream.
  if (which == Lane::kControl) peer->pending.request = false;
  lane.is_writing = true;
  lane.last_use = node_->Now();
  section.Write(lane.stream, RequestFrame(*peer, which));
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
  lane.is_open = lane.is_writing = lane.is_closing = lane.has_sent = false;
  const RemoteOptions& options = node_->options;
  const Instant now = node_->Now();
  if (!is_ours) {
    lane.backoff = std::min(options.max_backoff, std::max(options.min_backoff, lane.backoff * 2));
    lane.retry_at = now + lane.backoff;
    OnTrouble(section, *peer, std::string(why.message()),
              absl::StrCat("the ", ToAbsl(NameOf(which)), " stream to ", peer->parts.ToString(),
                           was_open ? " is gone: " : " could not be opened: "));
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
    if (peer->is_associated && peer->lane(Lane::kControl).stream == nullptr) LoseTouch(section, *peer);
  }
  const bool is_pending = which == Lane::kControl && (peer->pending.any() || !peer->watches.empty());
  if (lane.has_work() || is_pending) WantPeer(section, *peer);
}

void RemotingCore::LoseTouch(Section& section, Peer& peer) {
  const Instant now = node_->Now();
  peer.is_associated = false;
  authorities_->Disconnect(peer.authority, now).IgnoreError();
  const size_t room = node_->system.options().config.remoting->max_deferred_per_authority;
  for (OutboundLane& lane : peer.lanes) {
    const std::optional<AuthorityInfo> info = authorities_->Find(peer.authority);
    const size_t deferred = info.has_value() ? info->deferred : 0;
    // As bytes they wait as well. A flush is among them.
    if (lane.kept.empty() || is_flushing_ || lane.kept.size() > room - std::min(room, deferred)) continue;
    lane.DropAll();
    peer.told_paths.clear();
    for (WaitingMessage& kept : std::exchange(lane.kept, {})) {
      authorities_->Offer(peer.authority, DeferredMessage(kept.order, kept.to, std::move(kept.message), lost_), now)
          .status()
          .IgnoreError();
    }
  }
  DrainRegistry(section);
}

// From programs.

void RemotingCore::GiveBack(Section& section, const PathAuthority& authority,
                            absl::Span<const MessageType* const> types) {
  for (DeferredMessage& waiting : authorities_->Withdraw(authority, [types](const DeferredMessage& message) {
         return std::find(types.begin(), types.end(), message.envelope().type()) != types.end();
       })) {
    const ActorRef to = waiting.to();
    LoseLater(section, to, waiting.Take(), DeadLetterReason::kNewIncarnation);
  }
}

std::vector<PeerInfo> RemotingCore::Peers() const {
  std::vector<PeerInfo> infos;
  for (const auto& [authority, peer] : peers_) {
    PeerInfo info{.parts = peer->parts,
                  .uid = peer->uid,
                  .is_associated = peer->is_associated,
                  .is_quarantined = IsQuarantined(*peer),
                  .version = peer->version,
                  .features = peer->features,
                  .pending_system = peer->outbox.pending(),
                  .lost = peer->lost,
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
      node->system.events().PublishToAll(HarmlessQuarantine{.node = text, .system_uid = uid, .reason = why});
    });
  }
  Quarantine(section, *peer, std::string(reason), !is_harmless, is_harmless);
  return absl::OkStatus();
}

absl::Status RemotingCore::EndQuarantine(Section& section, const PathAuthority& authority) {
  Peer* const peer = FindPeer(authority);
  absl::Status ended = authorities_->Override(authority, authority.ToString(), node_->Now());
  if (ended.ok() && peer != nullptr) {
    peer->quarantined_uid = 0;
    peer->is_associated = true;
    peer->pending.notice = false;
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
    ++peer->flush;
    for (const Lane lane : {Lane::kOrdinary, Lane::kLarge}) {
      if (peer->lane(lane).stream == nullptr && !peer->lane(lane).has_work()) continue;
      wire::ControlMessage message;
      message.mutable_flush()->set_number(peer->flush);
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
      if (!is_late && peer->is_associated &&
          (peer->unflushed != 0 || peer->outbox.pending() != 0 || peer->is_draining)) {
        return;
      }
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
