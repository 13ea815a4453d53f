// The examples of the public headers of cluster/, so that they compile, and most of them run. header_examples.py holds the
// two together: each paragraph of an example stands here, line by line.
#include <algorithm>
#include <cstdint>
#include <map>
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
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/event/event_stream.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/embedded/embedded_client.h"
#include "fraktor/cluster/embedded/embedded_messages.h"
#include "fraktor/cluster/embedded/embedded_store.h"
#include "fraktor/cluster/embedded/rocksdb/rocksdb_backend.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_call.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/identity/check_authority.h"
#include "fraktor/cluster/identity/check_positive.h"
#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/identity_lookup.h"
#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/pid_cache.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/identity/stable_hash.h"
#include "fraktor/cluster/identity/topology_changed.h"
#include "fraktor/cluster/identity/virtual_actor_registry.h"
#include "fraktor/cluster/membership/member_table.h"
#include "fraktor/cluster/membership/membership_provider.h"
#include "fraktor/cluster/membership/membership_session.h"
#include "fraktor/cluster/membership/static_membership.h"
#include "fraktor/cluster/membership/topology_board.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/memory/placement_table.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/activation_storage.h"
#include "fraktor/cluster/placement/partition_identity_lookup.h"
#include "fraktor/cluster/placement/placement_command.h"
#include "fraktor/cluster/placement/placement_coordinator_core.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/cluster/placement/placement_duties.h"
#include "fraktor/cluster/placement/placement_error.h"
#include "fraktor/cluster/placement/placement_event.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/cluster/pubsub/pubsub.h"
#include "fraktor/cluster/pubsub/topic_grain.h"
#include "fraktor/cluster/singleton/singleton.h"
#include "fraktor/cluster/testing/grpc_test_cluster.h"
#include "fraktor/cluster/testing/loopback_test_cluster.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/cluster/testing/test_cluster.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/sim_toolbox.h"

// The examples stand as they do in the headers.
// clang-format off
// What an example does not use, its reader does.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"

namespace fraktor {
namespace {

// What the examples are about.
struct Balance { std::string id; int64_t cents; };
struct Deposit { int64_t cents; };
struct GetBalance { using Reply = Balance; };
struct News { std::string text; };
struct Job { int number; };
struct Pause { int seconds; };
struct Count { int64_t value; };
struct Add { using Reply = Count; int64_t n; };

}  // namespace

template <>
struct Codec<Balance> : FieldCodec<Balance, &Balance::id, &Balance::cents> {
  static constexpr std::string_view kManifest = "examples.balance";
};
template <>
struct Codec<Deposit> : FieldCodec<Deposit, &Deposit::cents> {
  static constexpr std::string_view kManifest = "examples.deposit";
};
template <>
struct Codec<GetBalance> : FieldCodec<GetBalance> {
  static constexpr std::string_view kManifest = "examples.get_balance";
};
template <>
struct Codec<News> : FieldCodec<News, &News::text> {
  static constexpr std::string_view kManifest = "examples.news";
};
template <>
struct Codec<Job> : FieldCodec<Job, &Job::number> {
  static constexpr std::string_view kManifest = "examples.job";
};
template <>
struct Codec<Pause> : FieldCodec<Pause, &Pause::seconds> {
  static constexpr std::string_view kManifest = "examples.pause";
};
template <>
struct Codec<Count> : FieldCodec<Count, &Count::value> {
  static constexpr std::string_view kManifest = "examples.count";
};
template <>
struct Codec<Add> : FieldCodec<Add, &Add::n> {
  static constexpr std::string_view kManifest = "examples.add";
};

namespace {

// Whatever it is asked for, it has been done.
class Activations final : public ActivationExecutor {
 public:
  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) override {
    return MakeReadyFuture<ActivationRecord>(ActivationRecord{.pid = absl::StrCat(key.ToString(), "#", token)});
  }
  Future<void> StopActivation(GrainKey key, uint64_t token) override { return MakeReadyFuture(); }
};

class Duties final : public MemberDuties {
 public:
  void Begin(const MembershipTerm& term) override {}
  void Renew(Instant valid_until) override {}
  Future<void> HandOver() override { return MakeReadyFuture(); }
  Future<void> End() override { return MakeReadyFuture(); }
};

// What parts of a node have around them.
class ClusterHeaderExamples : public testing::Test {
 protected:
  const std::unique_ptr<SimToolbox> box = SimToolbox::Make({.seed = 1}).value();
  SimToolbox& toolbox = *box;
  const std::unique_ptr<SerialExecutor> strand = SerialExecutor::Make(toolbox, {}).value();
  Executor& executor = *strand;
  const Instant now = toolbox.Now();
  const Member self{.authority = "10.0.0.7:2552", .incarnation = 12, .kinds = {"account"}};
  const ClusterTopologyPtr topology = ClusterTopology::Make(12, {self}).value();
  const GrainKey key{"account", "alice"};
  EventStream stream;
  const std::shared_ptr<ActivationExecutor> actors = std::make_shared<Activations>();
};

// identity

struct OptionsOfBoth {
  absl::Duration max_wait = absl::Seconds(1);
  size_t max_stops = 1;
};
absl::Status CheckPositiveExample(const OptionsOfBoth& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckPositive({{"ClusterOptions::max_wait", options.max_wait}}));
  FRAKTOR_RETURN_IF_ERROR(CheckCounts({{"PlacementOptions::max_stops", options.max_stops}}));
  return absl::OkStatus();
}
absl::Status CheckAuthorityExample(const ClusterOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(CheckAuthority("ClusterOptions::authority", options.authority));
  return absl::OkStatus();
}
TEST_F(ClusterHeaderExamples, CheckAuthority) {
  EXPECT_TRUE(CheckAuthorityExample({.authority = "10.0.0.7:2552"}).ok());
  EXPECT_FALSE(CheckAuthorityExample({.authority = "10.0.0.7:0"}).ok());
}
TEST_F(ClusterHeaderExamples, CheckPositive) {
  EXPECT_TRUE(CheckPositiveExample({}).ok());
  EXPECT_FALSE(CheckPositiveExample({.max_wait = absl::ZeroDuration()}).ok());
  EXPECT_FALSE(CheckPositiveExample({.max_stops = 0}).ok());
}

TEST_F(ClusterHeaderExamples, ClusterTopology) {
  const uint64_t epoch = 3;
  const Member a{.authority = "a:1", .incarnation = 1, .kinds = {"account"}};
  const Member b{.authority = "b:1", .incarnation = 2, .kinds = {"account"}};
  const Member c{.authority = "c:1", .incarnation = 3, .kinds = {"account"}};
  const ActivationEntry entry{.owner = "c:1#2"};
  ClusterTopologyPtr topology = ClusterTopology::Make(epoch, {a, b, c}).value();
  const Member* owner = RendezvousHasher::OwnerOf(*topology, key);
  bool has_left = topology->FindId(entry.owner) == nullptr;      // that life of a node has ended
  EXPECT_NE(owner, nullptr);
  EXPECT_TRUE(has_left);
}

absl::StatusOr<std::string> OwnerOfAlice(const ClusterTopology& topology) {
  GrainKey alice("account", "alice");
  FRAKTOR_RETURN_IF_ERROR(alice.Check());          // where it comes from outside
  const Member* owner = RendezvousHasher::OwnerOf(topology, alice);
  return owner->id();
}
TEST_F(ClusterHeaderExamples, GrainKey) { EXPECT_EQ(OwnerOfAlice(*topology).value(), "10.0.0.7:2552#12"); }

TEST_F(ClusterHeaderExamples, RendezvousHasher) {
  const Member* owner = RendezvousHasher::OwnerOf(*topology, key);       // null: nobody hosts the kind
  EXPECT_EQ(owner->id(), self.id());
}

std::vector<std::string> done;
void Send(const PlacementResolution& where, std::string_view message) { done.push_back("sent"); }
void TryAgainLater() { done.push_back("later"); }
void LookupExample(IdentityLookup& lookup, const GrainKey& key, SimToolbox& toolbox) {
  const std::string_view message = "hello";
  absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, toolbox.Now());
  if (where.ok()) Send(**where, message);
  else if (IsRetryableLookup(where.status())) TryAgainLater();
}
void TryAgainSoon() { done.push_back("soon"); }
void LookupErrorExample(IdentityLookup& lookup, const GrainKey& key, Instant now) {
  absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, now);
  if (ErrorKindOf<LookupError>(where.status()) == LookupError::kPending) TryAgainSoon();
}
void Deliver(std::string_view pid) { done.push_back("delivered"); }
void Forward(std::string_view authority, const GrainKey& key) { done.push_back("forwarded"); }
void ResolutionExample(IdentityLookup& lookup, const GrainKey& key, Instant now) {
  PlacementResolutionPtr where = *lookup.Resolve(key, now);
  if (where->locality == PlacementLocality::kLocal) Deliver(where->pid);
  else Forward(where->decision.authority, key);
}
absl::Status PartitionIdentityLookupExample(std::shared_ptr<PlacementCoordinatorDriver> driver, const Member& self,
                                            ClusterTopologyPtr topology, const GrainKey& key, SimToolbox& toolbox) {
  PartitionIdentityLookup lookup(driver);
  FRAKTOR_RETURN_IF_ERROR(lookup.SetupMember(self));
  lookup.UpdateTopology(topology);
  absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, toolbox.Now());
  return where.status();
}
absl::Status DriverExample(ClusterTopologyPtr topology, const Member& self, const GrainKey& key, SimToolbox& toolbox,
                           Executor& executor, std::shared_ptr<PlacementLock> lock,
                           std::shared_ptr<ActivationStorage> storage, std::shared_ptr<ActivationExecutor> actors,
                           EventStream& stream) {
  auto driver = PlacementCoordinatorDriver::Make({toolbox, executor, lock, storage, actors, &stream}, {}).value();
  FRAKTOR_RETURN_IF_ERROR(driver->StartMember(self));
  driver->UpdateTopology(topology);
  Future<PlacementResolutionPtr> resolving = driver->Resolve(key);
  return resolving.Take().status();
}
int alarms = 0;
void Alarm(std::string_view reason) { ++alarms; }

TEST_F(ClusterHeaderExamples, Lookups) {
  auto store = std::make_shared<MemoryPlacementStore>(toolbox);
  auto driver = PlacementCoordinatorDriver::Make({toolbox, executor, store, store, actors}, {}).value();
  EXPECT_TRUE(PartitionIdentityLookupExample(driver, self, topology, key, toolbox).ok());
  PartitionIdentityLookup lookup(driver);
  LookupExample(lookup, key, toolbox);
  LookupErrorExample(lookup, key, now);
  ResolutionExample(lookup, key, now);
  EXPECT_EQ(done, (std::vector<std::string>{"sent", "delivered"}));
  EXPECT_TRUE(DriverExample(topology, self, GrainKey("account", "bob"), toolbox, executor, store, store, actors, stream)
                  .ok());
}

TEST_F(ClusterHeaderExamples, PlacementEvent) {
  EventSubscription lost = stream.Listen<PlacementEvent>([](const PlacementEvent& event) {
    if (event.kind == PlacementEvent::Kind::kStorageFailed) Alarm(event.reason);
  });
  stream.Publish(PlacementEvent{.kind = PlacementEvent::Kind::kStorageFailed});
  EXPECT_EQ(alarms, 1);
}

TEST_F(ClusterHeaderExamples, Member) {
  Member self{.authority = "10.0.0.7:2552", .incarnation = 12, .kinds = {"account"}};
  self.id();                                             // "10.0.0.7:2552#12"
  EXPECT_EQ(self.id(), "10.0.0.7:2552#12");
}

TEST_F(ClusterHeaderExamples, PidCache) {
  const auto resolution = std::make_shared<const PlacementResolution>(
      PlacementResolution{.decision = {.key = key}, .locality = PlacementLocality::kRemote, .pid = "p"});
  int gone = 0;
  const EventSubscription listening = stream.Listen<PidCacheEvent>([&](const PidCacheEvent&) { ++gone; });
  PidCache cache({.capacity = 1024, .ttl = absl::Seconds(300)});
  cache.Put(resolution, now);
  PlacementResolutionPtr where = cache.Find(key, now);          // null: ask
  cache.Remove(key, PidCacheEvent::Reason::kRemoved, now);      // a message to it was not delivered
  for (const PidCacheEvent& event : cache.DrainEvents()) stream.Publish(event);
  EXPECT_EQ(where, resolution);
  EXPECT_EQ(gone, 1);
}

void StopIt(const GrainKey& key) {}
TEST_F(ClusterHeaderExamples, VirtualActorRegistry) {
  const auto resolution = std::make_shared<const PlacementResolution>(
      PlacementResolution{.decision = {.key = key}, .locality = PlacementLocality::kLocal, .pid = "p"});
  VirtualActorRegistry registry;
  registry.Add(resolution, {.replaces_another = false}, now);
  PlacementResolutionPtr here = registry.Find(key, now);          // null: not here. Counts as a use
  for (const GrainKey& key : registry.TakeIdle(now, 64)) StopIt(key);
  registry.Remove(key, VirtualActorEvent::Kind::kPassivated, now);
  EXPECT_EQ(here, resolution);
  EXPECT_EQ(registry.size(), 0u);
}

void Forget(const std::string& authority) {}
TEST_F(ClusterHeaderExamples, TopologyChanged) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, {});
    cluster.AddNodes(1);
    ActorSystem& system = cluster.system(0);
    EventSubscription listening = system.events().Listen<TopologyChanged>([](const TopologyChanged& change) {
      for (const Member& member : change.left) Forget(member.authority);
    });
    ClusterTopologyPtr members = Cluster::Of(system)->topology();  // as it is now: look after having begun to listen
    EXPECT_NE(members, nullptr);
  });
}

TEST_F(ClusterHeaderExamples, StableHash) {
  uint64_t hash = StableHash64("10.0.0.7:2552");
  EXPECT_EQ(hash, StableHash64("10.0.0.7:2552"));
}

// membership

ClusterTopologyPtr told;
void Tell(ClusterTopologyPtr topology) { told = std::move(topology); }
TEST_F(ClusterHeaderExamples, MemberTable) {
  MemberTable table({.term = absl::Seconds(10)});
  absl::StatusOr<Member> member = table.Join({.authority = "a:1", .kinds = {"account"}}, now);
  if (table.Expire(now)) Tell(table.topology());
  EXPECT_TRUE(member.ok());
  EXPECT_EQ(told, nullptr);
}

void Heed(ClusterTopologyPtr topology) { told = std::move(topology); }
TEST_F(ClusterHeaderExamples, Membership) {
  auto membership = std::make_shared<MemoryMembership>(toolbox, MemberTableOptions{.term = absl::Seconds(10)});
  MembershipProvider& provider = *membership;
  Future<MembershipTerm> joining = provider.Join({.authority = "10.0.0.7:2552", .kinds = {"account"}}, now);
  MembershipListenerId listening = provider.Listen([](ClusterTopologyPtr topology) { Heed(std::move(topology)); });
  ASSERT_TRUE(joining.IsReady());
  EXPECT_EQ(told->members().size(), 1u);
}

TEST_F(ClusterHeaderExamples, StaticMembership) {
  auto membership = StaticMembership::Make({{.authority = "10.0.0.7:2552", .kinds = {"account"}},
                                            {.authority = "10.0.0.8:2552", .kinds = {"account"}}}).value();
  EXPECT_NE(membership, nullptr);
}

TEST_F(ClusterHeaderExamples, TopologyBoard) {
  TopologyBoard board;
  board.Add([](ClusterTopologyPtr posted) { Heed(std::move(posted)); }, ClusterTopology::Empty());
  board.Post(topology);                          // under the provider's own lock
  board.Deliver();                               // without it
  EXPECT_EQ(told, topology);
}

absl::Status SessionExample(SimToolbox& toolbox, Executor& executor, std::shared_ptr<MembershipProvider> provider,
                            std::shared_ptr<MemberDuties> duties) {
  auto session = MembershipSession::Make({toolbox, executor, provider, duties},
                                         {.authority = "10.0.0.7:2552", .kinds = {"account"}}, {}).value();
  FRAKTOR_RETURN_IF_ERROR(session->Join());
  Future<void> left = session->Leave();        // some day; hands over first
  EXPECT_TRUE(toolbox.RunUntil([&] { return left.IsReady(); }, absl::Seconds(60)).ok());
  return left.Take();
}
TEST_F(ClusterHeaderExamples, MembershipSession) {
  const auto provider = std::make_shared<MemoryMembership>(toolbox, MemberTableOptions{.term = absl::Seconds(10)});
  EXPECT_EQ(SessionExample(toolbox, executor, provider, std::make_shared<Duties>()), absl::OkStatus());
}

TEST_F(ClusterHeaderExamples, PlacementDuties) {
  const auto store = std::make_shared<MemoryPlacementStore>(toolbox);
  const auto driver = PlacementCoordinatorDriver::Make({toolbox, executor, store, store, actors}, {}).value();
  const auto provider = std::make_shared<MemoryMembership>(toolbox, MemberTableOptions{.term = absl::Seconds(10)});
  const MemberCandidate candidate{.authority = "a:1", .kinds = {"account"}};
  auto duties = std::make_shared<PlacementDuties>(driver);
  auto session = MembershipSession::Make({toolbox, executor, provider, duties}, candidate, {}).value();
  provider->Listen([driver](ClusterTopologyPtr topology) { driver->UpdateTopology(std::move(topology)); });
  ASSERT_TRUE(session->Join().ok());
  Future<void> joined = session->Joined();
  ASSERT_TRUE(toolbox.RunUntil([&] { return joined.IsReady(); }, absl::Seconds(60)).ok());
  Future<PlacementResolutionPtr> resolving = driver->Resolve(key);
  EXPECT_TRUE(toolbox.RunUntil([&] { return resolving.IsReady(); }, absl::Seconds(60)).ok());
  EXPECT_TRUE(resolving.Take().ok());
}

// placement

TEST_F(ClusterHeaderExamples, PlacementTable) {
  const std::string pid = "p";
  PlacementTable table({.lease_ttl = absl::Seconds(10)});
  absl::StatusOr<PlacementLease> lease = table.TryAcquire(key, "a:1#7", now);
  LoadedActivation loaded = table.Load(key);
  ActivationEntry entry{.owner = "a:1#7", .record = {.pid = pid}, .token = lease->token};
  absl::Status stored = table.Store(key, entry, loaded.entry.token, now);
  EXPECT_TRUE(stored.ok()) << stored;
}

void TryAgainLater(const absl::Status& status) {
  if (ErrorKindOf<PlacementLockError>(status) == PlacementLockError::kHeld) TryAgainLater();
}
TEST_F(ClusterHeaderExamples, LockAndStorage) {
  const auto store = std::make_shared<MemoryPlacementStore>(toolbox);
  PlacementLock& lock = *store;
  ActivationStorage& storage = *store;
  ActivationExecutor& activations = *actors;
  Future<PlacementLease> acquiring = lock.TryAcquire(key, self.id(), toolbox.Now());
  const PlacementLease lease = acquiring.Take().value();
  bool may_be_over = toolbox.Now() >= lease.expires_at;
  EXPECT_FALSE(may_be_over);
  Future<ActivationRecord> starting = activations.EnsureActivation(key, self.id(), lease.token);
  Future<void> stopping = activations.StopActivation(key, lease.token);
  const std::string pid = starting.Take().value().pid;
  const ClusterTopology& topology = *this->topology;
  ActivationEntry entry{.owner = self.id(), .record = {.pid = pid}, .token = lease.token, .epoch = topology.epoch()};
  const LoadedActivation loaded = storage.Load(key).Take().value();
  {
    Future<LoadedActivation> loading = storage.Load(key);
    Future<void> storing = storage.Store(key, entry, /*expected_token=*/loaded.exists ? loaded.entry.token : 0);
    EXPECT_TRUE(storing.Take().ok());
  }
  done.clear();
  TryAgainLater(lock.TryAcquire(key, "b:1#1", toolbox.Now()).Take().status());
  EXPECT_EQ(done, std::vector<std::string>{"later"});
}

PlacementCommandResult Answer(const PlacementCommand& command) {
  PlacementCommandResult result;
  if (const auto* load = std::get_if<LoadActivation>(&command)) {
    result = ActivationLoaded{.request_id = load->request_id, .result = LoadedActivation()};      // there is none
  }
  return result;
}
TEST_F(ClusterHeaderExamples, Core) {
  const PlacementLease lease{.key = key, .owner = self.id(), .expires_at = now + absl::Seconds(10), .token = 1};
  PlacementCoordinatorCore core;
  core.StartMember(self, now).value();
  core.UpdateTopology(topology, now);
  PlacementCoordinatorOutcome outcome = core.Resolve(key, now).value();
  // outcome.resolution, if it is known; otherwise outcome.commands, which somebody executes:
  PlacementRequestId request_id = RequestIdOf(outcome.commands[0]);
  outcome = core.HandleCommandResult(LockAcquired{.request_id = request_id, .result = lease}, now).value();
  ASSERT_EQ(outcome.commands.size(), 1u);
  outcome = core.HandleCommandResult(Answer(outcome.commands[0]), now).value();
  ASSERT_EQ(outcome.commands.size(), 1u);
  EXPECT_EQ(CommandName(outcome.commands[0]), "EnsureActivation");
}

// grain

namespace accounts {

class Account : public Actor<Account, Deposit, GetBalance> {
 public:
  static constexpr std::string_view kGrainKind = "account";         // stable: it is stored and sent
  explicit Account(const GrainContext& grain) : id_(grain.key.identity()) {}
  void On(Context& context, const Deposit& deposit) { cents_ += deposit.cents; }
  Balance On(Context& context, const GetBalance& question) { return {id_, cents_}; }

 private:
  const std::string id_;
  int64_t cents_ = 0;
};

ClusterOptions options{.kinds = {GrainKindOf<Account>()}};

struct Rates { double per_year; };
class Savings : public Actor<Savings, Deposit> {
 public:
  Savings(const GrainContext& grain, Rates rates) : rates_(rates) {}
  void On(Context& context, const Deposit& deposit) {}

 private:
  const Rates rates_;
};
GrainKind KindOfSavings(Rates rates) {
  GrainKind savings{.name = "savings", .make = [rates](const GrainContext& grain) {
    return MakeTypedProps<Savings>(PropsOptions(), GrainSeed(grain), rates);      // Savings(const GrainContext&, Rates)
  }};
  return savings;
}
TEST_F(ClusterHeaderExamples, GrainKind) {
  EXPECT_EQ(options.kinds[0].name, "account");
  EXPECT_EQ(KindOfSavings({0.02}).name, "savings");
}

void ClusterExample(ActorSystem& system) {
  auto store = EmbeddedClient::Make(system, {.authority = "10.0.0.1:2552"}).value();       // cluster/embedded
  Cluster& cluster = *Cluster::Start(system, {.kinds = {GrainKindOf<Account>()},
                                              .membership = store, .lock = store, .storage = store}).value();
  cluster.Grain<Account>("alice").Tell(Deposit{10});
  Future<void> left = cluster.Leave();                                     // before the system ends
}
void EmbeddedClientExample(ActorSystem& system) {
  auto store = EmbeddedClient::Make(system, {.authority = "10.0.0.1:2552"}).value();
  Cluster& cluster = *Cluster::Start(system, {.kinds = {GrainKindOf<Account>()},
                                              .membership = store, .lock = store, .storage = store}).value();
}
void PeersExample(ActorSystem& system) {
  std::shared_ptr<GrainPeers> remote = std::make_shared<RemoteGrainPeers>(system);   // what a cluster has by default
  std::shared_ptr<GrainPeers> local = std::make_shared<LocalGrainPeers>();           // all are systems of this process
}

struct Visit { using Reply = Balance; };
class Customer : public Actor<Customer, Visit> {
 public:
  explicit Customer(Cluster* cluster) : cluster_(*cluster) {}
  Task<Balance> On(Context& context, Visit visit) {
    Cluster& cluster = cluster_;
    GrainRef<Account> alice = cluster.Grain<Account>("alice");
    alice.Tell(Deposit{10});
    auto asking = alice.Ask(context, GetBalance{}, absl::Seconds(1));        // in an actor
    absl::StatusOr<Balance> balance = co_await asking;
    co_return balance;
  }

 private:
  Cluster& cluster_;
};

CodecSetup GrainCodecs(ActorSystemOptions& options) {
  CodecSetup codecs;
  codecs.Add<Deposit, GetBalance, Balance>().Add(ClusterCodecs());        // on every node
  options.codecs = codecs.Build().value();
  return codecs;
}
CodecSetup NodeCodecs() {
  CodecSetup codecs;
  codecs.Add<Deposit, GetBalance, Balance>().Add(ClusterCodecs()).Add(EmbeddedCodecs());
  return codecs;
}
CodecSetup AccountCodecs() {
  CodecSetup codecs;
  codecs.Add<Deposit, GetBalance, Balance>();
  return codecs;
}

TEST_F(ClusterHeaderExamples, Grains) {
  ActorSystemOptions options;
  EXPECT_TRUE(GrainCodecs(options).Build().ok());
  EXPECT_TRUE(NodeCodecs().Build().ok());
  Simulate({.seeds = 1}, [](Simulation& sim) {
    SimTestCluster cluster(sim, {.kinds = {GrainKindOf<Account>()}, .codecs = AccountCodecs()});
    cluster.AddNodes(2);
    PeersExample(cluster.system(0));
    const auto customer = cluster.system(0).Spawn<Customer>("customer", &cluster[0]);
    const absl::StatusOr<Balance> balance =
        cluster.Await(cluster.system(0).Ask(customer, Visit{}, absl::Seconds(20)));
    ASSERT_TRUE(balance.ok()) << balance.status();
    EXPECT_EQ(balance->id, "alice");
    EXPECT_EQ(balance->cents, 10);
  });
}

}  // namespace accounts

namespace filters {

struct Withdraw { std::string by; };

class OnlyOwners : public GrainCallFilter {
 public:
  absl::Status Before(const GrainCallView& call) override {
    const Withdraw* withdraw = call.As<Withdraw>();
    if (withdraw == nullptr || withdraw->by == call.key.identity()) return absl::OkStatus();
    return absl::PermissionDeniedError("an account is its owner's");        // this is what the asker gets
  }
  void After(const GrainCallView& call, const GrainCallOutcome& outcome) override {
    durations_[call.message_type()] += outcome.duration;
  }

 private:
  std::map<std::string_view, absl::Duration> durations_;
};

TEST_F(ClusterHeaderExamples, GrainFilter) {
  ClusterOptions options{.incoming_filters = {std::make_shared<OnlyOwners>()}};
  const Withdraw withdraw{.by = "bob"};
  const GrainCallView call{.key = key, .type = MessageTypeOf<Withdraw>(), .message = &withdraw};
  EXPECT_TRUE(absl::IsPermissionDenied(options.incoming_filters[0]->Before(call)));
  options.incoming_filters[0]->After(call, {});
}

}  // namespace filters

// singleton and pubsub

namespace singletons {

int jobs_done = 0;
void Do(const Job& job, uint64_t token) { ++jobs_done; }

class Dispatcher : public Actor<Dispatcher, Job> {
 public:
  static constexpr std::string_view kGrainKind = "dispatcher";
  explicit Dispatcher(const GrainContext& grain) : token_(grain.token) {}
  void On(Context& context, const Job& job) { Do(job, token_); }

 private:
  const uint64_t token_;
};

TEST_F(ClusterHeaderExamples, Singleton) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    CodecSetup codecs;
    codecs.Add<Job>();
    SimTestCluster cluster(sim, {.kinds = {SingletonKindOf<Dispatcher>()}, .codecs = codecs});
    cluster.AddNodes(2);
    ActorSystem& system = cluster.system(1);
    jobs_done = 0;
    ClusterOptions options{.kinds = {SingletonKindOf<Dispatcher>()}};              // where it may run
    RefOf<Dispatcher> dispatcher = StartSingleton<Dispatcher>(system).value();     // on each node that uses it
    dispatcher.Tell(Job{7});
    sim.Advance(absl::Seconds(5));
    EXPECT_EQ(jobs_done, 1);
  });
}

}  // namespace singletons

namespace topics {

struct Begin {};
int heard = 0;
int printed = 0;

class Printer : public Actor<Printer, News, Job, Pause, Begin> {
 public:
  void On(Context& context, const News& news) { ++heard; }
  void On(Context& context, const Job& job) { ++printed; }
  void On(Context& context, const Pause& pause) { ++printed; }
  Task<void> On(Context& context, Begin begin) {
    ActorSystem& system = context.system();
    ClusterOptions options{.kinds = {TopicKind()}};                         // on nodes that may run topics
    PubSub& pubsub = *PubSub::Start(system).value();                        // on each node
    Topic<News> news = pubsub.Topic<News>("news");
    auto subscribing = news.Subscribe(context, context.self(), absl::Seconds(5));
    absl::StatusOr<Subscribed> subscribed = co_await subscribing;           // from now on it gets all News
    absl::Status sent = news.Publish(News{"rain"});                         // on any node; an error: it has no codec
    EXPECT_TRUE(subscribed.ok()) << subscribed.status();
    EXPECT_TRUE(sent.ok()) << sent;
    auto working = Work(context, pubsub);
    co_await working;
    auto printing = Print(context, pubsub);
    co_await printing;
  }

 private:
  Task<void> Work(Context& context, PubSub& pubsub) {
    Topic<Job> jobs = pubsub.Topic<Job>("jobs");
    auto joining = jobs.SubscribeInGroup(context, "printers", context.self(), absl::Seconds(5));
    absl::Status sent = jobs.PublishToGroups(Job{7});                       // to one of the printers
    EXPECT_TRUE(sent.ok()) << sent;
    co_await joining;
  }
  Task<void> Print(Context& context, PubSub& pubsub) {
    auto putting = pubsub.Put(context, context.self().untyped(), absl::Seconds(5));   // it is "/user/printer"
    absl::Status sent = pubsub.Send("/user/printer", Job{7});               // to one, of this node if there is one
    sent = pubsub.SendToAll("/user/printer", Pause{});
    EXPECT_TRUE(sent.ok()) << sent;
    co_await putting;
  }
};

TEST_F(ClusterHeaderExamples, PubSub) {
  Simulate({.seeds = 1}, [](Simulation& sim) {
    CodecSetup codecs;
    codecs.Add<News, Job, Pause>().Add(PubSubCodecs());
    ClusterOptions options{.kinds = {TopicKind()}};
    SimTestCluster cluster(sim, {.kinds = options.kinds, .codecs = codecs});
    cluster.AddNodes(1);
    heard = printed = 0;
    cluster.system(0).Spawn<Printer>("printer").Tell(Begin{});
    sim.Advance(absl::Seconds(20));
    EXPECT_EQ(heard, 1);
    EXPECT_GT(printed, 0);
  });
}

}  // namespace topics

// embedded

absl::Status BackendExample(EmbeddedBackend& backend, const std::vector<Member>& members) {
  FRAKTOR_ASSIGN_OR_RETURN(EmbeddedState state, backend.Load());
  FRAKTOR_RETURN_IF_ERROR(backend.Write({.epoch = 8, .members = members}));       // is on the disk now
  return absl::OkStatus();
}
TEST_F(ClusterHeaderExamples, EmbeddedBackend) {
  TestBackend backend;
  EXPECT_TRUE(BackendExample(backend, {self}).ok());
  EXPECT_EQ(backend.state().epoch, 8u);
}

absl::Status StoreExample(ActorSystem& system) {
  FRAKTOR_ASSIGN_OR_RETURN(auto backend, RocksDbBackend::Open({.path = "/var/lib/shop/cluster"}));
  FRAKTOR_RETURN_IF_ERROR(EmbeddedStore::Start(system, {.backend = std::move(backend)}));
  return absl::OkStatus();
}
absl::Status RocksDbBackendExample(ActorSystem& system) {
  FRAKTOR_ASSIGN_OR_RETURN(auto backend, RocksDbBackend::Open({.path = "/var/lib/shop/cluster"}));
  FRAKTOR_RETURN_IF_ERROR(EmbeddedStore::Start(system, {.backend = backend}));
  return absl::OkStatus();
}

// testing

class Counter : public Actor<Counter, Add> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const GrainContext& grain) {}
  Count On(Context& context, const Add& add) { return {sum_ += add.n}; }

 private:
  int64_t sum_ = 0;
};

void MovesWhenItsNodeLeaves(TestCluster& cluster) {
  cluster.AddNodes(3);
  GrainRef<Counter> alice = cluster[0].Grain<Counter>("alice");
  absl::StatusOr<Count> count = cluster.Await(alice.Ask(cluster.system(0), Add{1}, absl::Seconds(5)));
  cluster.Crash(1);                                     // it is away, without a word
  cluster.Restart(1);                                   // another life of it, at the same address
  cluster.CrashStore();
}

TEST_F(ClusterHeaderExamples, TestClusters) {
  CodecSetup codecs;
  codecs.Add<Add, Count>();
  Simulate({.seeds = 20}, [&](Simulation& sim) {
    SimTestCluster cluster(sim, {.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
    cluster.AddNodes(3);
    cluster.Cut(0, 1);                                    // they do not hear each other
    cluster.CutFromStore(2);
    cluster.Heal();
  });
  Simulate({.seeds = 1}, [&](Simulation& sim) {
    SimTestCluster cluster(sim, {.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
    MovesWhenItsNodeLeaves(cluster);
  });
}

void ExamplesWithThreads(const CodecSetup& codecs) {
  {
    LoopbackTestCluster cluster({.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
    cluster.AddNodes(3);
  }
  GrpcTestCluster cluster({.kinds = {GrainKindOf<Counter>()}, .codecs = codecs});
  cluster.AddNodes(3);
}

}  // namespace
}  // namespace fraktor
