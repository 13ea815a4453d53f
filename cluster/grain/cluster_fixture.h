// ClusterFixture: nodes of one cluster in one simulation, which can leave and crash. For tests.
//
//   Simulate({.seeds = 20}, [](Simulation& sim) {
//     ClusterFixture nodes(sim, {.cluster = {.kinds = {GrainKindOf<Account>()}}}, 3);
//     nodes.Crash(1);
//     sim.Advance(absl::Seconds(20));
//   });
//
// Thread safety: the thread of the test.
#ifndef FRAKTOR_CLUSTER_GRAIN_CLUSTER_FIXTURE_H_
#define FRAKTOR_CLUSTER_GRAIN_CLUSTER_FIXTURE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/testkit/simulation.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class ClusterFixture {
 public:
  static constexpr absl::Duration kTerm = absl::Seconds(10);

  struct Options {
    // Authority, membership, lock, storage and peers are the fixture's.
    ClusterOptions cluster = {};
    std::shared_ptr<const CodecRegistry> codecs = nullptr;
  };

  ClusterFixture(Simulation& sim, const Options& options, int count)
      : sim_(sim),
        options_(options),
        membership_(std::make_shared<MemoryMembership>(sim.toolbox(), MemberTableOptions{.term = kTerm})),
        store_(std::make_shared<MemoryPlacementStore>(sim.toolbox())) {
    for (int i = 0; i < count; ++i) Join();
  }

  // Another node, which hosts the kinds of the options, or these.
  ActorSystem& Join() { return Join(options_.cluster.kinds); }
  ActorSystem& Join(const std::vector<GrainKind>& kinds) {
    ActorSystemOptions system{.toolbox = &sim_.toolbox(), .workers = 1, .log_sink = &sim_.log()};
    system.config.system_name = absl::StrCat("node", systems_.size());
    system.codecs = options_.codecs;
    ClusterOptions cluster = options_.cluster;
    cluster.authority = absl::StrCat("n", systems_.size(), ":1");
    cluster.kinds = kinds;
    cluster.membership = membership_;
    cluster.lock = store_;
    cluster.storage = store_;
    cluster.peers = peers_;
    cluster.leaves_on_shutdown = false;
    systems_.push_back(ActorSystem::Create(system).value());
    Cluster::Start(*systems_.back(), cluster).value();
    return *systems_.back();
  }

  // Its actors end, and nobody says goodbye.
  void Crash(size_t i) { systems_[i].reset(); }

  size_t size() const { return systems_.size(); }
  bool IsAlive(size_t i) const { return systems_[i] != nullptr; }
  ActorSystem& system(size_t i) { return *systems_[i]; }
  Cluster& operator[](size_t i) { return *Cluster::Of(*systems_[i]); }
  MemoryPlacementStore& store() { return *store_; }

  // The nodes on which a grain runs.
  std::vector<size_t> HostsOf(const GrainKey& key) {
    std::vector<size_t> hosts;
    for (size_t i = 0; i < size(); ++i) {
      if (IsAlive(i) && (*this)[i].driver().Local(key) != nullptr) hosts.push_back(i);
    }
    return hosts;
  }

 private:
  Simulation& sim_;
  const Options options_;
  const std::shared_ptr<MemoryMembership> membership_;
  const std::shared_ptr<MemoryPlacementStore> store_;
  const std::shared_ptr<LocalGrainPeers> peers_ = std::make_shared<LocalGrainPeers>();
  std::vector<std::unique_ptr<ActorSystem>> systems_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_CLUSTER_FIXTURE_H_
