// The store and its client on one node: what has to hold of locks, tokens and terms, whatever is lost on the way.
// cluster/testing tries the same over networks, with nodes that crash.
#include "fraktor/cluster/embedded/embedded_store.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/error_reply.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/test_kit.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/watcher_table.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/table/indexed_set.h"
#include "fraktor/utils/testing/counted_key.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/pumped_toolbox.h"

namespace fraktor {
namespace {

const GrainKey kAlice("account", "alice");

// Remembers what it is told, and looks around when it is.
class WatchedBackend final : public EmbeddedBackend {
 public:
  absl::StatusOr<EmbeddedState> Load() override {
    ++loads;
    if (!unreadable.ok()) return unreadable;
    return state;
  }
  absl::Status Write(const EmbeddedChanges& changes) override {
    ++writes;
    if (on_write) on_write();
    state.exists = true;
    if (changes.token_limit.has_value()) state.token_limit = *changes.token_limit;
    if (changes.epoch.has_value()) {
      state.epoch = *changes.epoch;
      state.members = changes.members;
    }
    return absl::OkStatus();
  }

  EmbeddedState state;
  absl::Status unreadable;
  int loads = 0;
  int writes = 0;
  std::function<void()> on_write;
};

// A node with a store, until another one begins with what the first has written.
class EmbeddedStoreTest : public testing::Test {
 protected:
  void Start(const EmbeddedStoreOptions& options) {
    client_.reset();
    kit_ = std::make_unique<TestKit>();
    ASSERT_TRUE(EmbeddedStore::Start(kit_->system(), options).ok());
    client_ = EmbeddedClient::Make(kit_->system()).value();
  }
  Instant Now() { return kit_->system().toolbox().Now(); }
  template <class T>
  FutureResult<T> Await(Future<T> future) {
    kit_->RunUntil([&] { return future.IsReady(); }, absl::Seconds(5));
    return future.Take();
  }
  static ActivationEntry EntryOf(std::string owner, uint64_t token) {
    ActivationEntry entry;
    entry.owner = std::move(owner);
    entry.token = token;
    return entry;
  }

  std::unique_ptr<TestKit> kit_;
  std::shared_ptr<EmbeddedClient> client_;
};

// CLU-6: who has not heard that it got the lock asks again, and has it, with another token; the first is worth nothing.
TEST_F(EmbeddedStoreTest, GivesALockAgainToWhoHasNotHeardOfIt) {
  Start({.placement = {.lease_ttl = absl::Seconds(4)}, .is_new = true});
  const PlacementLease lost = Await(client_->TryAcquire(kAlice, "a:1#1", Now())).value();
  const absl::StatusOr<PlacementLease> held = Await(client_->TryAcquire(kAlice, "b:1#2", Now()));
  EXPECT_EQ(ErrorKindOf<PlacementLockError>(held.status()), PlacementLockError::kHeld) << held.status();
  const absl::StatusOr<PlacementLease> again = Await(client_->TryAcquire(kAlice, "a:1#1", Now()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->token, lost.token);
  const absl::Status late = Await(client_->Store(kAlice, EntryOf("a:1#1", lost.token), 0));
  EXPECT_EQ(ErrorKindOf<ActivationStorageError>(late), ActivationStorageError::kFenced) << late;
  EXPECT_TRUE(Await(client_->Store(kAlice, EntryOf("a:1#1", again->token), 0)).ok());
  kit_->Advance(absl::Seconds(5));
  EXPECT_TRUE(Await(client_->TryAcquire(kAlice, "b:1#2", Now())).ok()) << "the lease is over";
}

// The cost of a watch does not depend on the number of watchers. Counts comparisons and not time.
TEST(WatcherTableTest, ComparesAConstantNumberOfWatchersInEachCall) {
  using Table = WatcherTable<CountedKey>;
  constexpr uint64_t kCount = Table::kMaxWatchers;
  Table watchers;
  CountedKey::comparisons = 0;
  const auto at = [](int64_t second) { return Instant() + absl::Seconds(second); };
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(watchers.Keep({i}, at(10)));
  EXPECT_FALSE(watchers.Keep({kCount}, at(10))) << "one too many";
  // Every second one asks again.
  for (uint64_t i = 0; i < kCount; i += 2) ASSERT_TRUE(watchers.Keep({i}, at(20)));
  watchers.Expire(at(10));
  EXPECT_EQ(watchers.size(), kCount / 2);
  for (const Table::Watcher& watcher : watchers) ASSERT_EQ(watcher.ref.value % 2, 0u);
  EXPECT_LT(CountedKey::comparisons, 4 * kCount * IndexedSet<CountedKey>::kMaxUnindexed);
}

// Watches the topologies of the store, and counts them.
class TopologyWatcher final : public ActorInstance {
 public:
  TopologyWatcher(ActorRef store, std::map<uint64_t, uint64_t>* heard) : store_(store), heard_(*heard) {}
  absl::Status PreStart(ActorContext& context) override {
    context.Tell(store_, EmbeddedWatch{.known_epoch = 0});
    return absl::OkStatus();
  }
  absl::Status Receive(ActorContext&, Envelope& message) override {
    if (const auto* const news = message.TryAs<EmbeddedTopology>()) ++heard_[news->members.size()];
    return absl::OkStatus();
  }

 private:
  const ActorRef store_;
  std::map<uint64_t, uint64_t>& heard_;
};

// Each of very many watchers hears of each topology once.
TEST_F(EmbeddedStoreTest, TellsVeryManyWatchersOfATopology) {
  constexpr uint64_t kCount = WatcherTable<ActorRef>::kMaxWatchers - 1;  // The client watches, too.
  Start({.is_new = true});
  const ActorRef store = kit_->system().Resolve("/system/cluster-store").value();
  std::map<uint64_t, uint64_t> heard;
  const PropsPtr props = MakeProps<TopologyWatcher>({}, store, &heard);
  for (uint64_t i = 0; i < kCount; ++i) kit_->Spawn(*props);
  kit_->Advance(absl::Seconds(1));
  heard.clear();
  ASSERT_TRUE(Await(client_->Join({.authority = "a:1"}, Now())).ok());
  kit_->Advance(absl::Seconds(1));
  EXPECT_EQ(heard, (std::map<uint64_t, uint64_t>{{1, kCount}}));
}

// A store whose first reply carries the timeout of an ask that it has made. It does not reply
// again.
class TimedOutStore final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (!message.Is<EmbeddedAcquire>() || std::exchange(has_replied_, true)) return absl::OkStatus();
    context.Reply(ErrorReply{
        MakeError(absl::StatusCode::kDeadlineExceeded, ActorErrorKind::kAskTimeout, "the disk has not replied")});
    return absl::OkStatus();
  }

 private:
  bool has_replied_ = false;
};

// The client says that the store does not answer if its own ask has timed out, and only then.
TEST(EmbeddedClientTest, TakesTheTimeoutInAReplyForAnAnswer) {
  TestKit kit;
  ASSERT_TRUE(kit.system().TrySpawnSystemActor(*MakeProps<TimedOutStore>({}), "cluster-store").ok());
  const std::shared_ptr<EmbeddedClient> client = EmbeddedClient::Make(kit.system()).value();
  const auto acquire = [&] {
    Future<PlacementLease> asking = client->TryAcquire(kAlice, "a:1#1", kit.system().toolbox().Now());
    kit.RunUntil([&] { return asking.IsReady(); }, absl::Minutes(1));
    return asking.Take().status();
  };
  const absl::Status replied = acquire();
  EXPECT_TRUE(absl::IsDeadlineExceeded(replied)) << replied;
  EXPECT_NE(replied.message().find("the cluster's store, on this node: the disk has not replied"),
            absl::string_view::npos)
      << replied;
  const absl::Status silent = acquire();
  EXPECT_TRUE(absl::IsUnavailable(silent)) << silent;
  EXPECT_EQ(silent.message(), "the cluster's store, on this node: it does not answer");
}

// CLU-5: a term and a lease are counted from before the question, so that they end here first.
TEST_F(EmbeddedStoreTest, CountsFromBeforeTheQuestion) {
  Start({.term = absl::Seconds(9), .placement = {.lease_ttl = absl::Seconds(4)}, .is_new = true});
  kit_->Advance(absl::Seconds(10));
  const Instant asked = Now() + -absl::Seconds(2);
  const absl::StatusOr<MembershipTerm> joined = Await(client_->Join({.authority = "a:1"}, asked));
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->valid_until, asked + absl::Seconds(9));
  kit_->Advance(absl::Seconds(3));
  const Instant asked_again = Now() + -absl::Seconds(1);
  EXPECT_EQ(Await(client_->Renew(joined->member.id(), asked_again)).value().valid_until,
            asked_again + absl::Seconds(9));
  EXPECT_EQ(Await(client_->TryAcquire(kAlice, joined->member.id(), asked_again)).value().expires_at,
            asked_again + absl::Seconds(4));
}

// Two processes with one authority take the place of each other: the log of the store's node says so, not each time.
TEST_F(EmbeddedStoreTest, WarnsOfTwoNodesWithOneAuthority) {
  Start({.is_new = true});
  const std::string first = Await(client_->Join({.authority = "a:1"}, Now())).value().member.id();
  const std::string second = Await(client_->Join({.authority = "a:1"}, Now())).value().member.id();
  EXPECT_TRUE(kit_->log().Find(0, {.level = LogLevel::kWarning}).empty()) << "a node may be started again";
  for (int i = 0; i < 3; ++i) {
    const absl::Status out = Await(client_->Renew(first, Now())).status();
    EXPECT_EQ(ErrorKindOf<MembershipError>(out), MembershipError::kHasLeft) << out;
  }
  ASSERT_TRUE(Await(client_->Renew(second, Now())).ok());
  EXPECT_EQ(kit_->log()
                .Find(0, {.level = LogLevel::kWarning,
                          .contains = "another node has joined as \"a:1\" and has taken the place of member \"" +
                                      first + "\": two processes must not have the same authority"})
                .size(),
            1u);
}

// A toolbox whose calendar is torn: who asks for the date fails.
class TornCalendar final : public PumpedToolbox {
 public:
  TornCalendar()
      : PumpedToolbox(1, {.name = "torn", .max_workers = 16, .max_timers = 1'000, .max_steps = 1'000'000},
                      absl::UnixEpoch(), nullptr) {}

  absl::Time WallNow() const override {
    if (std::exchange(is_torn, false)) throw std::runtime_error("the page is missing");
    return PumpedToolbox::WallNow();
  }

  mutable bool is_torn = false;  // once

 protected:
  size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) override {
    return timer_due ? ordinals.size() : 0;
  }
};

// A store that has failed has forgotten whom it has allowed what, also if it was the first.
TEST(EmbeddedStore, IsSilentForATermAfterItHasFailed) {
  TornCalendar toolbox;
  const auto system = ActorSystem::Create({.toolbox = &toolbox}).value();
  ASSERT_TRUE(EmbeddedStore::Start(*system, {.term = absl::Seconds(9), .is_new = true}).ok());
  const std::shared_ptr<EmbeddedClient> client = EmbeddedClient::Make(*system).value();
  const auto join = [&] {
    Future<MembershipTerm> joining = client->Join({.authority = "a:1"}, toolbox.Now());
    toolbox.RunUntil([&] { return joining.IsReady(); }, absl::Seconds(5)).IgnoreError();
    return joining.Take();
  };
  const std::string replaced = join().value().member.id();
  ASSERT_TRUE(join().ok());

  toolbox.is_torn = true;
  Future<MembershipTerm> renewing = client->Renew(replaced, toolbox.Now());  // it warns, with the date
  ASSERT_TRUE(toolbox.RunFor(absl::Seconds(2)).ok());
  ASSERT_FALSE(toolbox.is_torn);
  const absl::Status refused = join().status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("has begun anew without what it knew"), std::string::npos) << refused;
  ASSERT_TRUE(toolbox.RunFor(absl::Seconds(9)).ok());
  EXPECT_TRUE(join().ok());
}

// A store without a port is nowhere.
TEST_F(EmbeddedStoreTest, RefusesAnAuthorityWithoutAPort) {
  TestKit kit;
  for (const char* const authority : {"localhost:0", "localhost", ":2552", "localhost:65536"}) {
    const absl::Status refused = EmbeddedClient::Make(kit.system(), {.authority = authority}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(refused.message().find("EmbeddedClientOptions::authority is"), 0u) << refused;
  }
}

// A list of members that is too large for a frame would reach nobody.
TEST_F(EmbeddedStoreTest, RefusesAMemberOfWhomItCouldNotTell) {
  Start({.is_new = true, .max_topology_bytes = 1'000});
  const auto join = [&](const std::string& authority, size_t kind_bytes) {
    return Await(client_->Join({.authority = authority, .kinds = {std::string(kind_bytes, 'k')}}, Now()));
  };
  for (const char* const authority : {"a:1", "b:1", "c:1"}) ASSERT_TRUE(join(authority, 250).ok()) << authority;
  const absl::Status refused = join("d:1", 250).status();
  EXPECT_EQ(ErrorKindOf<MembershipError>(refused), MembershipError::kFull) << refused;
  EXPECT_NE(std::string(refused.message()).find("\"d:1\" cannot join: the list of 4 members would have 1"),
            std::string::npos)
      << refused;
  EXPECT_TRUE(join("d:1", 10).ok());
  const absl::StatusOr<MembershipTerm> again = join("c:1", 250);
  ASSERT_TRUE(again.ok()) << "who comes again takes its own place: " << again.status();
  ASSERT_TRUE(Await(client_->Leave(again->member.id())).ok());
  EXPECT_TRUE(join("e:1", 250).ok());
}

// CLU-13: what is answered is on the disk.
TEST_F(EmbeddedStoreTest, AnswersWhenItIsWritten) {
  const auto backend = std::make_shared<WatchedBackend>();
  Start({.backend = backend});
  Future<MembershipTerm> joining = client_->Join({.authority = "a:1", .kinds = {"account"}}, Now());
  Future<PlacementLease> acquiring = client_->TryAcquire(kAlice, "a:1#1", Now());
  bool was_early = false;
  backend->on_write = [&] { was_early |= joining.IsReady() || acquiring.IsReady(); };
  kit_->RunUntil([&] { return joining.IsReady() && acquiring.IsReady(); }, absl::Seconds(5));
  backend->on_write = nullptr;
  EXPECT_TRUE(joining.Take().ok());
  EXPECT_TRUE(acquiring.Take().ok());
  EXPECT_GE(backend->writes, 1);
  EXPECT_FALSE(was_early);
}

// A disk that is away is looked for less and less often, and the log says why once.
TEST_F(EmbeddedStoreTest, ReadsAnUnreadableStoreAgainWithGrowingPauses) {
  const auto backend = std::make_shared<WatchedBackend>();
  backend->unreadable = absl::DataLossError("the disk is away");
  Start({.backend = backend});
  kit_->Advance(absl::Seconds(60));
  EXPECT_GE(backend->loads, 8);
  EXPECT_LE(backend->loads, 12);
  const absl::Status asked = Await(client_->TryAcquire(kAlice, "a:1#1", Now())).status();
  EXPECT_NE(std::string(asked.message()).find("cannot be read: the disk is away"), std::string::npos) << asked;
  backend->unreadable = absl::DataLossError("the disk is broken");
  kit_->Advance(absl::Seconds(11));
  EXPECT_EQ(kit_->log().Find(0, {.level = LogLevel::kError, .contains = "cannot be read: the disk is away"}).size(),
            1u);
  EXPECT_EQ(kit_->log().Find(0, {.level = LogLevel::kError, .contains = "cannot be read: the disk is broken"}).size(),
            1u);
  backend->unreadable = absl::OkStatus();
  kit_->Advance(absl::Seconds(11));
  EXPECT_TRUE(Await(client_->TryAcquire(kAlice, "a:1#1", Now())).ok());
  const int loads = backend->loads;
  kit_->Advance(absl::Seconds(60));
  EXPECT_EQ(backend->loads, loads);
}

// CLU-13: what a backend could not read is refused before it is written: it would keep the store from being read.
TEST_F(EmbeddedStoreTest, StoresNothingThatCouldNotBeReadAgain) {
  const auto backend = std::make_shared<WatchedBackend>();
  Start({.backend = backend});
  for (const GrainKey& key :
       {GrainKey("a/b", "alice"), GrainKey("account", ""), GrainKey("account", std::string(1025, 'x'))}) {
    const absl::Status acquired = Await(client_->TryAcquire(key, "a:1#1", Now())).status();
    EXPECT_EQ(ErrorKindOf<LookupError>(acquired), LookupError::kInvalidKey) << acquired;
    const absl::Status stored = Await(client_->Store(key, EntryOf("a:1#1", 1), 0));
    EXPECT_EQ(ErrorKindOf<LookupError>(stored), LookupError::kInvalidKey) << stored;
  }
  const PlacementLease lease = Await(client_->TryAcquire(kAlice, "a:1#1", Now())).value();
  ActivationEntry large = EntryOf("a:1#1", lease.token);
  large.record.snapshot.resize(size_t{1} << 20);
  const absl::Status refused = Await(client_->Store(kAlice, large, 0));
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(Await(client_->Store(kAlice, EntryOf("a:1#1", lease.token), 0)).ok()) << "the lock is still held";
}

// CLU-6: tokens and ids of members never come back, also those that nothing is left of but the limit.
TEST_F(EmbeddedStoreTest, GoesOnWithHigherNumbersWhenItIsStartedAgain) {
  const auto backend = std::make_shared<WatchedBackend>();
  uint64_t last_token = 0;
  uint64_t last_incarnation = 0;
  for (int life = 0; life < 4; ++life) {
    Start({.backend = backend});
    const MembershipTerm term = Await(client_->Join({.authority = "a:1"}, Now())).value();
    EXPECT_GT(term.member.incarnation, last_incarnation);
    last_incarnation = term.member.incarnation;
    for (int i = 0; i < 3; ++i) {
      const PlacementLease lease = Await(client_->TryAcquire(kAlice, term.member.id(), Now())).value();
      EXPECT_GT(lease.token, last_token);
      last_token = lease.token;
      EXPECT_TRUE(Await(client_->Release(lease)).ok());
    }
  }
}

}  // namespace
}  // namespace fraktor
