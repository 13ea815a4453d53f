#include "fraktor/cluster/placement/placement_coordinator_driver.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/event_stream.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/pid_cache.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/identity/virtual_actor_registry.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/partition_identity_lookup.h"
#include "fraktor/cluster/placement/placement_event.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace fraktor {
namespace {

using Kind = PlacementEvent::Kind;

// The actors of one node, which do as they are told.
class FakeActors final : public ActivationExecutor {
 public:
  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) override {
    ++ensured;
    if (!refusal.ok()) return MakeReadyFuture<ActivationRecord>(refusal);
    running[key] = token;
    return MakeReadyFuture<ActivationRecord>(
        ActivationRecord{.pid = absl::StrCat(owner, "/", key.ToString(), "/", token)});
  }
  Future<void> StopActivation(GrainKey key, uint64_t token) override {
    const auto found = running.find(key);
    if (found != running.end() && found->second == token) running.erase(found);
    return MakeReadyFuture();
  }

  int ensured = 0;
  absl::Status refusal;
  std::map<GrainKey, uint64_t> running;
};

// A store that can be away, and whose answers can get lost.
class MoodyStore final : public PlacementLock, public ActivationStorage {
 public:
  explicit MoodyStore(const RuntimeToolbox& toolbox) : inner(toolbox) {}

  enum class Mood { kFine, kSilent, kForgetsToAnswer, kFails };

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override {
    ++acquired;
    return In(lock_mood, [&] { return inner.TryAcquire(key, owner, now); });
  }
  Future<void> Release(PlacementLease lease) override {
    return In(release_mood, [&] { return inner.Release(lease); });
  }
  Future<LoadedActivation> Load(GrainKey key) override {
    return In(load_mood, [&] { return inner.Load(key); });
  }
  Future<void> Store(GrainKey key, ActivationEntry entry, uint64_t expected_token) override {
    return In(store_mood, [&] { return inner.Store(key, entry, expected_token); });
  }
  Future<void> Remove(GrainKey key, uint64_t token) override { return inner.Remove(key, token); }

  MemoryPlacementStore inner;
  Mood lock_mood = Mood::kFine;
  Mood load_mood = Mood::kFine;
  Mood store_mood = Mood::kFine;
  Mood release_mood = Mood::kFine;
  int acquired = 0;

 private:
  template <class Fn>
  auto In(Mood mood, Fn fn) -> decltype(fn()) {
    using T = typename decltype(fn())::value_type;
    switch (mood) {
      case Mood::kFine:
        return fn();
      case Mood::kFails:
        return MakeReadyFuture<T>(absl::UnavailableError("the store is away"));
      case Mood::kForgetsToAnswer:
        static_cast<void>(fn());
        break;
      case Mood::kSilent:
        break;
    }
    auto [promise, future] = MakePromise<T>();
    silent_.push_back(std::make_shared<Promise<T>>(std::move(promise)));
    return std::move(future);
  }

  std::vector<std::shared_ptr<void>> silent_;
};

// One node of a cluster; the others are made of the same toolbox and store.
struct Node {
  Node(LocalToolbox& toolbox, std::shared_ptr<MoodyStore> store, const PlacementDriverOptions& options)
      : executor(SerialExecutor::Make(toolbox, {}).value()), actors(std::make_shared<FakeActors>()) {
    driver = PlacementCoordinatorDriver::Make({.toolbox = toolbox,
                                               .executor = *executor,
                                               .lock = store,
                                               .storage = store,
                                               .activations = actors,
                                               .events = &stream},
                                              options)
                 .value();
    listening.push_back(
        stream.Listen<PlacementEvent>([this](const PlacementEvent& event) { events.push_back(event); }));
    listening.push_back(stream.Listen<PidCacheEvent>([this](const PidCacheEvent&) { ++cache_events; }));
    listening.push_back(stream.Listen<VirtualActorEvent>([this](const VirtualActorEvent&) { ++actor_events; }));
  }
  std::vector<Kind> TakeKinds() {
    std::vector<Kind> kinds;
    for (const PlacementEvent& event : events) kinds.push_back(event.kind);
    events.clear();
    return kinds;
  }

  EventStream stream;
  std::unique_ptr<SerialExecutor> executor;
  std::shared_ptr<FakeActors> actors;
  std::vector<PlacementEvent> events;
  int cache_events = 0;
  int actor_events = 0;
  std::vector<EventSubscription> listening;
  std::shared_ptr<PlacementCoordinatorDriver> driver;
};

Member Hosting(std::string_view authority, uint64_t incarnation = 1) {
  return Member{.authority = std::string(authority), .incarnation = incarnation, .kinds = {"account"}};
}

class PlacementCoordinatorDriverTest : public testing::Test {
 protected:
  std::unique_ptr<Node> MakeNode(std::string_view authority) {
    auto node = std::make_unique<Node>(*toolbox_, store_, options_);
    EXPECT_TRUE(node->driver->StartMember(Hosting(authority)).ok());
    node->driver->UpdateTopology(alone_);
    node->events.clear();
    return node;
  }
  absl::StatusOr<PlacementResolutionPtr> Wait(Future<PlacementResolutionPtr> future) {
    EXPECT_TRUE(toolbox_->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());
    return future.Take();
  }
  absl::Status Wait(Future<void> future) {
    EXPECT_TRUE(toolbox_->RunUntil([&] { return future.IsReady(); }, absl::Hours(1)).ok());
    return future.Take();
  }
  void RunFor(absl::Duration duration) { ASSERT_TRUE(toolbox_->RunFor(duration).ok()); }

  const std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  const std::shared_ptr<MoodyStore> store_ = std::make_shared<MoodyStore>(*toolbox_);
  PlacementDriverOptions options_;
  const ClusterTopologyPtr alone_ = ClusterTopology::Make(1, {Hosting("a:1")}).value();
  const GrainKey alice_{"account", "alice"};
};

// CLU-4, CLU-8. The integration tests "commands and results go there and back" and "events reach the stream" of the
// source.
TEST_F(PlacementCoordinatorDriverTest, ActivatesAndTellsTheStreamInOrder) {
  const auto node = MakeNode("a:1");
  RunFor(absl::Seconds(3));
  const PlacementResolutionPtr found = Wait(node->driver->Resolve(alice_)).value();
  EXPECT_EQ(found->locality, PlacementLocality::kLocal);
  EXPECT_EQ(found->pid, "a:1#1/account/alice/1");
  EXPECT_EQ(node->actors->running, (std::map<GrainKey, uint64_t>{{alice_, found->token}}));
  RunFor(absl::Seconds(1));
  ASSERT_EQ(node->events.size(), 2u);
  EXPECT_GE(node->events[0].observed_at, Instant() + absl::Seconds(3));
  EXPECT_EQ(node->TakeKinds(), (std::vector<Kind>{Kind::kActivated, Kind::kResolved}));
  EXPECT_EQ(node->actor_events, 1);
  EXPECT_EQ(store_->inner.activations(), 1u);
  EXPECT_EQ(store_->inner.locks(), 0u) << "given back";
  EXPECT_EQ(node->driver->mismatches(), 0u);
}

// CLU-5: many who want the same one get the same one.
TEST_F(PlacementCoordinatorDriverTest, MakesOneLookupOfMany) {
  const auto node = MakeNode("a:1");
  std::vector<Future<PlacementResolutionPtr>> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(node->driver->Resolve(alice_));
  RunFor(absl::Seconds(1));
  for (Future<PlacementResolutionPtr>& future : waiting) {
    ASSERT_TRUE(future.IsReady());
    EXPECT_EQ(future.Take().value()->token, 1u);
  }
  EXPECT_EQ(store_->acquired, 1);
  EXPECT_EQ(node->actors->ensured, 1);
}

// CLU-2: without waiting it is pending, and asking again comes to an end.
TEST_F(PlacementCoordinatorDriverTest, SaysPendingUntilItIsKnown) {
  const auto node = MakeNode("a:1");
  PartitionIdentityLookup lookup(node->driver);
  store_->load_mood = MoodyStore::Mood::kSilent;
  absl::StatusOr<PlacementResolutionPtr> found = lookup.Resolve(alice_, toolbox_->Now());
  EXPECT_EQ(ErrorKindOf<LookupError>(found.status()), LookupError::kPending);
  EXPECT_EQ(ErrorKindOf<LookupError>(lookup.Resolve(alice_, toolbox_->Now()).status()), LookupError::kPending);
  EXPECT_EQ(store_->acquired, 1);
  store_->load_mood = MoodyStore::Mood::kFine;
  RunFor(options_.command_timeout + absl::Seconds(1));
  found = lookup.Resolve(alice_, toolbox_->Now());
  ASSERT_TRUE(found.ok()) << found.status() << ": the store answers at once";
  EXPECT_EQ((*found)->locality, PlacementLocality::kLocal);
  EXPECT_EQ(store_->acquired, 2);
  EXPECT_FALSE(lookup.SetupMember(Hosting("a:1")).ok()) << "it takes part already";
  EXPECT_FALSE(lookup.SetupClient().ok());
}

// CLU-2: a client; and a lookup that nobody has set up.
TEST_F(PlacementCoordinatorDriverTest, ResolvesForClients) {
  Node node(*toolbox_, store_, options_);
  PartitionIdentityLookup lookup(node.driver);
  EXPECT_EQ(ErrorKindOf<LookupError>(lookup.Resolve(alice_, toolbox_->Now()).status()), LookupError::kNotStarted);
  EXPECT_EQ(ErrorKindOf<LookupError>(Wait(node.driver->Resolve(alice_)).status()), LookupError::kNotStarted);
  ASSERT_TRUE(lookup.SetupClient().ok());
  EXPECT_EQ(ErrorKindOf<LookupError>(lookup.Resolve(alice_, toolbox_->Now()).status()), LookupError::kNotReady);
  lookup.UpdateTopology(alone_);
  EXPECT_EQ((*lookup.Resolve(alice_, toolbox_->Now()))->decision.authority, "a:1");
  EXPECT_EQ(store_->acquired, 0);
}

// CLU-11: a lookup that cannot be answered yet is tried again, with longer and longer pauses, and ends.
TEST_F(PlacementCoordinatorDriverTest, TriesAgainWithPausesThatGrow) {
  options_.max_retries = 3;
  options_.min_backoff = absl::Seconds(1);
  options_.max_backoff = absl::Seconds(100);
  options_.lookup_timeout = absl::Hours(1);
  const auto node = MakeNode("a:1");
  store_->lock_mood = MoodyStore::Mood::kFails;
  Future<PlacementResolutionPtr> waiting = node->driver->Resolve(alice_);
  std::vector<int> attempts;
  for (const int seconds : {0, 2, 2, 5}) {
    RunFor(absl::Seconds(seconds) + absl::Milliseconds(1));
    attempts.push_back(store_->acquired);
  }
  EXPECT_EQ(attempts, (std::vector<int>{1, 2, 3, 4})) << "after 1, 2 and 4 seconds, each a fifth longer at most";
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_EQ(ErrorKindOf<LookupError>(waiting.Take().status()), LookupError::kLockDenied);
  EXPECT_EQ(node->TakeKinds(), std::vector<Kind>(4, Kind::kLockDenied));
}

TEST_F(PlacementCoordinatorDriverTest, FindsItAsSoonAsTheStoreIsBack) {
  const auto node = MakeNode("a:1");
  store_->load_mood = MoodyStore::Mood::kFails;
  Future<PlacementResolutionPtr> waiting = node->driver->Resolve(alice_);
  RunFor(absl::Milliseconds(1));
  EXPECT_FALSE(waiting.IsReady());
  EXPECT_EQ(node->TakeKinds(), (std::vector<Kind>{Kind::kStorageFailed}));
  store_->load_mood = MoodyStore::Mood::kFine;
  EXPECT_TRUE(Wait(std::move(waiting)).ok());
}

// A lookup before anybody is known waits for the members.
TEST_F(PlacementCoordinatorDriverTest, WaitsForMembers) {
  Node node(*toolbox_, store_, options_);
  ASSERT_TRUE(node.driver->StartMember(Hosting("a:1")).ok());
  Future<PlacementResolutionPtr> waiting = node.driver->Resolve(alice_);
  RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(waiting.IsReady());
  node.driver->UpdateTopology(alone_);
  EXPECT_TRUE(Wait(std::move(waiting)).ok());
}

// CLU-11, G6: no answer at all.
TEST_F(PlacementCoordinatorDriverTest, GivesUpWhenNobodyAnswers) {
  const auto node = MakeNode("a:1");
  store_->lock_mood = MoodyStore::Mood::kSilent;
  const Instant begin = toolbox_->Now();
  const absl::Status status = Wait(node->driver->Resolve(alice_)).status();
  EXPECT_EQ(ErrorKindOf<LookupError>(status), LookupError::kTimeout) << status;
  EXPECT_LE(toolbox_->Now() - begin, options_.lookup_timeout + options_.tick_period);
  EXPECT_EQ(node->driver->Snapshot().busy_keys, 1u) << "one more is under way";
  RunFor(absl::Seconds(10));
  EXPECT_EQ(node->driver->Snapshot().busy_keys, 0u);
}

// What was stored without an answer is taken back: nothing runs without a record, and no record without something that
// runs.
TEST_F(PlacementCoordinatorDriverTest, UndoesWhatItDoesNotKnow) {
  options_.max_retries = 0;
  const auto node = MakeNode("a:1");
  store_->store_mood = MoodyStore::Mood::kForgetsToAnswer;
  EXPECT_EQ(ErrorKindOf<LookupError>(Wait(node->driver->Resolve(alice_)).status()), LookupError::kStorageFailed);
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(node->actors->running.empty());
  EXPECT_EQ(store_->inner.activations(), 0u);
  EXPECT_EQ(store_->inner.locks(), 0u);
  store_->store_mood = MoodyStore::Mood::kFine;
  EXPECT_EQ(Wait(node->driver->Resolve(alice_)).value()->token, 2u);
}

// CLU-4, CLU-9
TEST_F(PlacementCoordinatorDriverTest, AnswersAlthoughTheLockCannotBeGivenBack) {
  const auto node = MakeNode("a:1");
  store_->release_mood = MoodyStore::Mood::kFails;
  EXPECT_TRUE(Wait(node->driver->Resolve(alice_)).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(node->TakeKinds(), (std::vector<Kind>{Kind::kActivated, Kind::kResolved, Kind::kReleaseFailed}));
}

// CLU-9: what starting an actor says reaches who asked, at once.
TEST_F(PlacementCoordinatorDriverTest, PassesOnWhyAnActorDidNotStart) {
  const auto node = MakeNode("a:1");
  node->actors->refusal = absl::InvalidArgumentError("no such account");
  const absl::Status status = Wait(node->driver->Resolve(alice_)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(std::string(status.message()).find("no such account"), std::string::npos);
  EXPECT_EQ(store_->acquired, 1) << "trying again would not help";
  EXPECT_EQ(node->TakeKinds(), (std::vector<Kind>{Kind::kActivationFailed}));
}

// CLU-5, CLU-6: two nodes that both believe to own a grain: one activates it, the other finds it there. The integration
// test "borders of lock and storage" of the source.
TEST_F(PlacementCoordinatorDriverTest, ActivatesOnOneOfTwoThatBothWantIt) {
  const ClusterTopologyPtr both = ClusterTopology::Make(2, {Hosting("a:1"), Hosting("b:1")}).value();
  for (int i = 0; i < 20; ++i) {
    const GrainKey key("account", absl::StrCat("user-", i));
    if (RendezvousHasher::OwnerOf(*both, key)->authority != "b:1") continue;
    const auto a = MakeNode("a:1");  // has not heard of b yet
    Node b(*toolbox_, store_, options_);
    ASSERT_TRUE(b.driver->StartMember(Hosting("b:1")).ok());
    b.driver->UpdateTopology(both);
    Node& first = i % 2 == 0 ? *a : b;
    Node& second = i % 2 == 0 ? b : *a;
    Future<PlacementResolutionPtr> of_first = first.driver->Resolve(key);
    Future<PlacementResolutionPtr> of_second = second.driver->Resolve(key);
    RunFor(absl::Milliseconds(10));
    a->driver->UpdateTopology(both);
    const PlacementResolutionPtr at_first = Wait(std::move(of_first)).value();
    const PlacementResolutionPtr at_second = Wait(std::move(of_second)).value();
    EXPECT_EQ(at_first->decision.owner, at_second->decision.owner);
    EXPECT_NE(at_first->locality, at_second->locality);
    EXPECT_EQ(a->actors->running.size() + b.actors->running.size(), 1u);
  }
}

// CLU-6, CLU-11: a member that left loses what it had.
TEST_F(PlacementCoordinatorDriverTest, TakesOverFromAMemberThatLeft) {
  const auto a = MakeNode("a:1");
  ASSERT_TRUE(Wait(a->driver->Resolve(alice_)).ok());
  Node b(*toolbox_, store_, options_);
  ASSERT_TRUE(b.driver->StartMember(Hosting("b:1")).ok());
  b.driver->UpdateTopology(ClusterTopology::Make(2, {Hosting("a:1"), Hosting("b:1")}).value());
  const PlacementResolutionPtr there = Wait(b.driver->Resolve(alice_, {.is_redirected = true})).value();
  EXPECT_EQ(there->decision.owner, "a:1#1") << "it is honoured while its member is one";
  b.driver->UpdateTopology(ClusterTopology::Make(3, {Hosting("b:1")}).value());
  EXPECT_EQ(b.cache_events, 1);
  const PlacementResolutionPtr here = Wait(b.driver->Resolve(alice_)).value();
  EXPECT_EQ(here->decision.owner, "b:1#1");
  EXPECT_GT(here->token, there->token);
}

// CLU-8, CLU-11: the driver ends what nobody needs.
TEST_F(PlacementCoordinatorDriverTest, PassivatesTheIdle) {
  const auto node = MakeNode("a:1");
  ASSERT_TRUE(Wait(node->driver->Resolve(alice_)).ok());
  RunFor(absl::Seconds(3000));
  node->driver->Touch(alice_);
  RunFor(absl::Seconds(3000));
  EXPECT_EQ(node->actors->running.size(), 1u);
  node->events.clear();
  RunFor(absl::Seconds(602));
  EXPECT_TRUE(node->actors->running.empty());
  EXPECT_EQ(store_->inner.activations(), 0u);
  EXPECT_EQ(node->TakeKinds(), (std::vector<Kind>{Kind::kPassivated}));
  EXPECT_EQ(Wait(node->driver->Resolve(alice_)).value()->token, 2u) << "it comes back when it is needed";
}

// Who asks while it is being ended gets the next one.
TEST_F(PlacementCoordinatorDriverTest, ActivatesAnewWhatWasJustPassivated) {
  const auto node = MakeNode("a:1");
  ASSERT_TRUE(Wait(node->driver->Resolve(alice_)).ok());
  RunFor(absl::Seconds(1));
  node->driver->Passivate(alice_);
  EXPECT_EQ(Wait(node->driver->Resolve(alice_)).value()->token, 2u);
}

TEST_F(PlacementCoordinatorDriverTest, HearsThatAnActorEndedByItself) {
  const auto node = MakeNode("a:1");
  ASSERT_TRUE(Wait(node->driver->Resolve(alice_)).ok());
  RunFor(absl::Seconds(1));
  node->driver->ActivationEnded(alice_, 1);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(store_->inner.activations(), 0u);
  EXPECT_EQ(node->driver->Local(alice_), nullptr);
}

// Handing over: everything ends here, and others may begin.
TEST_F(PlacementCoordinatorDriverTest, LeavesWhenEverythingIsHandedOver) {
  const auto node = MakeNode("a:1");
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Wait(node->driver->Resolve(GrainKey("account", absl::StrCat(i)))).ok());
  RunFor(absl::Seconds(1));
  EXPECT_EQ(node->actors->running.size(), 500u);
  EXPECT_TRUE(Wait(node->driver->Leave()).ok());
  EXPECT_TRUE(node->actors->running.empty());
  EXPECT_EQ(store_->inner.activations(), 0u);
  EXPECT_TRUE(Wait(node->driver->Stop()).ok());
  EXPECT_FALSE(Wait(node->driver->Stop()).ok());
}

TEST_F(PlacementCoordinatorDriverTest, EndsLookupsWhenItIsStopped) {
  const auto node = MakeNode("a:1");
  store_->load_mood = MoodyStore::Mood::kSilent;
  Future<PlacementResolutionPtr> waiting = node->driver->Resolve(alice_);
  RunFor(absl::Milliseconds(1));
  Future<void> stopped = node->driver->Stop();
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_EQ(ErrorKindOf<LookupError>(waiting.Take().status()), LookupError::kNotStarted);
  EXPECT_TRUE(Wait(std::move(stopped)).ok());
  EXPECT_EQ(store_->inner.locks(), 0u) << "the lock was given back";
}

TEST_F(PlacementCoordinatorDriverTest, LimitsThoseWhoWait) {
  options_.max_waiting = 2;
  const auto node = MakeNode("a:1");
  store_->load_mood = MoodyStore::Mood::kSilent;
  Future<PlacementResolutionPtr> first = node->driver->Resolve(alice_);
  Future<PlacementResolutionPtr> second = node->driver->Resolve(alice_);
  Future<PlacementResolutionPtr> third = node->driver->Resolve(alice_);
  ASSERT_TRUE(third.IsReady());
  EXPECT_TRUE(absl::IsResourceExhausted(third.Take().status()));
  store_->load_mood = MoodyStore::Mood::kFine;
  EXPECT_TRUE(Wait(std::move(first)).ok());
  EXPECT_TRUE(Wait(std::move(second)).ok());
}

// It may go while something is under way, and what comes later finds nobody.
TEST_F(PlacementCoordinatorDriverTest, MayGoWhileSomethingIsUnderWay) {
  auto node = MakeNode("a:1");
  store_->load_mood = MoodyStore::Mood::kSilent;
  Future<PlacementResolutionPtr> waiting = node->driver->Resolve(alice_);
  RunFor(absl::Milliseconds(1));
  node.reset();
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_TRUE(absl::IsCancelled(waiting.Take().status()));
  RunFor(absl::Seconds(10));
}

// Threads ask, end and forget, all at once: everything is answered, and no grain ever has two actors.
TEST(PlacementCoordinatorDriver, WorksForManyThreads) {
  class LockedActors final : public ActivationExecutor {
   public:
    Future<ActivationRecord> EnsureActivation(GrainKey key, std::string, uint64_t token) override {
      MutexLock lock(mutex_);
      if (!running_.emplace(key, token).second) ++doubles_;
      return MakeReadyFuture<ActivationRecord>(ActivationRecord{.pid = absl::StrCat(key.ToString(), "/", token)});
    }
    Future<void> StopActivation(GrainKey key, uint64_t token) override {
      MutexLock lock(mutex_);
      const auto found = running_.find(key);
      if (found != running_.end() && found->second == token) running_.erase(found);
      return MakeReadyFuture();
    }
    int doubles() {
      MutexLock lock(mutex_);
      return doubles_;
    }
    size_t running() {
      MutexLock lock(mutex_);
      return running_.size();
    }

   private:
    Mutex mutex_;
    std::map<GrainKey, uint64_t> running_ ABSL_GUARDED_BY(mutex_);
    int doubles_ ABSL_GUARDED_BY(mutex_) = 0;
  };
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  constexpr int kKeys = 20;
  const auto toolbox = StdToolbox::Make({}).value();
  const auto executor = SerialExecutor::Make(*toolbox, {}).value();
  const auto store = std::make_shared<MemoryPlacementStore>(*toolbox);
  const auto actors = std::make_shared<LockedActors>();
  EventStream stream;
  std::atomic<int> events = 0;  // a count that pairs with nothing
  const EventSubscription listening = stream.Listen<PlacementEvent>([&](const PlacementEvent&) { ++events; });
  auto driver = PlacementCoordinatorDriver::Make({.toolbox = *toolbox,
                                                  .executor = *executor,
                                                  .lock = store,
                                                  .storage = store,
                                                  .activations = actors,
                                                  .events = &stream},
                                                 {.tick_period = absl::Milliseconds(1)})
                    .value();
  ASSERT_TRUE(driver->StartMember(Hosting("a:1")).ok());
  driver->UpdateTopology(ClusterTopology::Make(1, {Hosting("a:1")}).value());
  std::atomic<int> wrong = 0;  // likewise
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const GrainKey key("account", absl::StrCat((i * 7 + t) % kKeys));
        const absl::StatusOr<PlacementResolutionPtr> found = driver->Resolve(key).Wait();
        if (!found.ok() || (*found)->locality != PlacementLocality::kLocal) {
          ++wrong;
          continue;
        }
        if (i % 5 == t) driver->Passivate(key);
        if (i % 11 == t) driver->RemovePid(key, "nobody");
        if (i % 13 == t) driver->UpdateTopology(ClusterTopology::Make(1 + i, {Hosting("a:1")}).value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(driver->Stop().Wait().ok());
  EXPECT_EQ(actors->doubles(), 0);
  EXPECT_EQ(actors->running(), 0u);
  EXPECT_EQ(store->activations(), 0u);
  EXPECT_EQ(driver->mismatches(), 0u);
  EXPECT_GE(events, kKeys);
  driver.reset();
}

TEST_F(PlacementCoordinatorDriverTest, RefusesOptionsThatMakeNoSense) {
  const auto executor = SerialExecutor::Make(*toolbox_, {}).value();
  const auto make = [&](const PlacementDriverOptions& options) {
    return PlacementCoordinatorDriver::Make({.toolbox = *toolbox_,
                                             .executor = *executor,
                                             .lock = store_,
                                             .storage = store_,
                                             .activations = std::make_shared<FakeActors>()},
                                            options)
        .status();
  };
  EXPECT_TRUE(make({}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(make({.command_timeout = absl::ZeroDuration()})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.tick_period = -absl::Seconds(1)})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.max_retries = -1})));
  EXPECT_TRUE(absl::IsInvalidArgument(make({.max_backoff = absl::Milliseconds(1)})));
}

}  // namespace
}  // namespace fraktor
