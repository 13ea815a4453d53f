// Counters as grains: three nodes of one process count words together. Nobody starts a counter, and nobody has to know
// where it runs: the first message starts it, on the node that it belongs to.
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/cluster/grain/cluster.h"
#include "fraktor/cluster/grain/grain_kind.h"
#include "fraktor/cluster/grain/grain_peers.h"
#include "fraktor/cluster/grain/grain_ref.h"
#include "fraktor/cluster/memory/memory_membership.h"
#include "fraktor/cluster/memory/memory_placement_store.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

struct Count {
  int64_t value = 0;
  std::string node = {};
};
struct Add {
  using Reply = Count;
  int64_t n = 0;
};

class Counter : public fraktor::Actor<Counter, Add> {
 public:
  static constexpr std::string_view kGrainKind = "counter";
  explicit Counter(const fraktor::GrainContext&) {}

  Count On(Context& context, const Add& add) {
    sum_ += add.n;
    return {.value = sum_, .node = std::string(context.system().name())};
  }

 private:
  int64_t sum_ = 0;
};

int main() {
  // Three systems of one process; what they share makes them one cluster.
  const std::unique_ptr<fraktor::StdToolbox> toolbox = fraktor::StdToolbox::Make({.name = "counters"}).value();
  auto membership = std::make_shared<fraktor::MemoryMembership>(*toolbox);
  auto store = std::make_shared<fraktor::MemoryPlacementStore>(*toolbox);
  auto peers = std::make_shared<fraktor::LocalGrainPeers>();
  std::vector<std::unique_ptr<fraktor::ActorSystem>> systems;
  std::vector<fraktor::Cluster*> nodes;
  for (const std::string name : {"red", "green", "blue"}) {
    systems.push_back(
        fraktor::ActorSystem::Create({.config = {.system_name = name}, .toolbox = toolbox.get(), .workers = 1})
            .value());
    absl::StatusOr<fraktor::Cluster*> node =
        fraktor::Cluster::Start(*systems.back(), {.authority = name + ":1",
                                                  .kinds = {fraktor::GrainKindOf<Counter>()},
                                                  .membership = membership,
                                                  .lock = store,
                                                  .storage = store,
                                                  .peers = peers});
    if (!node.ok()) {
      std::cerr << node.status() << "\n";
      return 1;
    }
    nodes.push_back(*node);
  }
  // To become a member takes a moment. Calls would wait by themselves; but all three are to have their share.
  for (fraktor::Cluster* node : nodes) {
    if (const absl::Status joined = node->Joined().Wait(); !joined.ok()) {
      std::cerr << joined << "\n";
      return 1;
    }
  }

  const std::vector<std::string> words = {"a",   "rose", "is", "a",     "rose", "is",  "a",    "rose",
                                          "but", "no",   "a",  "tulip", "is",   "not", "a",    "rose",
                                          "and", "a",    "is", "no",    "rose", "nor", "tulip"};
  std::map<std::string, Count> counts;
  for (size_t i = 0; i < words.size(); ++i) {
    // From one node after the other: it makes no difference.
    const size_t from = i % nodes.size();
    const fraktor::GrainRef<Counter> counter = nodes[from]->Grain<Counter>(words[i]);
    absl::StatusOr<Count> count = counter.AskAndWait(*systems[from], Add{1}, absl::Seconds(30));
    if (!count.ok()) {
      std::cerr << words[i] << ": " << count.status() << "\n";
      return 1;
    }
    counts[words[i]] = *count;
  }
  std::map<std::string, int> per_node;
  for (const auto& [word, count] : counts) {
    std::cout << word << ": " << count.value << "\n";
    ++per_node[count.node];
  }
  std::cout << counts.size() << " counters on " << per_node.size() << " nodes\n";

  // What runs on a node that leaves is started elsewhere, when it is needed. These counters are in memory: they begin
  // anew. Those of persistent actors would go on.
  const std::string home = counts["rose"].node;
  size_t leaving = 0;
  while (systems[leaving]->name() != home) ++leaving;
  fraktor::Future<void> left = nodes[leaving]->Leave();
  const size_t other = (leaving + 1) % nodes.size();
  absl::StatusOr<Count> moved = Count{.node = home};
  while (moved.ok() && moved->node == home) {
    moved = nodes[other]->Grain<Counter>("rose").AskAndWait(*systems[other], Add{1}, absl::Seconds(30));
  }
  if (!moved.ok()) {
    std::cerr << "rose: " << moved.status() << "\n";
    return 1;
  }
  std::cout << "rose has moved: " << moved->value << "\n";
  return 0;
}
