// A cluster under faults, with everything that a real one has but the disk: nodes crash and come back, join and leave, are
// cut off from each other and from the store, frames are lost, grains are passivated. The store crashes, or is another
// one from one moment to the next: either ends all leases at once, as a jump of its clock does, whatever their holders
// think. It is slow, so that leases end while what they were taken for is on its way, and loses requests and answers.
// In some runs everything that is sent takes long. A seed decides everything.
//
// After every step: of the activations of a grain, one at most is on a node that is a member, as that node knows it, and
// the token under which a grain is served never goes back; and no record is stored by a token below one that somebody
// has got or stored before. In the end, without faults: every call was answered, with an answer or an error, and every
// grain answers from every node, from one activation.
//
// A quick run is of a few seeds. The long one: FRAKTOR_SIM_SEEDS=200 bazel-bin/cluster/testing/cluster_sim_test
// --gtest_filter='*/0'
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/pattern/timers.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/embedded/embedded_backend.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/cluster/placement/placement_lock.h"
#include "fraktor/cluster/testing/cluster_scenarios.h"
#include "fraktor/cluster/testing/sim_test_cluster.h"
#include "fraktor/cluster/testing/slow_store.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSeeds = 4;
#else
constexpr int kSeeds = 16;
#endif
constexpr int kParts = 4;

constexpr int kNodes = 5;
constexpr int kGrains = 200;
// Most calls are for these: so much happens to them.
constexpr int kWantedGrains = 40;
constexpr int kSteps = 40;

struct Pending {
  std::string identity;
  Future<Count> answer;
};

struct Calls {
  uint64_t asked = 0;
  uint64_t answered = 0;
  // Nodes that others have taken for dead, and put into quarantine.
  uint64_t deaths = 0;
};

// The highest token of each grain that somebody has got, or that is in a record.
using Tokens = std::map<GrainKey, uint64_t>;

// Takes no record of a token below the last one.
class WatchedBackend final : public EmbeddedBackend {
 public:
  explicit WatchedBackend(std::shared_ptr<Tokens> tokens) : tokens_(std::move(tokens)) {}

  absl::StatusOr<EmbeddedState> Load() override { return inner_.Load(); }
  absl::Status Write(const EmbeddedChanges& changes) override {
    for (const auto& [key, entry] : changes.activations) {
      if (!entry.has_value()) continue;
      uint64_t& last = (*tokens_)[key];
      EXPECT_GE(entry->token, last) << key.ToString() << " is stored by an activation of the past";
      last = std::max(last, entry->token);
    }
    return inner_.Write(changes);
  }

 private:
  TestBackend inner_;
  const std::shared_ptr<Tokens> tokens_;
};

// Sees which tokens nodes get.
class WatchedLock final : public PlacementLock {
 public:
  WatchedLock(std::shared_ptr<PlacementLock> inner, std::shared_ptr<Tokens> tokens)
      : inner_(std::move(inner)), tokens_(std::move(tokens)) {}

  Future<PlacementLease> TryAcquire(GrainKey key, std::string owner, Instant now) override {
    return inner_->TryAcquire(key, std::move(owner), now).Map([tokens = tokens_, key](PlacementLease lease) {
      uint64_t& last = (*tokens)[key];
      last = std::max(last, lease.token);
      return lease;
    });
  }
  Future<void> Release(PlacementLease lease) override { return inner_->Release(std::move(lease)); }

 private:
  const std::shared_ptr<PlacementLock> inner_;
  const std::shared_ptr<Tokens> tokens_;
};

struct Look {};

// Watches the routers of all nodes but its own, so that each hears how the others are, and takes those for dead that it does
// not hear.
class Sentry : public Actor<Sentry, Look, Terminated> {
 public:
  Sentry(int nodes, uint64_t* deaths) : nodes_(nodes), deaths_(deaths) {}
  absl::Status PreStart(Context& context) {
    return Timers(context).StartFixedDelay("look", Look{}, {.period = absl::Seconds(1)});
  }
  void On(Context& context, const Look&) {
    for (int i = 0; i < nodes_; ++i) {
      if (watched_.contains(i)) continue;
      const absl::StatusOr<ActorRef> router =
          context.system().Resolve(absl::StrCat("pekko://cluster@n", i, ".test:2552/system/grains"));
      if (router.ok() && router->IsRemote() && context.Watch(*router).ok()) watched_.emplace(i, *router);
    }
  }
  void On(Context&, const Terminated& ended) {
    if (ended.address_terminated) ++*deaths_;
    std::erase_if(watched_, [&ended](const auto& one) { return one.second == ended.actor; });
  }

 private:
  const int nodes_;
  uint64_t* const deaths_;
  std::map<int, ActorRef> watched_;
};

struct FaultOptions {
  bool has_store_trouble = true;
};

void RunUnderFaults(Simulation& sim, Calls& calls, const FaultOptions& faults = {}) {
  Random random = sim.MakeRandom("faults");
  Random store_random = sim.MakeRandom("faults of the store");
  const auto trouble = std::make_shared<StoreTrouble>();
  const auto granted = std::make_shared<Tokens>();
  TestClusterOptions options = CounterCluster();
  options.store.backend = std::make_shared<WatchedBackend>(granted);
  options.store.term = absl::Seconds(6);
  options.store.placement.lease_ttl = absl::Seconds(4);
  options.on_store = [&sim, trouble, granted, lives = uint64_t{0}](ActorSystem& system,
                                                                   const TestStoreClients& store) mutable {
    const auto slow = SlowStore::Make(system.toolbox(), sim.MakeRandom("slow store").Fork(++lives), store, trouble);
    return TestStore{
        .membership = store.of_node, .lock = std::make_shared<WatchedLock>(slow, granted), .storage = slow};
  };
  // One that waits for less than a lease lasts tries again while its first try is on its way.
  if (faults.has_store_trouble && store_random.Bernoulli(0.5)) {
    options.cluster.placement.command_timeout = absl::Seconds(1);
  }
  options.on_system = [&calls](ActorSystem& system) {
    // The node of the store is no member, and nobody would end what it thinks of others.
    if (system.options().config.remoting->canonical_hostname == "store.test") return;
    system.Spawn<Sentry>("sentry", kNodes, &calls.deaths);
  };
  const bool is_slow = random.Bernoulli(0.3);
  SimTestCluster cluster(sim, options, {.max_delay = is_slow ? absl::Milliseconds(150) : absl::Microseconds(500)});
  cluster.AddNodes(kNodes);
  std::set<size_t> dead;
  bool is_store_dead = false;
  std::vector<Pending> pending;
  std::vector<GrainKey> keys;
  for (int g = 0; g < kGrains; ++g) keys.emplace_back("counter", absl::StrCat("g", g));
  std::vector<uint64_t> tokens(keys.size());

  const auto collect = [&] {
    std::vector<Pending> rest;
    for (Pending& one : pending) {
      if (!one.answer.IsReady()) {
        rest.push_back(std::move(one));
        continue;
      }
      const absl::StatusOr<Count> count = one.answer.Take();
      if (!count.ok()) continue;
      ++calls.answered;
    }
    pending = std::move(rest);
  };
  const auto passivate = [&](size_t node) {
    for (int g = 0; g < kWantedGrains; ++g) cluster[node].driver().Passivate(keys[static_cast<size_t>(g)]);
  };
  const auto check = [&] {
    std::vector<int> served(keys.size());
    for (size_t i = 0; i < cluster.size(); ++i) {
      if (dead.contains(i)) continue;
      for (size_t g = 0; g < keys.size(); ++g) {
        const PlacementResolutionPtr here = cluster[i].driver().Local(keys[g]);
        if (here == nullptr) continue;
        EXPECT_EQ(++served[g], 1) << keys[g].ToString() << " is served twice";
        EXPECT_GE(here->token, tokens[g]) << keys[g].ToString() << " is served by an activation of the past";
        tokens[g] = std::max(tokens[g], here->token);
      }
    }
  };

  for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
    const size_t node = random.UniformIn(0, kNodes - 1);
    const size_t other = random.UniformIn(0, kNodes - 1);
    switch (random.UniformIn(0, 13)) {
      case 0:
        if (dead.size() < 2 && dead.insert(node).second) cluster.Crash(node);
        break;
      case 1:
      case 2:
        if (!dead.empty()) {
          const size_t back = *dead.begin();
          dead.erase(back);
          cluster.Restart(back);
        }
        break;
      case 3:
        if (node != other) cluster.Cut(node, other);
        break;
      case 4:
        cluster.CutFromStore(node);
        break;
      case 5:
      case 6:
        cluster.Heal();
        break;
      case 7:
        if (is_store_dead) {
          cluster.RestartStore();
        } else {
          cluster.CrashStore();
        }
        is_store_dead = !is_store_dead;
        break;
      case 8:
        // Leaves, and comes back as another member.
        if (!dead.contains(node) && dead.size() < 2) {
          Future<void> leaving = cluster[node].Leave();
          sim.RunUntil([&] { return leaving.IsReady(); }, absl::Seconds(3));
          cluster.Crash(node);
          dead.insert(node);
        }
        break;
      case 12:
      case 13:
        if (!dead.contains(node)) passivate(node);
        break;
      case 9:
        cluster.network().SetFaults(0.05, 0.05, 0.05);
        break;
      default:
        cluster.network().SetFaults(0, 0, 0);
        break;
    }
    if (faults.has_store_trouble) {
      switch (store_random.UniformIn(0, 9)) {
        case 0:
        case 1:
          *trouble = {.slow = store_random.UniformDouble(), .max_delay = absl::Seconds(8), .lost = 0.1};
          // So that there is something to store.
          for (size_t i = 0; i < cluster.size(); ++i) {
            if (!dead.contains(i)) passivate(i);
          }
          break;
        case 2:
          *trouble = {};
          break;
        case 3:
          if (!is_store_dead) {
            cluster.CrashStore();
            cluster.RestartStore();
          }
          break;
        default:
          break;
      }
    }
    for (int call = 0; call < 8; ++call) {
      const size_t from = random.UniformIn(0, kNodes - 1);
      if (dead.contains(from)) continue;
      const std::string identity =
          absl::StrCat("g", random.UniformIn(0, (random.Bernoulli(0.7) ? kWantedGrains : kGrains) - 1));
      ++calls.asked;
      pending.push_back(
          {.identity = identity,
           .answer = cluster[from].Grain<Counter>(identity).Ask(cluster.system(from), Add{1}, absl::Seconds(5))});
    }
    for (int slice = 0; slice < 5; ++slice) {
      sim.Advance(absl::Milliseconds(random.UniformIn(20, 400)));
      check();
    }
    collect();
  }
  if (testing::Test::HasFailure()) return;

  cluster.network().SetFaults(0, 0, 0);
  *trouble = {};
  cluster.Heal();
  if (is_store_dead) cluster.RestartStore();
  for (const size_t node : dead) cluster.Restart(node);
  dead.clear();
  sim.Advance(absl::Seconds(30));
  collect();
  EXPECT_TRUE(pending.empty()) << "every call gets an answer or an error";
  for (int g = 0; g < kGrains; ++g) {
    std::set<uint64_t> seen;
    for (size_t from = 0; from < cluster.size(); ++from) {
      // Where a node has died behind a cut, and come back, one question is lost with the stream that nobody knew to be dead,
      // and one with the name of its former life.
      const absl::StatusOr<Count> count =
          cluster.AskUntilAnswered<Counter>(from, absl::StrCat("g", g), Add{1}, /*attempts=*/3);
      ASSERT_TRUE(count.ok()) << "g" << g << " from node " << from << ": " << count.status();
      seen.insert(count->token);
    }
    EXPECT_EQ(seen.size(), 1u) << "g" << g;
  }
  check();
}

// A part of the seeds, so that several processes can do it at a time.
class ClusterSimSeeds : public testing::TestWithParam<int> {};

// CLU-5, CLU-6, CLU-13
TEST_P(ClusterSimSeeds, ServesEachGrainOnceWhateverHappens) {
  constexpr int kEach = kSeeds / kParts;
  Calls calls;
  Simulate({.seeds = kEach, .first_seed = static_cast<uint64_t>(GetParam() * kEach + 1), .twice = false},
           [&](Simulation& sim) { RunUnderFaults(sim, calls); });
  // Of a single seed the store may be in trouble most of the time.
  EXPECT_GT(calls.answered, kEach > 1 ? calls.asked / 10 : 0)
      << "the test is worth something only if calls get through";
  if (kEach > 1) {
    EXPECT_GT(calls.deaths, 0u) << "and if nodes are taken for dead";
  }
}

// Those that were red once.
TEST(ClusterSim, KeptSeeds) {
  Calls calls;
  // A node dies behind a cut: see the end of RunUnderFaults.
  Simulate({.seeds = 1, .first_seed = 93, .twice = false},
           [&](Simulation& sim) { RunUnderFaults(sim, calls, {.has_store_trouble = false}); });
}

INSTANTIATE_TEST_SUITE_P(ClusterSim, ClusterSimSeeds, testing::Range(0, kParts));

}  // namespace
}  // namespace fraktor
