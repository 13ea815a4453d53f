#include "fraktor/cluster/placement/placement_coordinator_core.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/placement/placement_command.h"
#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/cluster/placement/placement_event.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {
namespace {

using Core = PlacementCoordinatorCore;
using Outcome = PlacementCoordinatorOutcome;
using Kind = PlacementEvent::Kind;

Instant At(int64_t seconds) { return Instant() + absl::Seconds(seconds); }

Member Hosting(std::string_view authority, uint64_t incarnation = 1) {
  return Member{.authority = std::string(authority), .incarnation = incarnation, .kinds = {"account"}};
}

ClusterTopologyPtr Topology(uint64_t epoch, std::vector<Member> members) {
  return ClusterTopology::Make(epoch, std::move(members)).value();
}

// One that belongs to the member by computation.
GrainKey KeyOf(const ClusterTopology& topology, std::string_view authority, int skip = 0) {
  for (int i = 0;; ++i) {
    GrainKey key("account", absl::StrCat("user-", i));
    if (RendezvousHasher::OwnerOf(topology, key)->authority == authority && skip-- == 0) return key;
  }
}

std::vector<Kind> KindsOf(const Outcome& outcome) {
  std::vector<Kind> kinds;
  for (const PlacementEvent& event : outcome.events) kinds.push_back(event.kind);
  return kinds;
}

// The one command of an outcome.
template <class Command>
Command Only(const Outcome& outcome) {
  EXPECT_EQ(outcome.commands.size(), 1u);
  if (outcome.commands.size() != 1) return {};
  const Command* const command = std::get_if<Command>(&outcome.commands[0]);
  EXPECT_NE(command, nullptr) << CommandName(outcome.commands[0]);
  return command == nullptr ? Command() : *command;
}

std::optional<LookupError> ErrorOf(const absl::StatusOr<Outcome>& outcome) {
  return ErrorKindOf<LookupError>(outcome.status());
}

// A member "a:1" of two, and its world.
class PlacementCoordinatorCoreTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(core_.StartMember(Hosting("a:1"), At(0)).ok());
    core_.UpdateTopology(both_, At(0));
  }

  Outcome Give(PlacementCommandResult result, Instant now) {
    absl::StatusOr<Outcome> outcome = core_.HandleCommandResult(std::move(result), now);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *std::move(outcome) : Outcome();
  }

  // The lock comes.
  LoadActivation Acquire(const Outcome& resolving, uint64_t token, Instant now) {
    const auto acquire = Only<TryAcquireLock>(resolving);
    return Only<LoadActivation>(Give(LockAcquired{.request_id = acquire.request_id,
                                                  .result = PlacementLease{.key = acquire.key,
                                                                           .owner = acquire.owner,
                                                                           .expires_at = now + absl::Seconds(10),
                                                                           .token = token}},
                                     now));
  }

  // Everything goes well.
  Outcome Activate(const GrainKey& key, uint64_t token, Instant now) {
    const LoadActivation load = Acquire(core_.Resolve(key, now).value(), token, now);
    const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, now));
    EXPECT_EQ(ensure.token, token);
    const auto store =
        Only<StoreActivation>(Give(ActivationEnsured{.request_id = ensure.request_id,
                                                     .result = ActivationRecord{.pid = absl::StrCat("pid-", token)}},
                                   now));
    return Give(ActivationStored{.request_id = store.request_id}, now);
  }
  void ActivateAndRelease(const GrainKey& key, uint64_t token, Instant now) {
    const auto release = Only<ReleaseLock>(Activate(key, token, now));
    EXPECT_TRUE(Give(LockReleased{.request_id = release.request_id}, now).commands.empty());
  }

  const ClusterTopologyPtr both_ = Topology(1, {Hosting("a:1"), Hosting("b:1")});
  const GrainKey mine_ = KeyOf(*both_, "a:1");
  const GrainKey other_ = KeyOf(*both_, "b:1");
  Core core_;
};

// CLU-2: not started, not ready. The unit test "refuses when it is not started" of the source.
TEST(PlacementCoordinatorCore, RefusesBeforeItIsStartedAndBeforeMembersAreKnown) {
  Core core;
  const GrainKey key("account", "alice");
  EXPECT_EQ(ErrorOf(core.Resolve(key, At(0))), LookupError::kNotStarted);
  EXPECT_EQ(core.Snapshot().state, PlacementCoordinatorState::kStopped);

  const Outcome started = core.StartMember(Hosting("a:1"), At(1)).value();
  ASSERT_EQ(KindsOf(started), (std::vector<Kind>{Kind::kStateChanged}));
  EXPECT_EQ(started.events[0].state, PlacementCoordinatorState::kNotReady);
  EXPECT_EQ(started.events[0].observed_at, At(1));
  EXPECT_EQ(ErrorOf(core.Resolve(key, At(1))), LookupError::kNotReady);
  EXPECT_FALSE(core.StartMember(Hosting("a:1"), At(1)).ok());
  EXPECT_FALSE(core.StartClient(At(1)).ok());

  const Outcome known = core.UpdateTopology(Topology(1, {Hosting("a:1")}), At(2));
  ASSERT_EQ(KindsOf(known), (std::vector<Kind>{Kind::kStateChanged}));
  EXPECT_EQ(known.events[0].state, PlacementCoordinatorState::kMember);
  EXPECT_TRUE(core.Resolve(key, At(2)).ok());

  EXPECT_EQ(core.Stop(At(3)).value().events.back().state, PlacementCoordinatorState::kStopped);
  EXPECT_EQ(ErrorOf(core.Resolve(key, At(3))), LookupError::kNotStarted);
  EXPECT_FALSE(core.Stop(At(3)).ok());
}

TEST(PlacementCoordinatorCore, IsNotStartedByATopology) {
  Core core;
  EXPECT_TRUE(core.UpdateTopology(Topology(1, {Hosting("a:1")}), At(0)).events.empty());
  EXPECT_EQ(core.Snapshot().state, PlacementCoordinatorState::kStopped);
  EXPECT_EQ(core.StartMember(Hosting("a:1"), At(0)).value().events[0].state, PlacementCoordinatorState::kMember);
}

// CLU-11, CLU-14
TEST_F(PlacementCoordinatorCoreTest, RefusesKeysThatMakeNoSenseAndKindsThatNobodyHosts) {
  EXPECT_EQ(ErrorOf(core_.Resolve(GrainKey("account", ""), At(0))), LookupError::kInvalidKey);
  EXPECT_EQ(ErrorOf(core_.Resolve(GrainKey("order", "1"), At(0))), LookupError::kUnknownKind);
}

// CLU-3. The unit test "a remote owner" of the source.
TEST_F(PlacementCoordinatorCoreTest, AnswersWithARemoteOwnerAndNoCommands) {
  const Outcome outcome = core_.Resolve(other_, At(5)).value();
  ASSERT_NE(outcome.resolution, nullptr);
  EXPECT_EQ(outcome.resolution->locality, PlacementLocality::kRemote);
  EXPECT_EQ(outcome.resolution->decision.authority, "b:1");
  EXPECT_EQ(outcome.resolution->decision.owner, "b:1#1");
  EXPECT_EQ(outcome.resolution->decision.observed_at, At(5));
  EXPECT_EQ(outcome.resolution->pid, "") << "only its owner knows";
  EXPECT_TRUE(outcome.commands.empty());
  ASSERT_EQ(KindsOf(outcome), (std::vector<Kind>{Kind::kResolved}));
  EXPECT_EQ(outcome.events[0].authority, "b:1");
  EXPECT_EQ(outcome.events[0].observed_at, At(5));
}

// CLU-2: a client never owns.
TEST(PlacementCoordinatorCore, ResolvesEverythingToOthersAsAClient) {
  Core core;
  ASSERT_TRUE(core.StartClient(At(0)).ok());
  EXPECT_EQ(core.Snapshot().state, PlacementCoordinatorState::kNotReady);
  const ClusterTopologyPtr topology = Topology(1, {Hosting("a:1"), Hosting("b:1")});
  core.UpdateTopology(topology, At(0));
  EXPECT_EQ(core.Snapshot().state, PlacementCoordinatorState::kClient);
  for (const char* const authority : {"a:1", "b:1"}) {
    const Outcome outcome = core.Resolve(KeyOf(*topology, authority), At(0), {.is_redirected = true}).value();
    ASSERT_NE(outcome.resolution, nullptr);
    EXPECT_EQ(outcome.resolution->locality, PlacementLocality::kRemote);
    EXPECT_EQ(outcome.resolution->decision.authority, authority);
    EXPECT_TRUE(outcome.commands.empty());
  }
  EXPECT_FALSE(core.BeginLeaving(At(0)).ok());
}

// CLU-3, CLU-4, CLU-7, CLU-10: the whole way of an activation, with one request id; each time is one that was given.
TEST_F(PlacementCoordinatorCoreTest, ActivatesUnderTheLockStepByStep) {
  const Outcome resolving = core_.Resolve(mine_, At(1)).value();
  EXPECT_EQ(resolving.resolution, nullptr);
  const auto acquire = Only<TryAcquireLock>(resolving);
  EXPECT_EQ(acquire.key, mine_);
  EXPECT_EQ(acquire.owner, "a:1#1");
  EXPECT_EQ(acquire.now, At(1));

  const LoadActivation load = Acquire(resolving, 7, At(2));
  EXPECT_EQ(load.request_id, acquire.request_id);
  EXPECT_EQ(load.key, mine_);

  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(3)));
  EXPECT_EQ(ensure.request_id, acquire.request_id);
  EXPECT_EQ(ensure.owner, "a:1#1");
  EXPECT_EQ(ensure.token, 7u);

  const Outcome ensured =
      Give(ActivationEnsured{.request_id = ensure.request_id, .result = ActivationRecord{.pid = "pid", .version = 3}},
           At(4));
  EXPECT_EQ(ensured.resolution, nullptr) << "not before it is stored";
  const auto store = Only<StoreActivation>(ensured);
  EXPECT_EQ(store.request_id, acquire.request_id);
  EXPECT_EQ(store.expected_token, 0u);
  EXPECT_EQ(
      store.entry,
      (ActivationEntry{
          .owner = "a:1#1", .record = {.pid = "pid", .version = 3}, .observed_at = At(4), .token = 7, .epoch = 1}));

  const Outcome stored = Give(ActivationStored{.request_id = store.request_id}, At(5));
  EXPECT_EQ(KindsOf(stored), (std::vector<Kind>{Kind::kActivated, Kind::kResolved}));
  ASSERT_NE(stored.resolution, nullptr);
  EXPECT_EQ(stored.resolution->locality, PlacementLocality::kLocal);
  EXPECT_EQ(stored.resolution->pid, "pid");
  EXPECT_EQ(stored.resolution->token, 7u);
  ASSERT_EQ(stored.settled.size(), 1u);
  EXPECT_EQ(stored.settled[0].resolution, stored.resolution);
  const auto release = Only<ReleaseLock>(stored);
  EXPECT_EQ(release.request_id, acquire.request_id);
  EXPECT_EQ(release.lease.token, 7u);

  const Outcome released = Give(LockReleased{.request_id = release.request_id}, At(6));
  EXPECT_TRUE(released.commands.empty());
  EXPECT_EQ(released.idle_keys, (std::vector<GrainKey>{mine_}));
  EXPECT_EQ(core_.Snapshot().activations, 1u);
  EXPECT_EQ(core_.Snapshot().busy_keys, 0u);
}

// CLU-5. The unit test "an existing activation is reused" of the source.
TEST_F(PlacementCoordinatorCoreTest, ReusesWhatRunsHere) {
  ActivateAndRelease(mine_, 7, At(1));
  const Outcome again = core_.Resolve(mine_, At(2)).value();
  ASSERT_NE(again.resolution, nullptr);
  EXPECT_EQ(again.resolution->pid, "pid-7");
  EXPECT_TRUE(again.commands.empty());
  EXPECT_EQ(KindsOf(again), (std::vector<Kind>{Kind::kResolved}));
  EXPECT_EQ(core_.Cached(mine_, At(2)), again.resolution);
}

// CLU-5, CLU-6: a stored owner that is alive is honoured, whoever owns the key by computation.
TEST_F(PlacementCoordinatorCoreTest, HonoursAnActivationOnAnotherMember) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const Outcome loaded = Give(
      ActivationLoaded{.request_id = load.request_id,
                       .result = LoadedActivation{.exists = true,
                                                  .entry = {.owner = "b:1#1", .record = {.pid = "there"}, .token = 3}}},
      At(2));
  ASSERT_NE(loaded.resolution, nullptr);
  EXPECT_EQ(loaded.resolution->locality, PlacementLocality::kRemote);
  EXPECT_EQ(loaded.resolution->pid, "there");
  EXPECT_EQ(loaded.resolution->decision.owner, "b:1#1");
  const auto release = Only<ReleaseLock>(loaded);
  Give(LockReleased{.request_id = release.request_id}, At(2));
  // From now on it is known.
  EXPECT_EQ(core_.Resolve(mine_, At(3)).value().resolution, loaded.resolution);
  EXPECT_EQ(core_.Cached(mine_, At(301)), loaded.resolution);
  EXPECT_EQ(core_.Cached(mine_, At(302)), nullptr);
}

// CLU-6: a stored owner that has left is evicted, also if the same node is back in another life.
TEST_F(PlacementCoordinatorCoreTest, ActivatesAnewWhatAMemberHadThatHasLeft) {
  core_.UpdateTopology(Topology(9, {Hosting("a:1"), Hosting("b:1", 8)}), At(0));
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(
      ActivationLoaded{.request_id = load.request_id,
                       .result = LoadedActivation{.exists = true, .entry = {.owner = "b:1#1", .token = 3, .epoch = 5}}},
      At(2)));
  const auto store = Only<StoreActivation>(
      Give(ActivationEnsured{.request_id = ensure.request_id, .result = ActivationRecord{.pid = "new"}}, At(2)));
  EXPECT_EQ(store.expected_token, 3u) << "replaces that entry and no other";
  EXPECT_EQ(store.entry.token, 7u);
  EXPECT_EQ(store.entry.epoch, 9u);
  Give(ActivationStored{.request_id = store.request_id}, At(2));
  const std::vector<VirtualActorEvent> events = core_.DrainVirtualActorEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, VirtualActorEvent::Kind::kReactivated);
}

// CLU-6: a node that knows less than the record cannot say that its owner has left.
TEST_F(PlacementCoordinatorCoreTest, EvictsNobodyWhomItOnlyDoesNotKnowYet) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const Outcome loaded = Give(
      ActivationLoaded{.request_id = load.request_id,
                       .result = LoadedActivation{.exists = true, .entry = {.owner = "c:1#2", .token = 3, .epoch = 2}}},
      At(2));
  Only<ReleaseLock>(loaded);
  ASSERT_EQ(loaded.settled.size(), 1u);
  EXPECT_EQ(ErrorKindOf<LookupError>(loaded.settled[0].status), LookupError::kNotReady);
}

// A record names this member, but nothing runs: the answer to a Store was lost.
TEST_F(PlacementCoordinatorCoreTest, ActivatesAnewWhatARecordOnlySaysToRunHere) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const Outcome loaded = Give(
      ActivationLoaded{.request_id = load.request_id,
                       .result = LoadedActivation{.exists = true, .entry = {.owner = "a:1#1", .token = 3, .epoch = 1}}},
      At(2));
  EXPECT_EQ(Only<EnsureActivation>(loaded).token, 7u);
}

// Somebody has read such a record and sends his message here, although the key belongs to another member.
TEST_F(PlacementCoordinatorCoreTest, ActivatesWhatItIsRedirectedTo) {
  EXPECT_TRUE(core_.Resolve(other_, At(1)).value().commands.empty());
  EXPECT_EQ(Only<TryAcquireLock>(core_.Resolve(other_, At(1), {.is_redirected = true}).value()).key, other_);
}

// CLU-4, CLU-9. The unit test "the lock is denied" of the source.
TEST_F(PlacementCoordinatorCoreTest, StartsNothingWithoutTheLock) {
  const auto acquire = Only<TryAcquireLock>(core_.Resolve(mine_, At(1)).value());
  const Outcome denied = Give(LockAcquired{.request_id = acquire.request_id,
                                           .result = MakeLockError(absl::StatusCode::kUnavailable,
                                                                   PlacementLockError::kHeld, mine_, "b has it")},
                              At(2));
  EXPECT_TRUE(denied.commands.empty()) << "nothing to give back";
  ASSERT_EQ(KindsOf(denied), (std::vector<Kind>{Kind::kLockDenied}));
  EXPECT_NE(denied.events[0].reason.find("b has it"), std::string::npos);
  EXPECT_EQ(denied.events[0].observed_at, At(2));
  ASSERT_EQ(denied.settled.size(), 1u);
  EXPECT_EQ(ErrorKindOf<LookupError>(denied.settled[0].status), LookupError::kLockDenied);
  EXPECT_EQ(denied.idle_keys, (std::vector<GrainKey>{mine_}));
  EXPECT_EQ(core_.Snapshot().busy_keys, 0u);
  EXPECT_TRUE(core_.Resolve(mine_, At(3)).ok()) << "the next one begins anew";
}

// CLU-6: an expired lease is void.
TEST_F(PlacementCoordinatorCoreTest, TreatsALeaseThatIsOverAsNone) {
  const auto acquire = Only<TryAcquireLock>(core_.Resolve(mine_, At(1)).value());
  const PlacementLease lease{.key = mine_, .owner = "a:1#1", .expires_at = At(11), .token = 7};
  const Outcome late = Give(LockAcquired{.request_id = acquire.request_id, .result = lease}, At(11));
  EXPECT_EQ(KindsOf(late), (std::vector<Kind>{Kind::kLockDenied}));
  const auto release = Only<ReleaseLock>(late);
  Give(LockReleased{.request_id = release.request_id}, At(11));

  // The same when the storage is slow: nothing is started.
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(20)).value(), 8, At(20));
  const Outcome loaded = Give(ActivationLoaded{.request_id = load.request_id}, At(30));
  EXPECT_EQ(KindsOf(loaded), (std::vector<Kind>{Kind::kLockDenied}));
  Only<ReleaseLock>(loaded);
}

// CLU-4, CLU-9: what fails is an event, and the lock is given back.
TEST_F(PlacementCoordinatorCoreTest, GivesTheLockBackWhenLoadingFails) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const Outcome failed =
      Give(ActivationLoaded{.request_id = load.request_id, .result = absl::UnavailableError("no disk")}, At(2));
  ASSERT_EQ(KindsOf(failed), (std::vector<Kind>{Kind::kStorageFailed}));
  EXPECT_EQ(failed.events[0].reason, "no disk");
  ASSERT_EQ(failed.settled.size(), 1u);
  EXPECT_EQ(ErrorKindOf<LookupError>(failed.settled[0].status), LookupError::kStorageFailed);
  Only<ReleaseLock>(failed);
}

TEST_F(PlacementCoordinatorCoreTest, StopsWhatMayHaveBeenStartedWhenStartingFails) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(1)));
  const Outcome failed =
      Give(ActivationEnsured{.request_id = ensure.request_id, .result = absl::InternalError("its constructor threw")},
           At(2));
  EXPECT_EQ(KindsOf(failed), (std::vector<Kind>{Kind::kActivationFailed}));
  ASSERT_EQ(failed.settled.size(), 1u);
  EXPECT_TRUE(absl::IsInternal(failed.settled[0].status)) << "as it was said";
  const auto stop = Only<StopActivation>(failed);
  EXPECT_EQ(stop.token, 7u);
  Only<ReleaseLock>(Give(ActivationStopped{.request_id = stop.request_id}, At(2)));
}

// CLU-6: who comes too late ends what it has started.
TEST_F(PlacementCoordinatorCoreTest, EndsWhatItHasStartedWhenTheStoreRefusesIt) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(1)));
  const auto store = Only<StoreActivation>(Give(ActivationEnsured{.request_id = ensure.request_id}, At(1)));
  const Outcome refused =
      Give(ActivationStored{.request_id = store.request_id,
                            .result = MakeStorageError(absl::StatusCode::kAborted, ActivationStorageError::kFenced,
                                                       mine_, "8 was faster")},
           At(2));
  EXPECT_EQ(KindsOf(refused), (std::vector<Kind>{Kind::kStorageFailed}));
  EXPECT_EQ(core_.Snapshot().activations, 0u);
  const auto stop = Only<StopActivation>(refused);
  EXPECT_EQ(stop.token, 7u);
  const auto release = Only<ReleaseLock>(Give(ActivationStopped{.request_id = stop.request_id}, At(2)));
  EXPECT_EQ(Give(LockReleased{.request_id = release.request_id}, At(2)).idle_keys.size(), 1u);
}

// Nobody knows whether it was stored: then it is taken back, if it was.
TEST_F(PlacementCoordinatorCoreTest, TakesBackWhatMayHaveBeenStored) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(1)));
  const auto store = Only<StoreActivation>(Give(ActivationEnsured{.request_id = ensure.request_id}, At(1)));
  const auto stop = Only<StopActivation>(Give(
      ActivationStored{.request_id = store.request_id, .result = absl::DeadlineExceededError("no answer")}, At(2)));
  const auto remove = Only<RemoveActivation>(Give(ActivationStopped{.request_id = stop.request_id}, At(3)));
  EXPECT_EQ(remove.token, 7u) << "and no other";
  const Outcome failed = Give(
      ActivationRemoved{.request_id = remove.request_id, .result = absl::UnavailableError("still no answer")}, At(4));
  const auto release = Only<ReleaseLock>(failed);
  Give(LockReleased{.request_id = release.request_id}, At(4));
  // It is tried again.
  const auto again = Only<RemoveActivation>(core_.Tick(At(5)));
  EXPECT_EQ(again.key, mine_);
  EXPECT_EQ(again.token, 7u);
  Give(ActivationRemoved{.request_id = again.request_id}, At(5));
  EXPECT_TRUE(core_.Tick(At(6)).commands.empty());
}

// CLU-4: a release that fails is an event, and no more.
TEST_F(PlacementCoordinatorCoreTest, KeepsAResolutionWhoseReleaseFailed) {
  const auto release = Only<ReleaseLock>(Activate(mine_, 7, At(1)));
  const Outcome failed =
      Give(LockReleased{.request_id = release.request_id, .result = absl::UnavailableError("gone")}, At(2));
  EXPECT_EQ(KindsOf(failed), (std::vector<Kind>{Kind::kReleaseFailed}));
  EXPECT_NE(core_.Resolve(mine_, At(3)).value().resolution, nullptr);
}

// CLU-2, CLU-5: those who ask meanwhile are told to wait, and cause nothing.
TEST_F(PlacementCoordinatorCoreTest, CoalescesLookupsOfOneKey) {
  const Outcome resolving = core_.Resolve(mine_, At(1)).value();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(1))), LookupError::kPending);
  EXPECT_EQ(core_.Snapshot().busy_keys, 1u);
  Acquire(resolving, 7, At(1));
  EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(2))), LookupError::kPending);
}

TEST(PlacementCoordinatorCore, LimitsWhatIsUnderWay) {
  Core core({.max_busy_keys = 2});
  ASSERT_TRUE(core.StartMember(Hosting("a:1"), At(0)).ok());
  core.UpdateTopology(Topology(1, {Hosting("a:1")}), At(0));
  EXPECT_TRUE(core.Resolve(GrainKey("account", "1"), At(0)).ok());
  EXPECT_TRUE(core.Resolve(GrainKey("account", "2"), At(0)).ok());
  const absl::StatusOr<Outcome> third = core.Resolve(GrainKey("account", "3"), At(0));
  EXPECT_EQ(ErrorOf(third), LookupError::kPending);
  EXPECT_TRUE(absl::IsResourceExhausted(third.status()));
}

// CLU-7. The integration test "request ids correlate" of the source.
TEST_F(PlacementCoordinatorCoreTest, RefusesResultsThatBelongToNothing) {
  EXPECT_TRUE(absl::IsInvalidArgument(core_.HandleCommandResult(LockReleased{.request_id = {77}}, At(1)).status()));
  const auto acquire = Only<TryAcquireLock>(core_.Resolve(mine_, At(1)).value());
  const std::vector<PlacementCommandResult> wrong = {
      ActivationLoaded{.request_id = acquire.request_id},  ActivationEnsured{.request_id = acquire.request_id},
      ActivationStored{.request_id = acquire.request_id},  ActivationStopped{.request_id = acquire.request_id},
      ActivationRemoved{.request_id = acquire.request_id}, LockReleased{.request_id = acquire.request_id}};
  for (const PlacementCommandResult& result : wrong) {
    const absl::StatusOr<Outcome> outcome = core_.HandleCommandResult(result, At(1));
    EXPECT_TRUE(absl::IsInvalidArgument(outcome.status())) << ResultName(result);
  }
  const PlacementLease lease{.key = mine_, .owner = "a:1#1", .expires_at = At(11), .token = 7};
  Only<LoadActivation>(Give(LockAcquired{.request_id = acquire.request_id, .result = lease}, At(1)));
  EXPECT_FALSE(core_.HandleCommandResult(LockAcquired{.request_id = acquire.request_id, .result = lease}, At(1)).ok())
      << "once only";
}

// CLU-7: two lookups under way have two ids, and their results do not meet.
TEST_F(PlacementCoordinatorCoreTest, KeepsLookupsOfTwoKeysApart) {
  const GrainKey second = KeyOf(*both_, "a:1", 1);
  const auto a = Only<TryAcquireLock>(core_.Resolve(mine_, At(1)).value());
  const auto b = Only<TryAcquireLock>(core_.Resolve(second, At(1)).value());
  EXPECT_NE(a.request_id, b.request_id);
  const PlacementLease lease{.key = second, .owner = "a:1#1", .expires_at = At(11), .token = 8};
  EXPECT_EQ(Only<LoadActivation>(Give(LockAcquired{.request_id = b.request_id, .result = lease}, At(1))).key, second);
}

// CLU-1. The integration test "a change of the topology is heeded" of the source.
TEST_F(PlacementCoordinatorCoreTest, LetsALaterTopologyDecideLaterCalls) {
  EXPECT_EQ(core_.Resolve(other_, At(1)).value().resolution->decision.authority, "b:1");
  core_.UpdateTopology(Topology(2, {Hosting("a:1")}), At(2));
  Only<TryAcquireLock>(core_.Resolve(other_, At(2)).value());
  // What comes too late is no news.
  core_.UpdateTopology(both_, At(3));
  EXPECT_EQ(core_.Snapshot().epoch, 2u);
  EXPECT_EQ(core_.Snapshot().members, 1u);
  core_.UpdateTopology(Topology(3, {}), At(4));
  EXPECT_EQ(ErrorOf(core_.Resolve(other_, At(4))), LookupError::kNotReady);
  EXPECT_EQ(core_.Snapshot().state, PlacementCoordinatorState::kNotReady);
}

// CLU-6: a join moves no activation.
TEST_F(PlacementCoordinatorCoreTest, KeepsWhatItHasWhenAnotherJoins) {
  ActivateAndRelease(mine_, 7, At(1));
  std::vector<Member> members = {Hosting("a:1"), Hosting("b:1")};
  for (int i = 0; i < 50; ++i) members.push_back(Hosting(absl::StrCat("n", i, ":1")));
  const ClusterTopologyPtr many = Topology(2, members);
  ASSERT_NE(RendezvousHasher::OwnerOf(*many, mine_)->authority, "a:1") << "the test needs a key that would move";
  EXPECT_TRUE(core_.UpdateTopology(many, At(2)).commands.empty());
  EXPECT_EQ(core_.Resolve(mine_, At(3)).value().resolution->locality, PlacementLocality::kLocal);
}

// CLU-11: a member that left invalidates what is cached of it.
TEST_F(PlacementCoordinatorCoreTest, ForgetsWhatItKnewOfAMemberThatLeft) {
  const auto there = std::make_shared<PlacementResolution>(PlacementResolution{
      .decision = {.key = other_, .authority = "b:1", .owner = "b:1#1"}, .pid = "there", .token = 4});
  core_.Learn(there, At(1));
  EXPECT_EQ(core_.Resolve(other_, At(1)).value().resolution, there);
  core_.UpdateTopology(Topology(2, {Hosting("a:1"), Hosting("b:1", 2)}), At(2));
  EXPECT_EQ(core_.Cached(other_, At(2)), nullptr);
  ASSERT_EQ(core_.DrainCacheEvents().size(), 1u);
  core_.Learn(there, At(3));
  EXPECT_EQ(core_.Cached(other_, At(3)), nullptr) << "of one that is gone nothing is learned";
  core_.RemovePid(other_, "there", At(3));
}

// CLU-5: a member that is none any more stops what it has, and answers nothing from it.
TEST_F(PlacementCoordinatorCoreTest, StopsEverythingWhenItHasLeft) {
  ActivateAndRelease(mine_, 7, At(1));
  const Outcome pending = core_.Resolve(KeyOf(*both_, "a:1", 1), At(1)).value();
  const Outcome left = core_.UpdateTopology(Topology(2, {Hosting("b:1")}), At(2));
  EXPECT_EQ(Only<StopActivation>(left).token, 7u);
  ASSERT_EQ(left.settled.size(), 1u);
  EXPECT_EQ(ErrorKindOf<LookupError>(left.settled[0].status), LookupError::kNotReady);
  EXPECT_EQ(core_.Cached(mine_, At(2)), nullptr);
  // A lock that comes now is given back.
  const auto acquire = Only<TryAcquireLock>(pending);
  const PlacementLease lease{.key = acquire.key, .owner = "a:1#1", .expires_at = At(11), .token = 8};
  Only<ReleaseLock>(Give(LockAcquired{.request_id = acquire.request_id, .result = lease}, At(3)));
  EXPECT_EQ(core_.Resolve(KeyOf(*both_, "a:1", 2), At(3)).value().resolution->decision.authority, "b:1");
}

// CLU-5: a node that cannot renew its membership stops its grains before it is over.
TEST_F(PlacementCoordinatorCoreTest, StopsEverythingBeforeItsMembershipIsOver) {
  EXPECT_TRUE(core_.RenewMembership(At(20), At(1)).commands.empty());
  ActivateAndRelease(mine_, 7, At(1));
  EXPECT_TRUE(core_.Tick(At(18)).commands.empty());
  EXPECT_NE(core_.Cached(mine_, At(18)), nullptr);
  EXPECT_EQ(core_.Cached(mine_, At(19)), nullptr) << "one second before, whether or not somebody ticks";
  EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(19))), LookupError::kNotReady);
  const auto stop = Only<StopActivation>(core_.Tick(At(19)));
  EXPECT_EQ(stop.token, 7u);
  EXPECT_TRUE(core_.Tick(At(19)).commands.empty()) << "once";
  const Outcome stopped = Give(ActivationStopped{.request_id = stop.request_id}, At(19));
  EXPECT_TRUE(stopped.commands.empty()) << "the store may be what it is cut off from";
  EXPECT_EQ(stopped.idle_keys.size(), 1u);
  EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(19))), LookupError::kNotReady);
  // It was renewed after all.
  core_.RenewMembership(At(40), At(19));
  Only<TryAcquireLock>(core_.Resolve(mine_, At(19)).value());
}

// CLU-5: however many they are, none waits for an answer of the store.
TEST_F(PlacementCoordinatorCoreTest, StopsManyBeforeItsMembershipIsOverWithoutTheStore) {
  constexpr size_t kMany = 1000;
  const PlacementOptions defaults;
  ASSERT_LT(defaults.max_stops, kMany);
  core_.RenewMembership(At(20), At(1));
  size_t running = 0;
  for (uint64_t i = 0; running < kMany; ++i) {
    const GrainKey key("account", absl::StrCat("g", i));
    if (RendezvousHasher::OwnerOf(*both_, key)->authority != "a:1") continue;
    ActivateAndRelease(key, 100 + i, At(1));
    ++running;
  }
  std::vector<PlacementCommand> commands = core_.Tick(At(19)).commands;
  EXPECT_EQ(commands.size(), defaults.max_stops);
  size_t stopped = 0;
  while (!commands.empty()) {
    const auto* const stop = std::get_if<StopActivation>(&commands.back());
    ASSERT_NE(stop, nullptr) << CommandName(commands.back());
    const PlacementRequestId id = stop->request_id;
    commands.pop_back();
    ++stopped;
    for (PlacementCommand& next : Give(ActivationStopped{.request_id = id}, At(19)).commands) {
      commands.push_back(std::move(next));
    }
  }
  EXPECT_EQ(stopped, kMany);
  EXPECT_EQ(core_.Snapshot().busy_keys, 0u);
}

// CLU-5: nor does one whose lock is still being given back, and the answer to that is welcome whenever it comes.
TEST_F(PlacementCoordinatorCoreTest, DoesNotWaitForALockWhenItsMembershipIsOver) {
  for (const bool is_late : {false, true}) {
    core_.RenewMembership(At(20), At(1));
    const auto release = Only<ReleaseLock>(Activate(mine_, is_late ? 8 : 7, At(1)));
    const auto stop = Only<StopActivation>(core_.Tick(At(19)));
    if (!is_late) {
      EXPECT_TRUE(Give(LockReleased{.request_id = release.request_id}, At(19)).commands.empty());
    }
    EXPECT_EQ(Give(ActivationStopped{.request_id = stop.request_id}, At(19)).idle_keys.size(), 1u);
    if (is_late) {
      EXPECT_TRUE(Give(LockReleased{.request_id = release.request_id}, At(19)).idle_keys.empty());
    }
    EXPECT_FALSE(core_.HandleCommandResult(LockReleased{.request_id = release.request_id}, At(19)).ok()) << "once";
  }
}

// An activation that was stored when its member's time was over does not stay.
TEST_F(PlacementCoordinatorCoreTest, DoesNotKeepWhatWasStoredTooLate) {
  core_.RenewMembership(At(10), At(1));
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(8)).value(), 7, At(8));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(8)));
  const auto store = Only<StoreActivation>(Give(ActivationEnsured{.request_id = ensure.request_id}, At(8)));
  const Outcome stored = Give(ActivationStored{.request_id = store.request_id}, At(9));
  ASSERT_EQ(stored.settled.size(), 1u);
  EXPECT_EQ(ErrorKindOf<LookupError>(stored.settled[0].status), LookupError::kNotReady);
  Only<StopActivation>(stored);
}

// CLU-8, CLU-9, CLU-11: what nobody needs ends: first the actor, then its record.
TEST_F(PlacementCoordinatorCoreTest, PassivatesTheIdle) {
  ActivateAndRelease(mine_, 7, At(0));
  core_.Touch(mine_, At(100));
  EXPECT_TRUE(core_.Tick(At(3699)).commands.empty());
  const auto stop = Only<StopActivation>(core_.Tick(At(3700)));
  EXPECT_EQ(stop.token, 7u);
  EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(3700))), LookupError::kPending);
  const Outcome stopped = Give(ActivationStopped{.request_id = stop.request_id}, At(3701));
  EXPECT_EQ(KindsOf(stopped), (std::vector<Kind>{Kind::kPassivated}));
  EXPECT_EQ(stopped.events[0].key, mine_);
  const auto remove = Only<RemoveActivation>(stopped);
  EXPECT_EQ(remove.token, 7u);
  EXPECT_EQ(Give(ActivationRemoved{.request_id = remove.request_id}, At(3702)).idle_keys.size(), 1u);
  Only<TryAcquireLock>(core_.Resolve(mine_, At(3702)).value());
}

// One that does not stop keeps its record, so that nobody else starts it, and is told again.
TEST_F(PlacementCoordinatorCoreTest, TriesAgainToStopWhatDoesNot) {
  ActivateAndRelease(mine_, 7, At(0));
  const auto stop = Only<StopActivation>(core_.Passivate(mine_, At(1)));
  const Outcome failed =
      Give(ActivationStopped{.request_id = stop.request_id, .result = absl::DeadlineExceededError("busy")}, At(2));
  EXPECT_TRUE(failed.commands.empty());
  EXPECT_EQ(KindsOf(failed), (std::vector<Kind>{Kind::kActivationFailed}));
  EXPECT_EQ(ErrorOf(core_.Resolve(mine_, At(2))), LookupError::kPending);
  const auto again = Only<StopActivation>(core_.Tick(At(3)));
  EXPECT_EQ(again.token, 7u);
  Only<RemoveActivation>(Give(ActivationStopped{.request_id = again.request_id}, At(3)));
}

TEST_F(PlacementCoordinatorCoreTest, RemovesTheRecordOfAnActivationThatEndedByItself) {
  ActivateAndRelease(mine_, 7, At(0));
  EXPECT_TRUE(core_.ActivationEnded(mine_, 6, At(1)).commands.empty()) << "an older one";
  EXPECT_EQ(core_.Snapshot().activations, 1u);
  EXPECT_EQ(Only<RemoveActivation>(core_.ActivationEnded(mine_, 7, At(1))).token, 7u);
  EXPECT_EQ(core_.Snapshot().activations, 0u);
  EXPECT_TRUE(core_.ActivationEnded(mine_, 7, At(1)).commands.empty());
}

TEST_F(PlacementCoordinatorCoreTest, DoesNotResolveToAnActivationThatEndedAtOnce) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(1)));
  const auto store = Only<StoreActivation>(Give(ActivationEnsured{.request_id = ensure.request_id}, At(1)));
  EXPECT_TRUE(core_.ActivationEnded(mine_, 7, At(1)).commands.empty());
  const Outcome stored = Give(ActivationStored{.request_id = store.request_id}, At(1));
  ASSERT_EQ(stored.settled.size(), 1u);
  EXPECT_FALSE(stored.settled[0].status.ok());
  Only<StopActivation>(stored);
  EXPECT_EQ(core_.Snapshot().activations, 0u);
}

TEST_F(PlacementCoordinatorCoreTest, SettlesALookupWhoseActivationEndedBeforeItWasAnswered) {
  const LoadActivation load = Acquire(core_.Resolve(mine_, At(1)).value(), 7, At(1));
  const auto ensure = Only<EnsureActivation>(Give(ActivationLoaded{.request_id = load.request_id}, At(1)));
  core_.ActivationEnded(mine_, 7, At(1));
  const auto stop = Only<StopActivation>(Give(ActivationEnsured{.request_id = ensure.request_id}, At(1)));
  const auto release = Only<ReleaseLock>(Give(ActivationStopped{.request_id = stop.request_id}, At(1)));
  const Outcome released = Give(LockReleased{.request_id = release.request_id}, At(1));
  ASSERT_EQ(released.settled.size(), 1u);
  EXPECT_TRUE(IsRetryableLookup(released.settled[0].status));
}

// What ends while its lock is being given back is not forgotten.
TEST_F(PlacementCoordinatorCoreTest, StopsWhatItIsJustReleasingTheLockOf) {
  const auto release = Only<ReleaseLock>(Activate(mine_, 7, At(1)));
  EXPECT_TRUE(core_.Passivate(mine_, At(1)).commands.empty()) << "one thing at a time";
  const auto stop = Only<StopActivation>(Give(LockReleased{.request_id = release.request_id}, At(2)));
  const auto remove = Only<RemoveActivation>(Give(ActivationStopped{.request_id = stop.request_id}, At(2)));
  EXPECT_EQ(remove.token, 7u);

  const GrainKey second = KeyOf(*both_, "a:1", 1);
  const auto release_second = Only<ReleaseLock>(Activate(second, 8, At(3)));
  EXPECT_TRUE(core_.ActivationEnded(second, 8, At(3)).commands.empty());
  EXPECT_EQ(Only<RemoveActivation>(Give(LockReleased{.request_id = release_second.request_id}, At(3))).token, 8u);
}

// Leaving hands over, a bounded number at a time, and takes nothing new.
TEST(PlacementCoordinatorCore, HandsOverWhatItHasWhenItLeaves) {
  Core core({.max_stops = 2});
  ASSERT_TRUE(core.StartMember(Hosting("a:1"), At(0)).ok());
  core.UpdateTopology(Topology(1, {Hosting("a:1")}), At(0));
  for (uint64_t i = 1; i <= 5; ++i) {
    const GrainKey key("account", absl::StrCat(i));
    const PlacementRequestId id = RequestIdOf(core.Resolve(key, At(0)).value().commands[0]);
    const PlacementLease lease{.key = key, .owner = "a:1#1", .expires_at = At(10), .token = i};
    ASSERT_TRUE(core.HandleCommandResult(LockAcquired{.request_id = id, .result = lease}, At(0)).ok());
    ASSERT_TRUE(core.HandleCommandResult(ActivationLoaded{.request_id = id}, At(0)).ok());
    ASSERT_TRUE(core.HandleCommandResult(ActivationEnsured{.request_id = id}, At(0)).ok());
    ASSERT_TRUE(core.HandleCommandResult(ActivationStored{.request_id = id}, At(0)).ok());
    ASSERT_TRUE(core.HandleCommandResult(LockReleased{.request_id = id}, At(0)).ok());
  }
  Outcome outcome = core.BeginLeaving(At(1)).value();
  EXPECT_EQ(ErrorOf(core.Resolve(GrainKey("account", "6"), At(1))), LookupError::kNotReady);
  EXPECT_NE(core.Cached(GrainKey("account", "5"), At(1)), nullptr) << "until its turn comes";
  std::vector<PlacementCommand> todo = std::move(outcome.commands);
  size_t stopped = 0;
  size_t removed = 0;
  while (!todo.empty()) {
    EXPECT_LE(todo.size(), 2u);
    const PlacementCommand command = todo.back();
    todo.pop_back();
    PlacementCommandResult result;
    if (std::holds_alternative<StopActivation>(command)) {
      ++stopped;
      result = ActivationStopped{.request_id = RequestIdOf(command)};
    } else {
      ASSERT_TRUE(std::holds_alternative<RemoveActivation>(command)) << CommandName(command);
      ++removed;
      result = ActivationRemoved{.request_id = RequestIdOf(command)};
    }
    Outcome next = core.HandleCommandResult(std::move(result), At(2)).value();
    for (PlacementCommand& further : next.commands) todo.push_back(std::move(further));
  }
  EXPECT_EQ(stopped, 5u);
  EXPECT_EQ(removed, 5u);
  EXPECT_EQ(core.Snapshot().activations, 0u);
  EXPECT_EQ(core.Snapshot().busy_keys, 0u);
}

// The next life does not begin before the former has ended.
TEST_F(PlacementCoordinatorCoreTest, StartsAgainWhenEverythingHasStopped) {
  ActivateAndRelease(mine_, 7, At(0));
  const auto stop = Only<StopActivation>(core_.Stop(At(1)).value());
  const auto remove = Only<RemoveActivation>(Give(ActivationStopped{.request_id = stop.request_id}, At(1)));
  Give(ActivationRemoved{.request_id = remove.request_id}, At(1));
  ASSERT_TRUE(core_.StartMember(Hosting("a:1", 2), At(2)).ok());
  EXPECT_EQ(core_.Snapshot().self, "a:1#2");
  EXPECT_EQ(core_.Resolve(mine_, At(2)).value().resolution->decision.owner, "a:1#1") << "as far as it is known";
  core_.UpdateTopology(Topology(2, {Hosting("a:1", 2), Hosting("b:1")}), At(3));
  EXPECT_EQ(Only<TryAcquireLock>(core_.Resolve(mine_, At(3)).value()).owner, "a:1#2");
}

// CLU-9: every kind of event and state has a name.
TEST(PlacementEvent, HasNames) {
  for (int i = 0; i <= static_cast<int>(Kind::kPassivated); ++i) {
    EXPECT_NE(PlacementEventName(static_cast<Kind>(i)), "unknown");
  }
  for (int i = 0; i <= static_cast<int>(PlacementCoordinatorState::kNotReady); ++i) {
    EXPECT_NE(PlacementStateName(static_cast<PlacementCoordinatorState>(i)), "unknown");
  }
}

}  // namespace
}  // namespace fraktor
