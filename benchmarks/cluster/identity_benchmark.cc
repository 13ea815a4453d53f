// What it costs to find a grain. `find/map` is a bare hash table from a name to a pid, to compare `find/cached` and
// `find/local` with: a lookup whose answer is known. `owner/<members>` computes an owner; `owner/hash_strings` hashes
// as many short strings, to compare it with. `balance/even` spreads 10^5 keys over 10 members, `balance/join` has an
// eleventh join: over_mean is what the fullest, or the new one, has, against an equal share.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"

#include "fraktor/cluster/identity/cluster_topology.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/identity/member.h"
#include "fraktor/cluster/identity/placement_resolution.h"
#include "fraktor/cluster/identity/rendezvous_hasher.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/cluster/placement/activation_executor.h"
#include "fraktor/cluster/placement/partition_identity_lookup.h"
#include "fraktor/cluster/placement/placement_coordinator_driver.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

constexpr size_t kGrains = 1000;
constexpr size_t kSpreadKeys = 100'000;
constexpr int64_t kSpreadMembers = 10;

std::vector<Member> Members(int64_t count) {
  std::vector<Member> members;
  for (int64_t i = 0; i < count; ++i) {
    members.push_back(Member{.authority = absl::StrCat("10.0.0.", i, ":2552"), .incarnation = 1, .kinds = {"account"}});
  }
  return members;
}

std::vector<GrainKey> Keys() {
  std::vector<GrainKey> keys;
  for (size_t i = 0; i < kGrains; ++i) keys.emplace_back("account", absl::StrCat("user-", i));
  return keys;
}

class NamedActors final : public ActivationExecutor {
 public:
  Future<ActivationRecord> EnsureActivation(GrainKey key, std::string, uint64_t) override {
    return MakeReadyFuture<ActivationRecord>(ActivationRecord{.pid = key.ToString()});
  }
  Future<void> StopActivation(GrainKey, uint64_t) override { return MakeReadyFuture(); }
};

void FindInMap(benchmark::State& state) {
  absl::flat_hash_map<std::string, std::string> pids;
  std::vector<std::string> names;
  for (const GrainKey& key : Keys()) {
    names.push_back(key.ToString());
    pids.emplace(names.back(), absl::StrCat("10.0.0.7:2552/", names.back()));
  }
  size_t i = 0;
  for (auto _ : state) {
    const auto found = pids.find(names[i]);
    benchmark::DoNotOptimize(found->second.data());
    if (++i == kGrains) i = 0;
  }
}

// With a member that has all of them here, or one that has learned where they are.
void FindByLookup(benchmark::State& state, bool is_local) {
  const auto toolbox = LocalToolbox::Make({}).value();
  const auto executor = SerialExecutor::Make(*toolbox, {}).value();
  const auto store = std::make_shared<MemoryPlacementStore>(*toolbox);
  const auto driver = PlacementCoordinatorDriver::Make({.toolbox = *toolbox,
                                                        .executor = *executor,
                                                        .lock = store,
                                                        .storage = store,
                                                        .activations = std::make_shared<NamedActors>()},
                                                       {})
                          .value();
  PartitionIdentityLookup lookup(driver);
  std::vector<Member> members = Members(is_local ? 1 : 3);
  lookup.UpdateTopology(ClusterTopology::Make(1, members).value());
  const bool is_up = is_local ? lookup.SetupMember(members[0]).ok() : lookup.SetupClient().ok();
  if (!is_up) return state.SkipWithError("not set up");
  const std::vector<GrainKey> keys = Keys();
  for (const GrainKey& key : keys) {
    if (is_local) {
      Future<PlacementResolutionPtr> resolving = driver->Resolve(key);
      if (!toolbox->RunUntilIdle().ok() || !resolving.IsReady()) return state.SkipWithError("not activated");
    } else {
      driver->Learn(std::make_shared<PlacementResolution>(
          PlacementResolution{.decision = {.key = key, .authority = "10.0.0.1:2552", .owner = "10.0.0.1:2552#1"},
                              .pid = key.ToString(),
                              .token = 1}));
    }
  }
  const Instant now = toolbox->Now();
  size_t i = 0;
  for (auto _ : state) {
    absl::StatusOr<PlacementResolutionPtr> found = lookup.Resolve(keys[i], now);
    if (!found.ok()) return state.SkipWithError("not found");
    benchmark::DoNotOptimize((*found)->pid.data());
    if (++i == kGrains) i = 0;
  }
}
void FindCached(benchmark::State& state) { FindByLookup(state, /*is_local=*/false); }
void FindLocal(benchmark::State& state) { FindByLookup(state, /*is_local=*/true); }

void FindOwner(benchmark::State& state) {
  const ClusterTopologyPtr topology = ClusterTopology::Make(1, Members(state.range(0))).value();
  const std::vector<GrainKey> keys = Keys();
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(RendezvousHasher::OwnerOf(*topology, keys[i]));
    if (++i == kGrains) i = 0;
  }
}

void HashStrings(benchmark::State& state) {
  std::vector<std::string> names;
  for (const Member& member : Members(state.range(0))) names.push_back(member.authority);
  for (auto _ : state) {
    for (const std::string& name : names) benchmark::DoNotOptimize(absl::HashOf(name));
  }
}

std::vector<GrainKey> SpreadKeys() {
  std::vector<GrainKey> keys;
  keys.reserve(kSpreadKeys);
  for (size_t i = 0; i < kSpreadKeys; ++i) keys.emplace_back("account", absl::StrCat("user-", i));
  return keys;
}

void SpreadEvenly(benchmark::State& state) {
  const ClusterTopologyPtr topology = ClusterTopology::Make(1, Members(kSpreadMembers)).value();
  const std::vector<GrainKey> keys = SpreadKeys();
  size_t most = 0;
  for (auto _ : state) {
    absl::flat_hash_map<const Member*, size_t> shares;
    for (const GrainKey& key : keys) most = std::max(most, ++shares[RendezvousHasher::OwnerOf(*topology, key)]);
  }
  state.counters["over_mean"] = static_cast<double>(most) * kSpreadMembers / kSpreadKeys;
}

void SpreadAfterAJoin(benchmark::State& state) {
  const ClusterTopologyPtr before = ClusterTopology::Make(1, Members(kSpreadMembers)).value();
  const ClusterTopologyPtr after = ClusterTopology::Make(2, Members(kSpreadMembers + 1)).value();
  const std::vector<GrainKey> keys = SpreadKeys();
  size_t moved = 0;
  for (auto _ : state) {
    moved = 0;
    for (const GrainKey& key : keys) {
      const std::string& now = RendezvousHasher::OwnerOf(*after, key)->authority;
      if (now == RendezvousHasher::OwnerOf(*before, key)->authority) continue;
      if (before->FindAuthority(now) != nullptr) return state.SkipWithError("a key has moved between old members");
      ++moved;
    }
  }
  state.counters["over_mean"] = static_cast<double>(moved) * (kSpreadMembers + 1) / kSpreadKeys;
}

BENCHMARK(FindInMap)->Name("find/map");
BENCHMARK(FindCached)->Name("find/cached");
BENCHMARK(FindLocal)->Name("find/local");
BENCHMARK(FindOwner)->Name("owner")->Arg(3)->Arg(10)->Arg(100);
BENCHMARK(HashStrings)->Name("owner/hash_strings")->Arg(100);
BENCHMARK(SpreadEvenly)->Name("balance/even")->Unit(benchmark::kMillisecond);
BENCHMARK(SpreadAfterAJoin)->Name("balance/join")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fraktor
