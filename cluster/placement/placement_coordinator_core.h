// PlacementCoordinatorCore: decides where grains run and who starts them. Pure: it does no I/O, reads no clock and
// starts no thread. Time comes in as an argument; what has to be done goes out as commands, and what became of them
// comes back.
//
//   PlacementCoordinatorCore core;
//   core.StartMember(self, now).value();
//   core.UpdateTopology(topology, now);
//   PlacementCoordinatorOutcome outcome = core.Resolve(key, now).value();
//   // outcome.resolution, if it is known; otherwise outcome.commands, which somebody executes:
//   PlacementRequestId request_id = RequestIdOf(outcome.commands[0]);
//   outcome = core.HandleCommandResult(LockAcquired{.request_id = request_id, .result = lease}, now).value();
//
// PlacementCoordinatorDriver is that somebody.
//
// Who owns a grain is computed (RendezvousHasher); whether it runs there is found out under a lock: TryAcquireLock,
// LoadActivation, and if it runs nowhere EnsureActivation and StoreActivation, then ReleaseLock.
//
// - A record whose owner is a member is honoured wherever that is: a member that joins moves nothing. One whose owner
//   has left is replaced. Whether it has left is only said by a topology that is not older than the record.
// - Each activation has the fencing token of the lock under which it was made. Store accepts only a token that is newer
//   than what was loaded, so a node that was asleep meanwhile cannot undo what others did; it then ends what it has
//   started.
// - An answer that is lost leaves open whether it was done. What may have been started is stopped, what may have been
//   stored is removed, and neither can hit a later activation, since both name the token.
// - A record may remain that names this member although nothing runs here. Whoever honours it comes here and says so
//   (ResolveOptions::is_redirected), and then the grain is activated here, whoever its owner is by computation.
// - A member whose membership may be over soon stops all it has before that. It waits for no lock or record meanwhile, which
//   may be what it is cut off from: records that stay are those of a member that has left, or lead here.
//
// At one time one thing happens for a key: who asks meanwhile is told LookupError::kPending, and may ask again when the
// key is in `idle_keys`.
//
// Thread safety: none; the owner locks.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_CORE_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_CORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/pid_cache.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/virtual_actor_registry.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/placement_command.h"
#include "fraktor/cluster/placement/placement_event.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct PlacementOptions {
  // An activation that nobody has asked for for so long is ended.
  absl::Duration idle_ttl = absl::Seconds(3600);
  // Unless it is of one of these kinds.
  std::vector<std::string> kept_kinds = {};
  PidCacheOptions pid_cache = {};
  // Keys that something is done about at one time; a lookup beyond it is told kPending.
  size_t max_busy_keys = 65'536;
  // Activations that are being stopped at one time, when many have to.
  size_t max_stops = 256;
  // So long before its membership may be over a member begins to stop what it has.
  absl::Duration membership_margin = absl::Seconds(1);
};

// The end of a lookup that had to wait.
struct SettledLookup {
  GrainKey key = {};
  absl::Status status = absl::OkStatus();
  PlacementResolutionPtr resolution = nullptr;  // if the status is OK
};

struct PlacementCoordinatorOutcome {
  // What Resolve was asked for; null if it is not known yet, or something else was called.
  PlacementResolutionPtr resolution = nullptr;
  // To be executed, in any order.
  std::vector<PlacementCommand> commands = {};
  // To be published, in this order.
  std::vector<PlacementEvent> events = {};
  std::vector<SettledLookup> settled = {};
  // Nothing is being done about these any more.
  std::vector<GrainKey> idle_keys = {};
};

struct PlacementSnapshot {
  PlacementCoordinatorState state = PlacementCoordinatorState::kStopped;
  std::string self = {};  // the id of this member; empty for a client
  uint64_t epoch = 0;
  size_t members = 0;
  size_t activations = 0;  // that run here
  size_t busy_keys = 0;
  size_t waiting_stops = 0;
  size_t cached_pids = 0;
  uint64_t passivations = 0;  // that have begun, since it was made
};

class PlacementCoordinatorCore {
 public:
  using Outcome = PlacementCoordinatorOutcome;

  struct ResolveOptions {
    // Another member has read in the record that the grain runs here.
    bool is_redirected = false;
  };

  explicit PlacementCoordinatorCore(const PlacementOptions& options = {});

  // FailedPrecondition unless it is stopped and what it ran before has ended; InvalidArgument for a member that
  // CheckMember refuses.
  absl::StatusOr<Outcome> StartMember(const Member& self, Instant now);
  absl::StatusOr<Outcome> StartClient(Instant now);
  // Ends lookups with kNotStarted and stops what runs here: results of that may still come. FailedPrecondition if it is
  // stopped.
  absl::StatusOr<Outcome> Stop(Instant now);
  // What lookups are told while it is stopped, if somebody knows better than that it was not started.
  void set_why_stopped(std::string why) { why_stopped_ = std::move(why); }

  // Decides later calls. One with an older epoch than the last is ignored.
  Outcome UpdateTopology(ClusterTopologyPtr topology, Instant now);

  // This member is one until then, if nothing else comes. Forever by default, for providers that do not ask.
  Outcome RenewMembership(Instant valid_until, Instant now);

  // Takes no new activations and ends those that it has, so that others may activate them. It is done when the snapshot
  // has no activations and no busy keys.
  absl::StatusOr<Outcome> BeginLeaving(Instant now);

  // Where a grain is. Errors are LookupErrors.
  absl::StatusOr<Outcome> Resolve(const GrainKey& key, Instant now) { return Resolve(key, now, ResolveOptions()); }
  absl::StatusOr<Outcome> Resolve(const GrainKey& key, Instant now, const ResolveOptions& options);

  // The same as far as it needs no decision, and without an event: null if it is neither here nor cached.
  PlacementResolutionPtr Cached(const GrainKey& key, Instant now) {
    if (PlacementResolutionPtr here = now < may_run_until_ ? registry_.Find(key, now) : nullptr) return here;
    return state_ == PlacementCoordinatorState::kMember || state_ == PlacementCoordinatorState::kClient
               ? cache_.Find(key, now)
               : nullptr;
  }

  // What runs here and may, without counting as a use; null if nothing does.
  PlacementResolutionPtr Local(const GrainKey& key, Instant now) const {
    return now < may_run_until_ ? registry_.Peek(key) : nullptr;
  }

  // A grain on another node was found: kept in the cache. Needs a pid and the id of a member; otherwise ignored.
  void Learn(PlacementResolutionPtr resolution, Instant now);
  // What is cached has proved wrong.
  void RemovePid(const GrainKey& key, std::string_view pid, Instant now) { cache_.RemovePid(key, pid, now); }

  // InvalidArgument for a request id that is not known, or whose command is another one. Nothing has changed then.
  absl::StatusOr<Outcome> HandleCommandResult(PlacementCommandResult result, Instant now);

  // An activation has ended without having been told to. `why`, if it could not be started: those who wait for it hear
  // it.
  Outcome ActivationEnded(const GrainKey& key, uint64_t token, Instant now, const absl::Status& why = absl::OkStatus());
  // Ends one that runs here.
  Outcome Passivate(const GrainKey& key, Instant now);
  // It is in use.
  void Touch(const GrainKey& key, Instant now) { registry_.Find(key, now); }
  // It is not ended for being idle before then.
  void Keep(const GrainKey& key, Instant until) { registry_.Keep(key, until); }

  // From time to time, such as every second: ends what is idle, what a member must not have any more, and tries again
  // what could not be stopped or removed.
  Outcome Tick(Instant now);

  PlacementSnapshot Snapshot() const;
  const ClusterTopologyPtr& topology() const { return topology_; }

  // Which events somebody listens to: others are not made until somebody does. All at first.
  struct Heard {
    bool placement = true;
    bool pid_cache = true;
    bool virtual_actor = true;
  };
  void set_heard(const Heard& heard) {
    is_heard_ = heard.placement;
    cache_.set_is_heard(heard.pid_cache);
    registry_.set_is_heard(heard.virtual_actor);
  }
  std::vector<PidCacheEvent> DrainCacheEvents() { return cache_.DrainEvents(); }
  std::vector<VirtualActorEvent> DrainVirtualActorEvents() { return registry_.DrainEvents(); }

 private:
  enum class Phase { kAcquiring, kLoading, kEnsuring, kStoring, kStopping, kRemoving, kReleasing, kWaitingToStop };

  // What is being done about one key.
  struct Work {
    GrainKey key = {};
    Phase phase = Phase::kAcquiring;
    PlacementLease lease = {};
    ActivationRecord record = {};
    uint64_t expected_token = 0;  // of the entry that was loaded
    uint64_t token = 0;           // of the activation that it is about
    bool is_lookup = false;       // somebody waits for its answer, who has not been told
    bool is_aborted = false;      // must not lead to an activation any more
    bool is_passivation = false;
    bool counts_as_stop = false;
    // What is left to do, in this order.
    bool must_stop = false;
    bool must_remove = false;
    bool must_release = false;
    bool must_stop_later = false;
    // Its lock is being given back, and nobody waits for that any more.
    bool has_abandoned_release = false;
  };
  using Works = std::map<uint64_t, Work>;

  struct Leftover {
    GrainKey key = {};
    uint64_t token = 0;
  };

  bool IsSelf(const Member& member) const;
  const Member* SelfInTopology() const;
  // Whether a grain of the kind may be activated here.
  bool MayActivate(const GrainKey& key, Instant now) const;
  // Not by its own will: then others take over what it had, whether or not it says anything.
  bool IsMembershipOver(Instant now) const;
  void UpdateMayRunUntil();
  void SetState(PlacementCoordinatorState state, Outcome& outcome, Instant now);
  void SettleState(Outcome& outcome, Instant now);

  Works::iterator BeginWork(const GrainKey& key);
  void Advance(Works::iterator work, Outcome& outcome);
  void Fail(Work& work, const absl::Status& status, Outcome& outcome);
  void AbortAll(LookupError error, std::string_view why, Outcome& outcome);
  void StopAll();
  void PumpStops(Outcome& outcome, Instant now);
  void BeginStop(const GrainKey& key, bool is_passivation, Outcome& outcome, Instant now);
  void Event(PlacementEvent::Kind kind, const Work& work, std::string_view reason, Outcome& outcome, Instant now);

  absl::Status Handle(Works::iterator work, LockAcquired& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, ActivationLoaded& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, ActivationEnsured& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, ActivationStored& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, ActivationStopped& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, ActivationRemoved& result, Outcome& outcome, Instant now);
  absl::Status Handle(Works::iterator work, LockReleased& result, Outcome& outcome, Instant now);

  PlacementResolutionPtr MakeResolution(const GrainKey& key, const Member& owner, PlacementLocality locality,
                                        const ActivationRecord& record, uint64_t token, Instant now) const;
  void Resolved(PlacementResolutionPtr resolution, Outcome& outcome, Instant now) const;

  static constexpr size_t kMaxLeftovers = 65'536;

  const PlacementOptions options_;
  bool is_heard_ = true;
  PlacementCoordinatorState state_ = PlacementCoordinatorState::kStopped;
  std::string why_stopped_ = "placement is not started: set it up as a member or as a client";
  bool is_client_ = false;
  Member self_;
  std::string self_id_;
  ClusterTopologyPtr topology_ = ClusterTopology::Empty();
  bool was_in_topology_ = false;
  bool is_leaving_ = false;
  Instant valid_until_ = Instant::InfiniteFuture();
  bool has_expired_ = false;
  // Until when what is in the registry may run; the past if nothing may.
  Instant may_run_until_ = Instant::InfinitePast();
  VirtualActorRegistry registry_;
  PidCache cache_;
  uint64_t next_id_ = 1;
  Works works_;
  absl::flat_hash_map<GrainKey, uint64_t> busy_;
  // Of works that have ended: their locks are being given back.
  std::set<uint64_t> abandoned_releases_;
  std::deque<GrainKey> to_stop_;
  size_t stops_ = 0;
  uint64_t passivations_ = 0;
  std::deque<Leftover> leftovers_;  // records of ours that could not be removed
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COORDINATOR_CORE_H_
