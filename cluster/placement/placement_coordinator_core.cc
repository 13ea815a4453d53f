#include "fraktor/cluster/placement/placement_coordinator_core.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// Whether it is certain that nothing was stored.
bool IsRefusal(const absl::Status& status) { return ErrorKindOf<ActivationStorageError>(status).has_value(); }

absl::Status Mismatch(const PlacementCommandResult& result, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(ResultName(result)), " of request ", RequestIdOf(result).value, ": ", ToAbsl(why)));
}

}  // namespace

PlacementCoordinatorCore::PlacementCoordinatorCore(const PlacementOptions& options)
    : options_(options), registry_(options.idle_ttl), cache_(options.pid_cache) {}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::StartMember(const Member& self, Instant now) {
  if (state_ != PlacementCoordinatorState::kStopped) {
    return absl::FailedPreconditionError(absl::StrCat("placement is started already, as \"", self_id_, "\""));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckMember(self));
  if (registry_.size() != 0) {
    return absl::FailedPreconditionError(absl::StrCat(registry_.size(), " grains of \"", self_id_,
                                                      "\" are still being stopped; start again when they have been"));
  }
  Outcome outcome;
  is_client_ = false;
  self_ = self;
  self_id_ = self.id();
  was_in_topology_ = is_leaving_ = has_expired_ = false;
  valid_until_ = Instant::InfiniteFuture();
  SettleState(outcome, now);
  return outcome;
}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::StartClient(Instant now) {
  if (state_ != PlacementCoordinatorState::kStopped) {
    return absl::FailedPreconditionError("placement is started already");
  }
  Outcome outcome;
  is_client_ = true;
  self_ = Member();
  self_id_.clear();
  was_in_topology_ = is_leaving_ = has_expired_ = false;
  SettleState(outcome, now);
  return outcome;
}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::Stop(Instant now) {
  if (state_ == PlacementCoordinatorState::kStopped) return absl::FailedPreconditionError("placement is not started");
  Outcome outcome;
  AbortAll(LookupError::kNotStarted, "placement has been stopped", outcome);
  SetState(PlacementCoordinatorState::kStopped, outcome, now);
  UpdateMayRunUntil();
  StopAll();
  PumpStops(outcome, now);
  cache_.Clear();
  return outcome;
}

PlacementCoordinatorOutcome PlacementCoordinatorCore::UpdateTopology(ClusterTopologyPtr topology, Instant now) {
  Outcome outcome;
  if (topology->epoch() < topology_->epoch() || topology == topology_) return outcome;
  for (const Member& member : topology_->members()) {
    const std::string id = member.id();
    if (topology->FindId(id) == nullptr) cache_.RemoveMember(id, now);
  }
  topology_ = std::move(topology);
  if (state_ == PlacementCoordinatorState::kStopped) return outcome;
  const bool was_member = was_in_topology_;
  SettleState(outcome, now);
  if (is_client_) return outcome;
  if (was_member && SelfInTopology() == nullptr) {
    // For the others this member has left for good: they activate anew what it had.
    was_in_topology_ = false;
    AbortAll(LookupError::kNotReady, "this member has left", outcome);
    StopAll();
    PumpStops(outcome, now);
  }
  return outcome;
}

PlacementCoordinatorOutcome PlacementCoordinatorCore::RenewMembership(Instant valid_until, Instant now) {
  valid_until_ = valid_until;
  UpdateMayRunUntil();
  if (now < may_run_until_) has_expired_ = false;
  return Tick(now);
}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::BeginLeaving(Instant now) {
  if (state_ == PlacementCoordinatorState::kStopped || is_client_) {
    return absl::FailedPreconditionError("only a member that is started can leave");
  }
  Outcome outcome;
  if (is_leaving_) return outcome;
  is_leaving_ = true;
  AbortAll(LookupError::kNotReady, "this member is leaving", outcome);
  StopAll();
  PumpStops(outcome, now);
  return outcome;
}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::Resolve(const GrainKey& key, Instant now,
                                                                              const ResolveOptions& options) {
  using Code = absl::StatusCode;
  if (state_ == PlacementCoordinatorState::kStopped) {
    return MakeLookupError(LookupError::kNotStarted, Code::kFailedPrecondition, key, why_stopped_);
  }
  if (state_ == PlacementCoordinatorState::kNotReady) {
    return MakeLookupError(LookupError::kNotReady, Code::kUnavailable, key, "no members are known yet; try again");
  }
  FRAKTOR_RETURN_IF_ERROR(key.Check());
  Outcome outcome;
  if (now < may_run_until_) {
    if (PlacementResolutionPtr here = registry_.Find(key, now)) {
      Resolved(std::move(here), outcome, now);
      return outcome;
    }
  } else if (registry_.Peek(key) != nullptr) {
    return MakeLookupError(LookupError::kNotReady, Code::kUnavailable, key,
                           "this node is no member any more, and its grains are being stopped; try again");
  }
  if (busy_.contains(key)) {
    return MakeLookupError(LookupError::kPending, Code::kUnavailable, key, "it is being found out; try again");
  }
  if (options.is_redirected) {
    cache_.Remove(key, PidCacheEvent::Reason::kRemoved, now);
  } else if (PlacementResolutionPtr cached = cache_.Find(key, now)) {
    Resolved(std::move(cached), outcome, now);
    return outcome;
  }

  const Member* const owner = RendezvousHasher::OwnerOf(*topology_, key);
  if (owner == nullptr) {
    return MakeLookupError(LookupError::kUnknownKind, Code::kNotFound, key,
                           absl::StrCat("none of the ", topology_->members().size(),
                                        " members hosts this kind; add it to ClusterOptions::kinds of those that may"));
  }
  const bool is_ours = !is_client_ && (IsSelf(*owner) || options.is_redirected);
  if (!is_ours) {
    Resolved(MakeResolution(key, *owner, PlacementLocality::kRemote, {}, 0, now), outcome, now);
    return outcome;
  }
  if (!MayActivate(key, now)) {
    return MakeLookupError(LookupError::kNotReady, Code::kUnavailable, key,
                           absl::StrCat("member \"", self_id_, "\" takes no grains of this kind now; try again"));
  }
  if (busy_.size() >= options_.max_busy_keys) {
    return MakeLookupError(LookupError::kPending, Code::kResourceExhausted, key,
                           absl::StrCat(busy_.size(), " other grains are being looked for; try again"));
  }
  const Works::iterator work = BeginWork(key);
  work->second.is_lookup = true;
  outcome.commands.push_back(TryAcquireLock{.request_id = {work->first}, .key = key, .owner = self_id_, .now = now});
  return outcome;
}

void PlacementCoordinatorCore::Learn(PlacementResolutionPtr resolution, Instant now) {
  if (resolution->pid.empty() || resolution->locality != PlacementLocality::kRemote ||
      topology_->FindId(resolution->decision.owner) == nullptr || busy_.contains(resolution->decision.key)) {
    return;
  }
  cache_.Put(std::move(resolution), now);
}

absl::StatusOr<PlacementCoordinatorOutcome> PlacementCoordinatorCore::HandleCommandResult(PlacementCommandResult result,
                                                                                          Instant now) {
  const Works::iterator work = works_.find(RequestIdOf(result).value);
  Outcome outcome;
  if (work == works_.end()) {
    if (std::holds_alternative<LockReleased>(result) && abandoned_releases_.erase(RequestIdOf(result).value) != 0) {
      return outcome;
    }
    return Mismatch(result, "no such request is under way");
  }
  const absl::Status handled = std::visit([&](auto& each) { return Handle(work, each, outcome, now); }, result);
  if (!handled.ok()) return Mismatch(result, ToStd(handled.message()));
  return outcome;
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, LockAcquired& result, Outcome& outcome, Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kAcquiring) return absl::InvalidArgumentError("the lock has been answered before");
  if (!result.result.ok()) {
    const std::string reason(result.result.status().message());
    Event(PlacementEvent::Kind::kLockDenied, work, reason, outcome, now);
    Fail(work, MakeLookupError(LookupError::kLockDenied, absl::StatusCode::kUnavailable, work.key, reason), outcome);
    Advance(at, outcome);
    return absl::OkStatus();
  }
  work.lease = *std::move(result.result);
  work.token = work.lease.token;
  work.must_release = true;
  if (work.is_aborted) {
    Advance(at, outcome);
    return absl::OkStatus();
  }
  if (work.lease.expires_at <= now) {
    constexpr std::string_view kReason = "the lease was over when it came";
    Event(PlacementEvent::Kind::kLockDenied, work, kReason, outcome, now);
    Fail(work, MakeLookupError(LookupError::kLockDenied, absl::StatusCode::kUnavailable, work.key, kReason), outcome);
    Advance(at, outcome);
    return absl::OkStatus();
  }
  work.phase = Phase::kLoading;
  outcome.commands.push_back(LoadActivation{.request_id = {at->first}, .key = work.key});
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, ActivationLoaded& result, Outcome& outcome,
                                              Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kLoading) return absl::InvalidArgumentError("nothing is being loaded for it");
  const auto give_up = [&](LookupError error, std::string_view reason) {
    Fail(work, MakeLookupError(error, absl::StatusCode::kUnavailable, work.key, reason), outcome);
    Advance(at, outcome);
    return absl::OkStatus();
  };
  if (!result.result.ok()) {
    const std::string reason(result.result.status().message());
    Event(PlacementEvent::Kind::kStorageFailed, work, reason, outcome, now);
    return give_up(LookupError::kStorageFailed, reason);
  }
  if (work.is_aborted) {
    Advance(at, outcome);
    return absl::OkStatus();
  }
  const LoadedActivation& loaded = *result.result;
  if (loaded.exists && loaded.entry.owner != self_id_) {
    if (const Member* const owner = topology_->FindId(loaded.entry.owner)) {
      // It lives: a join does not move it.
      PlacementResolutionPtr there =
          MakeResolution(work.key, *owner, PlacementLocality::kRemote, loaded.entry.record, loaded.entry.token, now);
      cache_.Put(there, now);
      outcome.settled.push_back(SettledLookup{.key = work.key, .resolution = there});
      work.is_lookup = false;
      Resolved(std::move(there), outcome, now);
      outcome.resolution = outcome.settled.back().resolution;
      Advance(at, outcome);
      return absl::OkStatus();
    }
    if (topology_->epoch() < loaded.entry.epoch) {
      return give_up(LookupError::kNotReady,
                     absl::StrCat("it runs on \"", loaded.entry.owner,
                                  "\", which is not known here: this node knows "
                                  "the members of epoch ",
                                  topology_->epoch(), ", the record is of ", loaded.entry.epoch, "; try again"));
    }
  }
  if (!MayActivate(work.key, now)) return give_up(LookupError::kNotReady, "this member takes no grains now; try again");
  if (work.lease.expires_at <= now) {
    constexpr std::string_view kReason = "the lease was over before the record was read";
    Event(PlacementEvent::Kind::kLockDenied, work, kReason, outcome, now);
    return give_up(LookupError::kLockDenied, kReason);
  }
  work.expected_token = loaded.exists ? loaded.entry.token : 0;
  work.phase = Phase::kEnsuring;
  outcome.commands.push_back(
      EnsureActivation{.request_id = {at->first}, .key = work.key, .owner = self_id_, .token = work.token});
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, ActivationEnsured& result, Outcome& outcome,
                                              Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kEnsuring) return absl::InvalidArgumentError("nothing is being activated for it");
  if (!result.result.ok()) {
    Event(PlacementEvent::Kind::kActivationFailed, work, ToStd(result.result.status().message()), outcome, now);
    Fail(work, Annotate(result.result.status(), absl::StrCat("grain \"", work.key.ToString(), "\"")), outcome);
    // If the answer is missing only, it may have been started.
    work.must_stop = true;
    Advance(at, outcome);
    return absl::OkStatus();
  }
  if (work.is_aborted) {
    work.must_stop = true;
    Advance(at, outcome);
    return absl::OkStatus();
  }
  work.record = *std::move(result.result);
  work.phase = Phase::kStoring;
  outcome.commands.push_back(StoreActivation{.request_id = {at->first},
                                             .key = work.key,
                                             .entry = {.owner = self_id_,
                                                       .record = work.record,
                                                       .observed_at = now,
                                                       .token = work.token,
                                                       .epoch = topology_->epoch()},
                                             .expected_token = work.expected_token});
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, ActivationStored& result, Outcome& outcome,
                                              Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kStoring) return absl::InvalidArgumentError("nothing is being stored for it");
  if (!result.result.ok()) {
    const std::string reason(result.result.message());
    Event(PlacementEvent::Kind::kStorageFailed, work, reason, outcome, now);
    Fail(work, MakeLookupError(LookupError::kStorageFailed, absl::StatusCode::kUnavailable, work.key, reason), outcome);
    work.must_stop = true;
    work.must_remove = !IsRefusal(result.result);
    Advance(at, outcome);
    return absl::OkStatus();
  }
  if (work.is_aborted || now >= may_run_until_) {
    Fail(work,
         MakeLookupError(LookupError::kNotReady, absl::StatusCode::kUnavailable, work.key,
                         "it could not stay on this member; try again"),
         outcome);
    work.must_stop = work.must_remove = true;
    Advance(at, outcome);
    return absl::OkStatus();
  }
  PlacementResolutionPtr here =
      MakeResolution(work.key, self_, PlacementLocality::kLocal, work.record, work.token, now);
  const bool is_kept =
      std::find(options_.kept_kinds.begin(), options_.kept_kinds.end(), work.key.kind()) != options_.kept_kinds.end();
  registry_.Add(here, {.replaces_another = work.expected_token != 0, .is_kept = is_kept}, now);
  Event(PlacementEvent::Kind::kActivated, work, {}, outcome, now);
  outcome.settled.push_back(SettledLookup{.key = work.key, .resolution = here});
  work.is_lookup = false;
  Resolved(std::move(here), outcome, now);
  Advance(at, outcome);
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, ActivationStopped& result, Outcome& outcome,
                                              Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kStopping) return absl::InvalidArgumentError("nothing is being stopped for it");
  work.must_stop = false;
  if (!result.result.ok()) {
    // It may still run: its record stays, so that nobody else activates it.
    Event(PlacementEvent::Kind::kActivationFailed, work, absl::StrCat("it does not stop: ", result.result.message()),
          outcome, now);
    work.must_stop_later = true;
    if (work.counts_as_stop) {
      work.counts_as_stop = false;
      --stops_;
    }
  } else {
    if (work.is_passivation) Event(PlacementEvent::Kind::kPassivated, work, {}, outcome, now);
    if (IsMembershipOver(now)) work.must_remove = false;
  }
  Advance(at, outcome);
  PumpStops(outcome, now);
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, ActivationRemoved& result, Outcome& outcome,
                                              Instant now) {
  Work& work = at->second;
  if (work.phase != Phase::kRemoving) return absl::InvalidArgumentError("nothing is being removed for it");
  work.must_remove = false;
  if (!result.result.ok()) {
    Event(PlacementEvent::Kind::kStorageFailed, work, ToStd(result.result.message()), outcome, now);
    // One that is forgotten here is found when somebody is sent here for it.
    if (leftovers_.size() >= kMaxLeftovers) leftovers_.pop_front();
    leftovers_.push_back(Leftover{.key = work.key, .token = work.token});
  }
  Advance(at, outcome);
  PumpStops(outcome, now);
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorCore::Handle(Works::iterator at, LockReleased& result, Outcome& outcome, Instant now) {
  Work& work = at->second;
  if (work.has_abandoned_release) {
    work.has_abandoned_release = false;
    return absl::OkStatus();
  }
  if (work.phase != Phase::kReleasing) return absl::InvalidArgumentError("nothing is being released for it");
  work.must_release = false;
  if (!result.result.ok()) {
    Event(PlacementEvent::Kind::kReleaseFailed, work, ToStd(result.result.message()), outcome, now);
  }
  Advance(at, outcome);
  PumpStops(outcome, now);
  return absl::OkStatus();
}

PlacementCoordinatorOutcome PlacementCoordinatorCore::ActivationEnded(const GrainKey& key, uint64_t token, Instant now,
                                                                      const absl::Status& why) {
  Outcome outcome;
  if (const auto busy = busy_.find(key); busy != busy_.end()) {
    const Works::iterator at = works_.find(busy->second);
    Work& work = at->second;
    if (work.token != token) return outcome;
    if (work.phase == Phase::kEnsuring || work.phase == Phase::kStoring) {
      // Its end came before its beginning was told.
      work.is_aborted = true;
      if (!why.ok()) {
        Event(PlacementEvent::Kind::kActivationFailed, work, ToStd(why.message()), outcome, now);
        Fail(work, why, outcome);
      }
    } else if (work.phase == Phase::kReleasing && registry_.Remove(key, VirtualActorEvent::Kind::kEnded, now)) {
      work.must_remove = true;
    } else if (work.phase == Phase::kWaitingToStop) {
      work.must_stop_later = false;
      Advance(at, outcome);
    }
    return outcome;
  }
  const PlacementResolutionPtr here = registry_.Peek(key);
  if (here == nullptr || here->token != token) return outcome;
  registry_.Remove(key, VirtualActorEvent::Kind::kEnded, now);
  const Works::iterator work = BeginWork(key);
  work->second.token = token;
  work->second.must_remove = true;
  Advance(work, outcome);
  return outcome;
}

PlacementCoordinatorOutcome PlacementCoordinatorCore::Passivate(const GrainKey& key, Instant now) {
  Outcome outcome;
  BeginStop(key, /*is_passivation=*/true, outcome, now);
  return outcome;
}

PlacementCoordinatorOutcome PlacementCoordinatorCore::Tick(Instant now) {
  Outcome outcome;
  if (!is_client_ && !has_expired_ && was_in_topology_ && now >= may_run_until_ &&
      state_ != PlacementCoordinatorState::kStopped) {
    has_expired_ = true;
    AbortAll(LookupError::kNotReady, "the membership of this node could not be renewed", outcome);
    StopAll();
  }
  std::vector<uint64_t> stopped_later;
  for (const auto& [id, work] : works_) {
    if (work.phase == Phase::kWaitingToStop) stopped_later.push_back(id);
  }
  for (const uint64_t id : stopped_later) {
    const Works::iterator work = works_.find(id);
    work->second.must_stop_later = false;
    work->second.must_stop = true;
    Advance(work, outcome);
  }
  for (size_t left = leftovers_.size(); left > 0 && stops_ < options_.max_stops; --left) {
    const Leftover leftover = std::move(leftovers_.front());
    leftovers_.pop_front();
    // One that runs here has replaced the record.
    if (registry_.Peek(leftover.key) != nullptr) continue;
    if (busy_.contains(leftover.key)) {
      leftovers_.push_back(leftover);
      continue;
    }
    const Works::iterator work = BeginWork(leftover.key);
    work->second.token = leftover.token;
    work->second.must_remove = true;
    work->second.counts_as_stop = true;
    ++stops_;
    Advance(work, outcome);
  }
  if (stops_ < options_.max_stops) {
    for (const GrainKey& key : registry_.TakeIdle(now, options_.max_stops - stops_)) {
      BeginStop(key, /*is_passivation=*/true, outcome, now);
    }
  }
  PumpStops(outcome, now);
  return outcome;
}

PlacementSnapshot PlacementCoordinatorCore::Snapshot() const {
  return PlacementSnapshot{.state = state_,
                           .self = self_id_,
                           .epoch = topology_->epoch(),
                           .members = topology_->members().size(),
                           .activations = registry_.size(),
                           .busy_keys = busy_.size(),
                           .waiting_stops = to_stop_.size(),
                           .cached_pids = cache_.size(),
                           .passivations = passivations_};
}

bool PlacementCoordinatorCore::IsSelf(const Member& member) const {
  return member.authority == self_.authority && member.incarnation == self_.incarnation;
}

const Member* PlacementCoordinatorCore::SelfInTopology() const {
  const Member* const there = topology_->FindAuthority(self_.authority);
  return there != nullptr && IsSelf(*there) ? there : nullptr;
}

bool PlacementCoordinatorCore::MayActivate(const GrainKey& key, Instant now) const {
  if (is_client_ || is_leaving_ || now >= may_run_until_) return false;
  for (const ClusterTopology::Host& host : topology_->HostsOf(key.kind())) {
    if (IsSelf(topology_->members()[host.member])) return true;
  }
  return false;
}

bool PlacementCoordinatorCore::IsMembershipOver(Instant now) const {
  return SelfInTopology() == nullptr || now >= valid_until_ + -options_.membership_margin;
}

void PlacementCoordinatorCore::UpdateMayRunUntil() {
  const bool is_member = state_ == PlacementCoordinatorState::kMember && !is_client_ && SelfInTopology() != nullptr;
  may_run_until_ = is_member ? valid_until_ + -options_.membership_margin : Instant::InfinitePast();
}

void PlacementCoordinatorCore::SetState(PlacementCoordinatorState state, Outcome& outcome, Instant now) {
  if (state_ == state) return;
  state_ = state;
  if (!is_heard_) return;
  outcome.events.push_back(
      PlacementEvent{.kind = PlacementEvent::Kind::kStateChanged, .state = state, .observed_at = now});
}

// Started, and somebody is known or not.
void PlacementCoordinatorCore::SettleState(Outcome& outcome, Instant now) {
  if (topology_->empty()) {
    SetState(PlacementCoordinatorState::kNotReady, outcome, now);
  } else {
    SetState(is_client_ ? PlacementCoordinatorState::kClient : PlacementCoordinatorState::kMember, outcome, now);
  }
  if (!is_client_ && SelfInTopology() != nullptr) was_in_topology_ = true;
  UpdateMayRunUntil();
}

PlacementCoordinatorCore::Works::iterator PlacementCoordinatorCore::BeginWork(const GrainKey& key) {
  const uint64_t id = next_id_++;
  busy_.emplace(key, id);
  const Works::iterator work = works_.emplace_hint(works_.end(), id, Work());
  work->second.key = key;
  return work;
}

void PlacementCoordinatorCore::Advance(Works::iterator at, Outcome& outcome) {
  Work& work = at->second;
  const PlacementRequestId id{at->first};
  if (work.must_stop) {
    work.phase = Phase::kStopping;
    outcome.commands.push_back(StopActivation{.request_id = id, .key = work.key, .token = work.token});
  } else if (work.must_remove && !work.must_stop_later) {
    work.phase = Phase::kRemoving;
    outcome.commands.push_back(RemoveActivation{.request_id = id, .key = work.key, .token = work.token});
  } else if (work.must_release) {
    work.phase = Phase::kReleasing;
    outcome.commands.push_back(ReleaseLock{.request_id = id, .lease = work.lease});
  } else if (work.must_stop_later) {
    work.phase = Phase::kWaitingToStop;
  } else {
    if (work.is_lookup) {
      Fail(work,
           MakeLookupError(LookupError::kPending, absl::StatusCode::kUnavailable, work.key,
                           "it ended while it was being started; try again"),
           outcome);
    }
    if (work.counts_as_stop) --stops_;
    if (work.has_abandoned_release) abandoned_releases_.insert(at->first);
    busy_.erase(work.key);
    outcome.idle_keys.push_back(std::move(work.key));
    works_.erase(at);
  }
}

void PlacementCoordinatorCore::Fail(Work& work, const absl::Status& status, Outcome& outcome) {
  if (!work.is_lookup) return;
  work.is_lookup = false;
  outcome.settled.push_back(SettledLookup{.key = work.key, .status = status});
}

void PlacementCoordinatorCore::AbortAll(LookupError error, std::string_view why, Outcome& outcome) {
  for (auto& [id, work] : works_) {
    work.is_aborted = true;
    Fail(work, MakeLookupError(error, absl::StatusCode::kUnavailable, work.key, why), outcome);
  }
}

void PlacementCoordinatorCore::StopAll() {
  std::vector<GrainKey> keys = registry_.Keys();
  to_stop_.assign(std::make_move_iterator(keys.begin()), std::make_move_iterator(keys.end()));
}

void PlacementCoordinatorCore::PumpStops(Outcome& outcome, Instant now) {
  while (stops_ < options_.max_stops && !to_stop_.empty()) {
    const GrainKey key = std::move(to_stop_.front());
    to_stop_.pop_front();
    BeginStop(key, /*is_passivation=*/false, outcome, now);
  }
}

void PlacementCoordinatorCore::BeginStop(const GrainKey& key, bool is_passivation, Outcome& outcome, Instant now) {
  const PlacementResolutionPtr here = registry_.Peek(key);
  if (here == nullptr) return;
  const auto busy = busy_.find(key);
  const bool is_new = busy == busy_.end();
  const Works::iterator at = is_new ? BeginWork(key) : works_.find(busy->second);
  // The only work that there can be about a key that runs here is giving its lock back.
  Work& work = at->second;
  work.token = here->token;
  work.is_passivation = is_passivation;
  if (is_passivation) ++passivations_;
  work.must_stop = work.must_remove = true;
  if (!work.counts_as_stop) {
    work.counts_as_stop = true;
    ++stops_;
  }
  registry_.Remove(key, is_passivation ? VirtualActorEvent::Kind::kPassivated : VirtualActorEvent::Kind::kEnded, now);
  if (!is_new && work.phase == Phase::kReleasing && IsMembershipOver(now)) {
    work.must_release = false;
    work.has_abandoned_release = true;
    Advance(at, outcome);
  } else if (is_new) {
    Advance(at, outcome);
  }
}

void PlacementCoordinatorCore::Event(PlacementEvent::Kind kind, const Work& work, std::string_view reason,
                                     Outcome& outcome, Instant now) {
  if (!is_heard_) return;
  outcome.events.push_back(PlacementEvent{.kind = kind,
                                          .key = work.key,
                                          .authority = self_.authority,
                                          .pid = work.record.pid,
                                          .reason = std::string(reason),
                                          .state = state_,
                                          .observed_at = now});
}

PlacementResolutionPtr PlacementCoordinatorCore::MakeResolution(const GrainKey& key, const Member& owner,
                                                                PlacementLocality locality,
                                                                const ActivationRecord& record, uint64_t token,
                                                                Instant now) const {
  return std::make_shared<const PlacementResolution>(PlacementResolution{
      .decision = {.key = key, .authority = owner.authority, .owner = owner.id(), .observed_at = now},
      .locality = locality,
      .pid = record.pid,
      .token = token,
      .actor = locality == PlacementLocality::kLocal ? record.actor : ActorRef()});
}

void PlacementCoordinatorCore::Resolved(PlacementResolutionPtr resolution, Outcome& outcome, Instant now) const {
  if (is_heard_) {
    outcome.events.push_back(PlacementEvent{.kind = PlacementEvent::Kind::kResolved,
                                            .key = resolution->decision.key,
                                            .authority = resolution->decision.authority,
                                            .pid = resolution->pid,
                                            .state = state_,
                                            .observed_at = now});
  }
  outcome.resolution = std::move(resolution);
}

}  // namespace fraktor::inline v0
