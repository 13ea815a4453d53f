#include "fraktor/cluster/embedded/embedded_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/serialization/codec_context.h"
#include "fraktor/actor/serialization/encoder.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/watcher_table.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/membership/member_table.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {
namespace {

// So many tokens are allowed ahead by one write.
constexpr uint64_t kTokensAhead = 10'000;
// Who has not asked again for so long does not want to hear of topologies any more.
constexpr absl::Duration kWatchFor = absl::Seconds(10);
constexpr absl::Duration kTwinPause = absl::Seconds(10);
// Of an authority that was not looked at yet.
constexpr size_t kShownBytes = 300;
// Between two attempts to read a store that cannot be read: the first, and the longest. Each is twice the one before.
constexpr absl::Duration kMinReadPause = absl::Milliseconds(200);
constexpr absl::Duration kMaxReadPause = absl::Seconds(10);
// Of the texts of a record. Far above those of a pid and a small snapshot, and far below what a backend can read back.
constexpr size_t kMaxRecordBytes = size_t{1} << 20;

// What comes from a peer is looked at before anything is stored: what a backend refuses to read would keep the whole store
// from being read, for good.
absl::Status CheckRecord(const GrainKey& key, const ActivationEntry& entry) {
  FRAKTOR_RETURN_IF_ERROR(key.Check());
  const size_t bytes = entry.owner.size() + entry.record.pid.size() + entry.record.snapshot.size();
  if (bytes <= kMaxRecordBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("grain \"", key.ToString(), "\": a record of ", bytes, " bytes; ",
                                                 kMaxRecordBytes, " at most: keep a smaller snapshot"));
}

// As it is sent to other nodes; none if it is larger than any message may be.
std::optional<size_t> BytesOf(const EmbeddedTopology& topology) {
  std::string bytes;
  const CodecContext context;
  Encoder encoder(bytes, context);
  encoder.Value(topology);
  if (!encoder.ok()) return std::nullopt;
  return bytes.size();
}

class EmbeddedStoreActor final : public ActorInstance {
 public:
  explicit EmbeddedStoreActor(const EmbeddedStoreOptions& options) : options_(options) {}

  absl::Status PreStart(ActorContext& context) override {
    RuntimeToolbox& toolbox = context.system().toolbox();
    FRAKTOR_ASSIGN_OR_RETURN(timer_,
                             toolbox.SchedulePeriodic({.period = options_.tick_period},
                                                      [self = context.self()] { fraktor::Tell(self, Tick{}); }));
    Recover(context);
    return absl::OkStatus();
  }

  // There was a store before this one, whoever says that it is new.
  absl::Status PostRestart(ActorContext& context, const absl::Status& /*reason*/) override {
    is_first_life_ = false;
    return PreStart(context);
  }

  void PostStop(ActorContext& context) override { context.system().toolbox().CancelTimer(timer_); }

  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (message.Is<Flush>()) {
      OnFlush(context);
    } else if (message.Is<Tick>()) {
      OnTick(context);
    } else if (!Serve(context, message)) {
      return context.Unhandled(message);
    }
    return absl::OkStatus();
  }

 private:
  struct Flush {};
  struct Tick {};
  // What is known of the cluster.
  struct Tables {
    Tables(const EmbeddedStoreOptions& options, uint64_t first_epoch)
        : members({.term = options.term, .first_epoch = first_epoch}), placement(options.placement) {}
    MemberTable members;
    PlacementTable placement;
  };

  static Instant Now(ActorContext& context) { return context.system().toolbox().Now(); }

  static void LogError(ActorContext& context, const std::string& text) {
    const std::string path = context.Path();
    context.system().log().Log(LogLevel::kError,
                               {.at = context.system().toolbox().WallNow(), .path = path, .text = text});
  }

  // Of two that have one authority the one that is out joins again, and so on: at most one warning in kTwinPause.
  void WarnOfTwins(ActorContext& context, const absl::Status& why) {
    if (Now(context) - warned_at_ < kTwinPause) return;
    warned_at_ = Now(context);
    const std::string path = context.Path();
    const std::string text(why.message());
    context.system().log().Log(LogLevel::kWarning,
                               {.at = context.system().toolbox().WallNow(), .path = path, .text = text});
  }

  void Recover(ActorContext& context) {
    tables_.reset();
    changes_ = {};
    if (options_.backend == nullptr) {
      // Numbers that are above those of former lives, whatever they were.
      const auto date =
          static_cast<uint64_t>(std::max<int64_t>(1, absl::ToUnixMicros(context.system().toolbox().WallNow())));
      tables_.emplace(options_, date);
      tables_->placement.Restore(date, {});
      silent_until_ = options_.is_new && is_first_life_ ? Instant::InfinitePast() : Now(context) + options_.term;
    } else {
      absl::StatusOr<EmbeddedState> state = options_.backend->Load();
      if (!state.ok()) {
        OnUnreadable(context, state.status());
        return;
      }
      why_not_ = absl::OkStatus();
      read_pause_ = kMinReadPause;
      tables_.emplace(options_, state->epoch);
      tables_->members.Restore(state->epoch, state->members, Now(context));
      tables_->placement.Restore(state->token_limit, std::move(state->activations));
      token_limit_ = state->token_limit;
    }
    told_epoch_ = tables_->members.topology()->epoch();
  }

  // Tries again later, and says it when there is another reason.
  void OnUnreadable(ActorContext& context, const absl::Status& why) {
    read_again_at_ = Now(context) + read_pause_;
    read_pause_ = std::min(2 * read_pause_, kMaxReadPause);
    const absl::Status before = std::exchange(
        why_not_, absl::UnavailableError(absl::StrCat("the cluster's store cannot be read: ", why.message())));
    if (why_not_ != before) LogError(context, why_not_.ToString());
  }

  // OK if it may serve.
  absl::Status MayServe(ActorContext& context) {
    if (!tables_.has_value()) return why_not_;
    if (Now(context) < silent_until_) {
      return absl::UnavailableError(absl::StrCat(
          "the cluster's store has begun anew without what it knew, and waits for another ",
          absl::FormatDuration(silent_until_ - Now(context)), " until what it may have allowed before has ended"));
    }
    return absl::OkStatus();
  }

  bool Serve(ActorContext& context, Envelope& message) {
    return On<EmbeddedAcquire>(context, message) || On<EmbeddedRelease>(context, message) ||
           On<EmbeddedLoad>(context, message) || On<EmbeddedPut>(context, message) ||
           On<EmbeddedRemove>(context, message) || On<EmbeddedJoin>(context, message) ||
           On<EmbeddedRenew>(context, message) || On<EmbeddedBeginLeaving>(context, message) ||
           On<EmbeddedLeave>(context, message) || OnWatch(context, message);
  }

  template <class Request>
  bool On(ActorContext& context, Envelope& message) {
    const auto* const request = message.TryAs<Request>();
    if (request == nullptr) return false;
    const absl::Status may = MayServe(context);
    absl::StatusOr<typename Request::Reply> reply = typename Request::Reply();
    if (may.ok()) {
      reply = Do(*request, Now(context));
      if constexpr (std::is_same_v<Request, EmbeddedRenew>) {
        if (!reply.ok() && tables_->members.IsReplaced(request->member_id)) WarnOfTwins(context, reply.status());
      }
    } else {
      reply = may;
    }
    if (reply.ok()) {
      Answer(context, context.sender(), MakeEnvelope<typename Request::Reply>(ActorRef(), *std::move(reply)));
    } else {
      Answer(context, context.sender(), MakeEnvelope<ErrorReply>(ActorRef(), ErrorReply{reply.status()}));
    }
    AfterChange(context);
    return true;
  }

  absl::StatusOr<EmbeddedLease> Do(const EmbeddedAcquire& request, Instant now) {
    FRAKTOR_RETURN_IF_ERROR(request.key.Check());
    // A member does one thing at a time about a grain. If it holds the lock already, it has not heard of that, or has given
    // up: questions wait on their way while the store is away. The old token is worth nothing from here on.
    const std::optional<PlacementLease> held = tables_->placement.Held(request.key, now);
    if (held.has_value() && held->owner == request.owner) tables_->placement.Release(*held, now).IgnoreError();
    FRAKTOR_ASSIGN_OR_RETURN(const PlacementLease lease,
                             tables_->placement.TryAcquire(request.key, request.owner, now));
    if (options_.backend != nullptr && lease.token > token_limit_) {
      token_limit_ = lease.token + kTokensAhead;
      changes_.token_limit = token_limit_;
    }
    return EmbeddedLease{.token = lease.token, .ttl = options_.placement.lease_ttl};
  }
  absl::StatusOr<EmbeddedDone> Do(const EmbeddedRelease& request, Instant now) {
    FRAKTOR_RETURN_IF_ERROR(tables_->placement.Release(
        {.key = request.key, .owner = request.owner, .expires_at = now, .token = request.token}, now));
    return EmbeddedDone{};
  }
  absl::StatusOr<EmbeddedLoaded> Do(const EmbeddedLoad& request, Instant /*now*/) {
    LoadedActivation loaded = tables_->placement.Load(request.key);
    return EmbeddedLoaded{.exists = loaded.exists, .entry = std::move(loaded.entry)};
  }
  absl::StatusOr<EmbeddedDone> Do(const EmbeddedPut& request, Instant now) {
    FRAKTOR_RETURN_IF_ERROR(CheckRecord(request.key, request.entry));
    FRAKTOR_RETURN_IF_ERROR(tables_->placement.Store(request.key, request.entry, request.expected_token, now));
    if (options_.backend != nullptr) changes_.activations.emplace_back(request.key, request.entry);
    return EmbeddedDone{};
  }
  absl::StatusOr<EmbeddedDone> Do(const EmbeddedRemove& request, Instant /*now*/) {
    const LoadedActivation loaded = tables_->placement.Load(request.key);
    if (!loaded.exists || loaded.entry.token != request.token) return EmbeddedDone{};
    tables_->placement.Remove(request.key, request.token);
    if (options_.backend != nullptr) changes_.activations.emplace_back(request.key, std::nullopt);
    return EmbeddedDone{};
  }
  absl::StatusOr<EmbeddedTerm> Do(const EmbeddedJoin& request, Instant now) {
    FRAKTOR_RETURN_IF_ERROR(CheckRoomFor(request, now));
    FRAKTOR_ASSIGN_OR_RETURN(Member member, tables_->members.Join({.authority = request.authority,
                                                                   .system_uid = request.system_uid,
                                                                   .kinds = request.kinds,
                                                                   .oldest_kinds = request.oldest_kinds},
                                                                  now));
    return EmbeddedTerm{.member = std::move(member), .term = options_.term};
  }
  absl::StatusOr<EmbeddedTerm> Do(const EmbeddedRenew& request, Instant now) {
    FRAKTOR_ASSIGN_OR_RETURN(Member member, tables_->members.Renew(request.member_id, now));
    return EmbeddedTerm{.member = std::move(member), .term = options_.term};
  }
  absl::StatusOr<EmbeddedDone> Do(const EmbeddedBeginLeaving& request, Instant now) {
    FRAKTOR_RETURN_IF_ERROR(tables_->members.BeginLeaving(request.member_id, now));
    return EmbeddedDone{};
  }
  absl::StatusOr<EmbeddedDone> Do(const EmbeddedLeave& request, Instant /*now*/) {
    tables_->members.Leave(request.member_id);
    return EmbeddedDone{};
  }

  // Whether the list of members could still be sent: nobody would hear of one that is too large.
  absl::Status CheckRoomFor(const EmbeddedJoin& request, Instant now) {
    tables_->members.Expire(now);
    const ClusterTopologyPtr& topology = tables_->members.topology();
    EmbeddedTopology next{.epoch = topology->epoch() + 1, .members = topology->members()};
    std::erase_if(next.members, [&](const Member& member) { return member.authority == request.authority; });
    next.members.push_back({.authority = request.authority,
                            .incarnation = next.epoch,
                            .system_uid = request.system_uid,
                            .kinds = request.kinds,
                            .oldest_kinds = request.oldest_kinds});
    const std::optional<size_t> bytes = BytesOf(next);
    if (bytes.has_value() && *bytes <= options_.max_topology_bytes) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kResourceExhausted, MembershipError::kFull,
        absl::StrCat("\"", request.authority.substr(0, kShownBytes), "\" cannot join: the list of ",
                     next.members.size(), " members would have ",
                     bytes.has_value() ? absl::StrCat(*bytes) : std::string("far too many"),
                     " bytes, and nodes are told of ", options_.max_topology_bytes,
                     " at most: let members have fewer kinds, or raise EmbeddedStoreOptions::max_topology_bytes and "
                     "WireLimits::max_frame_bytes of all nodes"));
  }

  bool OnWatch(ActorContext& context, Envelope& message) {
    const auto* const watch = message.TryAs<EmbeddedWatch>();
    if (watch == nullptr) return false;
    if (!MayServe(context).ok() || context.sender().IsNoOne()) return true;
    watchers_.Keep(context.sender(), Now(context) + kWatchFor);
    if (watch->known_epoch != tables_->members.topology()->epoch()) Answer(context, context.sender(), News());
    return true;
  }

  EnvelopePtr News() const {
    const ClusterTopologyPtr& topology = tables_->members.topology();
    return MakeEnvelope<EmbeddedTopology>(ActorRef(),
                                          EmbeddedTopology{.epoch = topology->epoch(), .members = topology->members()});
  }

  void OnTick(ActorContext& context) {
    const Instant now = Now(context);
    if (!tables_.has_value()) {
      if (now >= read_again_at_) Recover(context);
      return;
    }
    watchers_.Expire(now);
    tables_->members.Expire(now);
    AfterChange(context);
  }

  // What has changed is told, and written down before.
  void AfterChange(ActorContext& context) {
    if (!tables_.has_value()) return;
    const ClusterTopologyPtr& topology = tables_->members.topology();
    if (topology->epoch() != told_epoch_) {
      told_epoch_ = topology->epoch();
      if (options_.backend != nullptr) {
        changes_.epoch = topology->epoch();
        changes_.members = topology->members();
      }
      for (const WatcherTable<ActorRef>::Watcher& watcher : watchers_) Answer(context, watcher.ref, News());
    }
    if (changes_.empty() || is_flushing_) return;
    // What is in the mailbox already goes along.
    is_flushing_ = true;
    context.Tell(context.self(), Flush{});
  }

  // Behind what is not written yet: an answer must not tell what may be forgotten.
  void Answer(ActorContext& context, ActorRef to, EnvelopePtr answer) {
    if (to.IsNoOne()) return;
    answer->set_sender(context.self());
    if (options_.backend == nullptr) {
      ActorContext::worker().Send(to, answer.release());
      return;
    }
    answers_.emplace_back(to, std::move(answer));
    if (changes_.empty() && !is_flushing_) {
      // A change of the request itself comes after this: so it is looked at once more.
      is_flushing_ = true;
      context.Tell(context.self(), Flush{});
    }
  }

  void OnFlush(ActorContext& context) {
    is_flushing_ = false;
    std::vector<std::pair<ActorRef, EnvelopePtr>> answers = std::move(answers_);
    answers_.clear();
    const EmbeddedChanges changes = std::exchange(changes_, {});
    absl::Status written = absl::OkStatus();
    if (!changes.empty()) written = options_.backend->Write(changes);
    if (!written.ok()) {
      LogError(context, absl::StrCat("the cluster's store cannot be written: ", written.ToString()));
      // What is there is what counts.
      Recover(context);
      for (auto& [to, answer] : answers) {
        if (answer->Is<EmbeddedTopology>()) continue;
        context.Tell(to, ErrorReply{absl::UnavailableError(
                             absl::StrCat("the cluster's store cannot be written: ", written.message()))});
      }
      return;
    }
    for (auto& [to, answer] : answers) ActorContext::worker().Send(to, answer.release());
  }

  const EmbeddedStoreOptions options_;
  TimerId timer_;
  bool is_first_life_ = true;
  std::optional<Tables> tables_;
  absl::Status why_not_;  // there are no tables
  Instant read_again_at_ = Instant::InfinitePast();
  absl::Duration read_pause_ = kMinReadPause;
  Instant silent_until_ = Instant::InfinitePast();
  uint64_t token_limit_ = 0;
  uint64_t told_epoch_ = 0;
  WatcherTable<ActorRef> watchers_;
  // What waits for the next write, and who waits for it.
  EmbeddedChanges changes_;
  std::vector<std::pair<ActorRef, EnvelopePtr>> answers_;
  bool is_flushing_ = false;
  Instant warned_at_ = Instant::InfinitePast();
};

}  // namespace

absl::Status EmbeddedStore::Start(ActorSystem& system, const EmbeddedStoreOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"EmbeddedStoreOptions::term", options.term},
                                         {"EmbeddedStoreOptions::tick_period", options.tick_period},
                                         {"EmbeddedStoreOptions::placement.lease_ttl", options.placement.lease_ttl}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"EmbeddedStoreOptions::max_topology_bytes", options.max_topology_bytes}}));
  // It waits for a disk.
  const PropsPtr props = MakeProps<EmbeddedStoreActor>(
      {.dispatcher = options.backend != nullptr && system.toolbox().has_threads() ? DispatcherChoice::kPinned
                                                                                  : DispatcherChoice::kAutomatic},
      options);
  return system.TrySpawnSystemActor(*props, "cluster-store").status();
}

}  // namespace fraktor::inline v0
