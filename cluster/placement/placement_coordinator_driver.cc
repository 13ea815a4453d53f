#include "fraktor/cluster/placement/placement_coordinator_driver.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// What its random numbers are for; see RuntimeToolbox::MakeRandom.
constexpr uint64_t kBackoffStream = 0x706c6163656d656e;

template <class Result>
PlacementCommandResult MakeFailure(PlacementRequestId request_id, absl::Status status) {
  return Result{.request_id = request_id, .result = std::move(status)};
}

// What a part throws is its answer: others' code must not end the work on a key.
template <class T, class Call>
Future<T> Guarded(std::string_view what, Call call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;  // The thread is being cancelled: not ours to stop.
  } catch (const std::exception& e) {
    return MakeReadyFuture<T>(absl::InternalError(absl::StrCat(ToAbsl(what), " threw: ", e.what())));
  } catch (...) {
    return MakeReadyFuture<T>(
        absl::InternalError(absl::StrCat(ToAbsl(what), " threw something that is no std::exception")));
  }
}

absl::Status NoAnswer(absl::Duration timeout) {
  return absl::DeadlineExceededError(absl::StrCat("no answer in ", absl::FormatDuration(timeout)));
}

}  // namespace

absl::Status PlacementDriverOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"PlacementDriverOptions::command_timeout", command_timeout},
                                         {"PlacementDriverOptions::tick_period", tick_period},
                                         {"PlacementDriverOptions::lookup_timeout", lookup_timeout},
                                         {"PlacementDriverOptions::min_backoff", min_backoff},
                                         {"PlacementOptions::idle_ttl", placement.idle_ttl},
                                         {"PlacementOptions::membership_margin", placement.membership_margin},
                                         {"PidCacheOptions::ttl", placement.pid_cache.ttl}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"PlacementDriverOptions::max_waiting", max_waiting},
                                       {"PlacementOptions::max_busy_keys", placement.max_busy_keys},
                                       {"PlacementOptions::max_stops", placement.max_stops},
                                       {"PidCacheOptions::capacity", placement.pid_cache.capacity}}));
  if (placement.pid_cache.capacity > size_t{1} << 24) {
    return absl::InvalidArgumentError(
        absl::StrCat("PidCacheOptions::capacity is ", placement.pid_cache.capacity, "; use 1 to 2^24"));
  }
  if (tick_period >= placement.membership_margin) {
    return absl::InvalidArgumentError(
        absl::StrCat("PlacementOptions::membership_margin is ", absl::FormatDuration(placement.membership_margin),
                     "; it must be above PlacementDriverOptions::tick_period, ", absl::FormatDuration(tick_period),
                     ", or a member notices too late that its membership is over"));
  }
  if (max_backoff < min_backoff) {
    return absl::InvalidArgumentError(
        absl::StrCat("PlacementDriverOptions::max_backoff is ", absl::FormatDuration(max_backoff),
                     "; it must not be below min_backoff, ", absl::FormatDuration(min_backoff)));
  }
  if (max_retries < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("PlacementDriverOptions::max_retries is ", max_retries, "; it must not be negative"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PlacementCoordinatorDriver>> PlacementCoordinatorDriver::Make(
    Parts parts, const PlacementDriverOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  auto driver = std::shared_ptr<PlacementCoordinatorDriver>(new PlacementCoordinatorDriver(std::move(parts), options));
  FRAKTOR_ASSIGN_OR_RETURN(driver->timer_, driver->toolbox_.SchedulePeriodic(
                                               {.period = options.tick_period, .cadence = Cadence::kFixedDelay},
                                               [weak = driver->weak_from_this()] {
                                                 const auto self = weak.lock();
                                                 if (self == nullptr) return;
                                                 self->executor_.Post([weak] {
                                                   if (const auto still = weak.lock()) still->Tick();
                                                 });
                                               }));
  return driver;
}

PlacementCoordinatorDriver::PlacementCoordinatorDriver(Parts parts, const PlacementDriverOptions& options)
    : options_(options),
      toolbox_(parts.toolbox),
      executor_(parts.executor),
      lock_(std::move(parts.lock)),
      storage_(std::move(parts.storage)),
      activations_(std::move(parts.activations)),
      events_(parts.events),
      core_(options.placement),
      random_(toolbox_.MakeRandom(kBackoffStream)) {
  MutexLock lock(mutex_);
  core_.set_heard({.placement = false, .pid_cache = false, .virtual_actor = false});
}

PlacementCoordinatorDriver::~PlacementCoordinatorDriver() { toolbox_.CancelTimer(timer_); }

absl::Status PlacementCoordinatorDriver::StartMember(const Member& self) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    FRAKTOR_ASSIGN_OR_RETURN(Outcome outcome, Core().StartMember(self, toolbox_.Now()));
    Apply(std::move(outcome), effects);
  }
  Run(std::move(effects));
  return absl::OkStatus();
}

absl::Status PlacementCoordinatorDriver::StartClient() {
  Effects effects;
  {
    MutexLock lock(mutex_);
    FRAKTOR_ASSIGN_OR_RETURN(Outcome outcome, Core().StartClient(toolbox_.Now()));
    Apply(std::move(outcome), effects);
  }
  Run(std::move(effects));
  return absl::OkStatus();
}

void PlacementCoordinatorDriver::UpdateTopology(ClusterTopologyPtr topology) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const Instant now = toolbox_.Now();
    const ClusterTopologyPtr before = core_.topology();
    Outcome outcome = Core().UpdateTopology(std::move(topology), now);
    // Before what follows from it.
    if (events_ != nullptr && core_.topology() != before)
      unpublished_.emplace_back(ChangeOf(*before, core_.topology(), now));
    Apply(std::move(outcome), effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::SetWhyStopped(std::string why) {
  MutexLock lock(mutex_);
  core_.set_why_stopped(std::move(why));
}

void PlacementCoordinatorDriver::RenewMembership(Instant valid_until) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Apply(Core().RenewMembership(valid_until, toolbox_.Now()), effects);
  }
  Run(std::move(effects));
}

Future<void> PlacementCoordinatorDriver::Stop() {
  Effects effects;
  auto [promise, future] = MakePromise<void>();
  {
    MutexLock lock(mutex_);
    absl::StatusOr<Outcome> outcome = Core().Stop(toolbox_.Now());
    if (!outcome.ok()) return MakeReadyFuture<void>(outcome.status());
    until_nothing_runs_.push_back(std::move(promise));
    Apply(*std::move(outcome), effects);
  }
  Run(std::move(effects));
  return std::move(future);
}

Future<void> PlacementCoordinatorDriver::Leave() {
  Effects effects;
  auto [promise, future] = MakePromise<void>();
  {
    MutexLock lock(mutex_);
    absl::StatusOr<Outcome> outcome = Core().BeginLeaving(toolbox_.Now());
    if (!outcome.ok()) return MakeReadyFuture<void>(outcome.status());
    until_nothing_runs_.push_back(std::move(promise));
    Apply(*std::move(outcome), effects);
  }
  Run(std::move(effects));
  return std::move(future);
}

Future<PlacementResolutionPtr> PlacementCoordinatorDriver::Resolve(const GrainKey& key, const ResolveOptions& options) {
  Effects effects;
  PlacementResolutionPtr known;
  Future<PlacementResolutionPtr> future;
  {
    MutexLock lock(mutex_);
    const Instant now = toolbox_.Now();
    if (!options.is_redirected) {
      if (PlacementResolutionPtr cached = core_.Cached(key, now)) {
        return MakeReadyFuture<PlacementResolutionPtr>(std::move(cached));
      }
    }
    if (waiters_ >= options_.max_waiting) {
      return MakeReadyFuture<PlacementResolutionPtr>(
          MakeLookupError(LookupError::kPending, absl::StatusCode::kResourceExhausted, key,
                          absl::StrCat(waiters_, " lookups wait already; try again later")));
    }
    // Who is the first asks; if that is enough, as for a grain of another member, nobody has to wait.
    absl::StatusOr<Outcome> outcome = Outcome();
    const bool is_first = !waiting_.contains(key);
    if (is_first) outcome = Core().Resolve(key, now, options);
    if (outcome.ok()) known = outcome->resolution;
    if (known == nullptr) {
      auto [promise, answer] = MakePromise<PlacementResolutionPtr>();
      future = std::move(answer);
      Waiting& waiting = waiting_[key];
      waiting.waiters.push_back(Waiter{.promise = std::move(promise),
                                       .deadline = now + options_.lookup_timeout,
                                       .retries_left = options_.max_retries});
      waiting.is_redirected |= options.is_redirected;
      ++waiters_;
    }
    if (!outcome.ok()) {
      Refused(key, outcome.status(), effects);
    } else if (is_first) {
      Apply(*std::move(outcome), effects);
    }
  }
  Run(std::move(effects));
  return known != nullptr ? MakeReadyFuture<PlacementResolutionPtr>(std::move(known)) : std::move(future);
}

absl::StatusOr<PlacementResolutionPtr> PlacementCoordinatorDriver::BeginLookup(const GrainKey& key, Instant now) {
  Effects effects;
  PlacementResolutionPtr resolution;
  {
    MutexLock lock(mutex_);
    FRAKTOR_ASSIGN_OR_RETURN(Outcome outcome, Core().Resolve(key, now));
    resolution = outcome.resolution;
    Apply(std::move(outcome), effects);
  }
  Run(std::move(effects));
  // A store that answers at once has done so.
  if (resolution == nullptr) resolution = Cached(key);
  if (resolution != nullptr) return resolution;
  return MakeLookupError(LookupError::kPending, absl::StatusCode::kUnavailable, key,
                         "it is being found out; try again");
}

void PlacementCoordinatorDriver::Learn(PlacementResolutionPtr resolution) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Core().Learn(std::move(resolution), toolbox_.Now());
    Apply({}, effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::RemovePid(const GrainKey& key, std::string_view pid) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Core().RemovePid(key, pid, toolbox_.Now());
    Apply({}, effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::ActivationEnded(const GrainKey& key, uint64_t token, const absl::Status& why) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Apply(Core().ActivationEnded(key, token, toolbox_.Now(), why), effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::Passivate(const GrainKey& key) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    Apply(Core().Passivate(key, toolbox_.Now()), effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::Touch(const GrainKey& key) {
  MutexLock lock(mutex_);
  core_.Touch(key, toolbox_.Now());
}

void PlacementCoordinatorDriver::Keep(const GrainKey& key, absl::Duration duration) {
  MutexLock lock(mutex_);
  core_.Keep(key, toolbox_.Now() + duration);
}

PlacementResolutionPtr PlacementCoordinatorDriver::Cached(const GrainKey& key) {
  MutexLock lock(mutex_);
  return core_.Cached(key, toolbox_.Now());
}

PlacementResolutionPtr PlacementCoordinatorDriver::Local(const GrainKey& key) const {
  MutexLock lock(mutex_);
  return core_.Local(key, toolbox_.Now());
}

PlacementSnapshot PlacementCoordinatorDriver::Snapshot() const {
  MutexLock lock(mutex_);
  return core_.Snapshot();
}

ClusterTopologyPtr PlacementCoordinatorDriver::topology() const {
  MutexLock lock(mutex_);
  return core_.topology();
}

uint64_t PlacementCoordinatorDriver::mismatches() const {
  MutexLock lock(mutex_);
  return mismatches_;
}

PlacementCoordinatorCore& PlacementCoordinatorDriver::Core() {
  if (events_ == nullptr) return core_;
  const uint64_t changes = events_->changes();
  if (changes == heard_changes_) return core_;
  heard_changes_ = changes;
  core_.set_heard({.placement = events_->HasSubscribers<PlacementEvent>(),
                   .pid_cache = events_->HasSubscribers<PidCacheEvent>(),
                   .virtual_actor = events_->HasSubscribers<VirtualActorEvent>()});
  return core_;
}

void PlacementCoordinatorDriver::Apply(Outcome first, Effects& effects) {
  std::vector<Outcome> further;
  ApplyOne(first, further, effects);
  // Those who were told to wait may ask now, which leads to further outcomes.
  for (size_t i = 0; i < further.size(); ++i) {
    Outcome outcome = std::move(further[i]);
    ApplyOne(outcome, further, effects);
  }
  TakeTableEvents();
  effects.has_events = !unpublished_.empty();
  if (!until_nothing_runs_.empty()) {
    const PlacementSnapshot snapshot = core_.Snapshot();
    if (snapshot.activations == 0 && snapshot.busy_keys == 0) {
      std::move(until_nothing_runs_.begin(), until_nothing_runs_.end(), std::back_inserter(effects.done));
      until_nothing_runs_.clear();
    }
  }
}

void PlacementCoordinatorDriver::TakeTableEvents() {
  for (PidCacheEvent& event : core_.DrainCacheEvents()) unpublished_.emplace_back(std::move(event));
  for (VirtualActorEvent& event : core_.DrainVirtualActorEvents()) unpublished_.emplace_back(std::move(event));
}

void PlacementCoordinatorDriver::ApplyOne(Outcome& outcome, std::vector<Outcome>& further, Effects& effects) {
  // The core changes its tables first, and says afterwards what that means.
  TakeTableEvents();
  std::move(outcome.events.begin(), outcome.events.end(), std::back_inserter(unpublished_));
  if (effects.commands.empty()) {
    effects.commands = std::move(outcome.commands);
  } else {
    std::move(outcome.commands.begin(), outcome.commands.end(), std::back_inserter(effects.commands));
  }
  for (const SettledLookup& settled : outcome.settled) {
    if (settled.status.ok()) {
      Settle(settled.key, settled.resolution, effects);
    } else if (IsRetryableLookup(settled.status)) {
      RetryLater(settled.key, settled.status, effects);
    } else {
      Settle(settled.key, settled.status, effects);
    }
  }
  for (const GrainKey& key : outcome.idle_keys) {
    const auto waiting = waiting_.find(key);
    if (waiting != waiting_.end() && !waiting->second.is_paused) Ask(key, further, effects);
  }
}

void PlacementCoordinatorDriver::Ask(const GrainKey& key, std::vector<Outcome>& outcomes, Effects& effects) {
  Waiting& waiting = waiting_.find(key)->second;
  waiting.is_paused = false;
  absl::StatusOr<Outcome> outcome =
      Core().Resolve(key, toolbox_.Now(), ResolveOptions{.is_redirected = waiting.is_redirected});
  if (outcome.ok()) {
    if (outcome->resolution != nullptr) Settle(key, outcome->resolution, effects);
    outcomes.push_back(*std::move(outcome));
  } else {
    Refused(key, outcome.status(), effects);
  }
}

void PlacementCoordinatorDriver::Refused(const GrainKey& key, const absl::Status& status, Effects& effects) {
  if (ErrorKindOf<LookupError>(status) == LookupError::kPending && !absl::IsResourceExhausted(status)) {
    return;  // it will be among the idle keys
  }
  if (IsRetryableLookup(status)) {
    RetryLater(key, status, effects);
  } else {
    Settle(key, status, effects);
  }
}

void PlacementCoordinatorDriver::Settle(const GrainKey& key, const absl::StatusOr<PlacementResolutionPtr>& result,
                                        Effects& effects) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  waiters_ -= found->second.waiters.size();
  for (Waiter& waiter : found->second.waiters) effects.answers.emplace_back(std::move(waiter.promise), result);
  waiting_.erase(found);
}

void PlacementCoordinatorDriver::RetryLater(const GrainKey& key, const absl::Status& status, Effects& effects) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  Waiting& waiting = found->second;
  std::vector<Waiter> patient;
  for (Waiter& waiter : waiting.waiters) {
    if (waiter.retries_left-- > 0) {
      patient.push_back(std::move(waiter));
    } else {
      effects.answers.emplace_back(std::move(waiter.promise), status);
      --waiters_;
    }
  }
  waiting.waiters = std::move(patient);
  if (waiting.waiters.empty()) {
    waiting_.erase(found);
    return;
  }
  absl::Duration pause = options_.min_backoff;
  for (int i = 0; i < waiting.failures && pause < options_.max_backoff; ++i) pause *= 2;
  pause = std::min(pause, options_.max_backoff);
  pause += random_.UniformDuration(absl::ZeroDuration(), pause / 5);
  ++waiting.failures;
  waiting.is_paused = true;
  waiting.retry_at = toolbox_.Now() + pause;
  effects.retries.emplace_back(key, waiting.retry_at);
}

// What is answered at once, as by a store in memory, leads to the next effects: one after the other, not deeper and
// deeper.
void PlacementCoordinatorDriver::Run(Effects effects) {
  for (;;) {
    std::vector<PlacementCommandResult> answered = RunOnce(effects);
    if (answered.empty()) return;
    effects = Effects();
    MutexLock lock(mutex_);
    for (PlacementCommandResult& result : answered) Handle(std::move(result), effects);
  }
}

void PlacementCoordinatorDriver::Handle(PlacementCommandResult result, Effects& effects) {
  absl::StatusOr<Outcome> outcome = Core().HandleCommandResult(std::move(result), toolbox_.Now());
  if (outcome.ok()) {
    Apply(*std::move(outcome), effects);
  } else {
    ++mismatches_;
  }
}

std::vector<PlacementCommandResult> PlacementCoordinatorDriver::RunOnce(Effects& effects) {
  if (effects.has_events) Publish();
  effects.dropped.clear();
  for (auto& [promise, answer] : effects.answers) promise.Set(std::move(answer));
  for (Promise<void>& promise : effects.done) promise.Set();
  for (const auto& [key, at] : effects.retries) {
    // Without a timer the next tick does it.
    toolbox_
        .ScheduleAt(at,
                    [weak = weak_from_this(), key = key] {
                      const auto self = weak.lock();
                      if (self == nullptr) return;
                      self->executor_.Post([weak, key] {
                        if (const auto still = weak.lock()) still->Retry(key);
                      });
                    })
        .status()
        .IgnoreError();
  }
  std::vector<PlacementCommandResult> answered;
  for (PlacementCommand& command : effects.commands) Execute(command, answered);
  return answered;
}

void PlacementCoordinatorDriver::Publish() {
  for (;;) {
    std::vector<AnyEvent> events;
    {
      MutexLock lock(mutex_);
      if (is_publishing_ || unpublished_.empty()) return;
      is_publishing_ = true;
      events.swap(unpublished_);
    }
    if (events_ != nullptr) {
      for (const AnyEvent& event : events) {
        std::visit([this](const auto& each) { events_->PublishToAll(each); }, event);
      }
    }
    MutexLock lock(mutex_);
    is_publishing_ = false;
  }
}

void PlacementCoordinatorDriver::Execute(PlacementCommand& command, std::vector<PlacementCommandResult>& answered) {
  struct Visitor {
    PlacementCoordinatorDriver& driver;
    std::vector<PlacementCommandResult>& answered;
    void operator()(TryAcquireLock& c) {
      driver.Await<LockAcquired>(
          c.request_id,
          Guarded<PlacementLease>(
              "PlacementLock::TryAcquire",
              [&] { return driver.lock_->TryAcquire(std::move(c.key), std::move(c.owner), c.now); }),
          answered);
    }
    void operator()(LoadActivation& c) {
      driver.Await<ActivationLoaded>(
          c.request_id,
          Guarded<LoadedActivation>("ActivationStorage::Load", [&] { return driver.storage_->Load(std::move(c.key)); }),
          answered);
    }
    void operator()(EnsureActivation& c) {
      driver.Await<ActivationEnsured>(
          c.request_id,
          Guarded<ActivationRecord>(
              "ActivationExecutor::EnsureActivation",
              [&] { return driver.activations_->EnsureActivation(std::move(c.key), std::move(c.owner), c.token); }),
          answered);
    }
    void operator()(StoreActivation& c) {
      driver.Await<ActivationStored>(
          c.request_id,
          Guarded<void>("ActivationStorage::Store",
                        [&] { return driver.storage_->Store(std::move(c.key), std::move(c.entry), c.expected_token); }),
          answered);
    }
    void operator()(StopActivation& c) {
      driver.Await<ActivationStopped>(
          c.request_id,
          Guarded<void>("ActivationExecutor::StopActivation",
                        [&] { return driver.activations_->StopActivation(std::move(c.key), c.token); }),
          answered);
    }
    void operator()(RemoveActivation& c) {
      driver.Await<ActivationRemoved>(c.request_id,
                                      Guarded<void>("ActivationStorage::Remove",
                                                    [&] { return driver.storage_->Remove(std::move(c.key), c.token); }),
                                      answered);
    }
    void operator()(ReleaseLock& c) {
      driver.Await<LockReleased>(
          c.request_id,
          Guarded<void>("PlacementLock::Release", [&] { return driver.lock_->Release(std::move(c.lease)); }), answered);
    }
  };
  std::visit(Visitor{*this, answered}, command);
}

template <class Result, class T>
void PlacementCoordinatorDriver::Await(PlacementRequestId request_id, Future<T> future,
                                       std::vector<PlacementCommandResult>& answered) {
  if (future.IsReady()) {
    answered.push_back(Result{.request_id = request_id, .result = future.Take()});
    return;
  }
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    number = next_operation_++;
    operations_.emplace_hint(operations_.end(), number,
                             Operation{.request_id = request_id,
                                       .deadline = toolbox_.Now() + options_.command_timeout,
                                       .fail = &MakeFailure<Result>});
  }
  Future<void> watching =
      std::move(future).Then(executor_, [weak = weak_from_this(), number, request_id](FutureResult<T> result) {
        if (const auto self = weak.lock()) {
          self->Finish(number, Result{.request_id = request_id, .result = std::move(result)});
        }
      });
  MutexLock lock(mutex_);
  // It may have finished meanwhile; then nobody needs to watch.
  const auto operation = operations_.find(number);
  if (operation != operations_.end()) operation->second.watching = std::move(watching);
}

void PlacementCoordinatorDriver::Finish(uint64_t number, PlacementCommandResult result) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const auto operation = operations_.find(number);
    if (operation == operations_.end()) return;  // too late
    effects.dropped.push_back(std::move(operation->second.watching));
    operations_.erase(operation);
    Handle(std::move(result), effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::Retry(const GrainKey& key) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const auto waiting = waiting_.find(key);
    if (waiting == waiting_.end() || !waiting->second.is_paused || toolbox_.Now() < waiting->second.retry_at) return;
    std::vector<Outcome> outcomes;
    Ask(key, outcomes, effects);
    for (Outcome& outcome : outcomes) Apply(std::move(outcome), effects);
  }
  Run(std::move(effects));
}

void PlacementCoordinatorDriver::Tick() {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const Instant now = toolbox_.Now();
    while (!operations_.empty() && operations_.begin()->second.deadline <= now) {
      Operation operation = std::move(operations_.begin()->second);
      operations_.erase(operations_.begin());
      effects.dropped.push_back(std::move(operation.watching));
      Handle(operation.fail(operation.request_id, NoAnswer(options_.command_timeout)), effects);
    }
    Apply(Core().Tick(now), effects);
    std::vector<GrainKey> due;
    for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
      std::vector<Waiter> patient;
      for (Waiter& waiter : waiting->second.waiters) {
        if (now < waiter.deadline) {
          patient.push_back(std::move(waiter));
          continue;
        }
        --waiters_;
        effects.answers.emplace_back(
            std::move(waiter.promise),
            MakeLookupError(LookupError::kTimeout, absl::StatusCode::kDeadlineExceeded, waiting->first,
                            absl::StrCat("not found in ", absl::FormatDuration(options_.lookup_timeout))));
      }
      waiting->second.waiters = std::move(patient);
      if (waiting->second.waiters.empty()) {
        waiting = waiting_.erase(waiting);
        continue;
      }
      if (waiting->second.is_paused && waiting->second.retry_at <= now) due.push_back(waiting->first);
      ++waiting;
    }
    for (const GrainKey& key : due) {
      std::vector<Outcome> outcomes;
      Ask(key, outcomes, effects);
      for (Outcome& outcome : outcomes) Apply(std::move(outcome), effects);
    }
  }
  Run(std::move(effects));
}

}  // namespace fraktor::inline v0
