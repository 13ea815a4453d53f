// What it takes to get from a pid to its path and back, among 1000 and among 100 000 actors, beside a bare
// flat_hash_map of the same size that has every text ready.
// - BM_PathToPid / BM_MapPathToPid: a path as a value, against a map from the text.
// - BM_PidToPath / BM_MapPidToPath: an ActorPath of the caller's own, in both.
// - BM_PidToText / BM_MapPidToText: the text as a string of the caller's own, in both.
// - BM_RegisterAndUnregister / BM_MapInsertAndErase: an actor comes and goes.
// Actors are families: /user/worker-N, named by the program, and its children /user/worker-N/$x, named by the runtime. In
// a family of 2 every other actor is a parent, which is the worst case: that is what stands without another word. With
// `family:100` the parent is likely to be in the cache. Each item is one lookup, in random order, of paths and pids that
// were made before.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/config/actor_system_config.h"
#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/pid.h"
#include "fraktor/actor/registry/internal/actor_path_registry.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {

using actor_internal::ActorPathRegistry;

namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) std::abort();
}

struct Actors {
  Actors(size_t count, uint32_t family)
      : registry(*ActorPathRegistry::Create(ActorSystemConfig{.system_name = "warehouse"}, {})) {
    const Pid root{0, 1};
    const Pid user{1, 1};
    Check(registry->RegisterRoot(root));
    Check(registry->Register(user, root, "user"));
    Pid parent = user;
    for (uint32_t i = 0; i < count; ++i) {
      const Pid pid{i + 2, 1};
      if (i % family == 0) {
        Check(registry->Register(pid, user, absl::StrCat("worker-", i)));
        parent = pid;
      } else {
        Check(registry->RegisterAuto(pid, parent, i));
      }
      pids.push_back(pid);
    }
    std::shuffle(pids.begin(), pids.end(), std::mt19937(42));
    for (const Pid pid : pids) {
      paths.push_back(*registry->PathOf(pid));
      texts.push_back(paths.back().ToString());
      text_to_pid.emplace(texts.back(), pid);
      pid_to_text.emplace(pid, texts.back());
      pid_to_path.emplace(pid, paths.back());
    }
    // The order of asking is not the order in which the texts were made.
    std::vector<size_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(43));
    std::vector<ActorPath> asked_paths;
    std::vector<std::string> asked_texts;
    std::vector<Pid> asked_pids;
    for (const size_t i : order) {
      asked_paths.push_back(paths[i]);
      asked_texts.push_back(texts[i]);
      asked_pids.push_back(pids[i]);
    }
    paths = std::move(asked_paths);
    texts = std::move(asked_texts);
    pids = std::move(asked_pids);
  }

  std::unique_ptr<ActorPathRegistry> registry;
  std::vector<Pid> pids;
  std::vector<ActorPath> paths;
  std::vector<std::string> texts;
  absl::flat_hash_map<std::string, Pid> text_to_pid;
  absl::flat_hash_map<Pid, std::string> pid_to_text;
  absl::flat_hash_map<Pid, ActorPath> pid_to_path;
};

const Actors& ActorsOf(int64_t count, uint32_t family) {
  static auto* const made = new std::map<std::pair<int64_t, uint32_t>, Actors>;
  return made->try_emplace({count, family}, static_cast<size_t>(count), family).first->second;
}

void Sizes(benchmark::internal::Benchmark* benchmark) { benchmark->ArgName("actors")->Arg(1000)->Arg(100'000); }

// Calls `look` for one actor after the other.
template <uint32_t kFamily, class Look>
void Run(benchmark::State& state, Look look) {
  const Actors& actors = ActorsOf(state.range(0), kFamily);
  size_t i = 0;
  for (auto _ : state) {
    look(actors, i);
    if (++i == actors.pids.size()) i = 0;
  }
  state.SetItemsProcessed(state.iterations());
}

template <uint32_t kFamily>
void BM_PathToPid(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    Pid pid = actors.registry->Find(actors.paths[i]);
    benchmark::DoNotOptimize(pid);
  });
}
BENCHMARK(BM_PathToPid<2>)->Name("BM_PathToPid")->Apply(Sizes);
BENCHMARK(BM_PathToPid<100>)->Name("BM_PathToPid/family:100")->Apply(Sizes);

template <uint32_t kFamily>
void BM_MapPathToPid(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    Pid pid = actors.text_to_pid.find(actors.texts[i])->second;
    benchmark::DoNotOptimize(pid);
  });
}
BENCHMARK(BM_MapPathToPid<2>)->Name("BM_MapPathToPid")->Apply(Sizes);
BENCHMARK(BM_MapPathToPid<100>)->Name("BM_MapPathToPid/family:100")->Apply(Sizes);

template <uint32_t kFamily>
void BM_PidToText(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    absl::StatusOr<std::string> text = actors.registry->TextOf(actors.pids[i]);
    benchmark::DoNotOptimize(text);
  });
}
BENCHMARK(BM_PidToText<2>)->Name("BM_PidToText")->Apply(Sizes);
BENCHMARK(BM_PidToText<100>)->Name("BM_PidToText/family:100")->Apply(Sizes);

template <uint32_t kFamily>
void BM_MapPidToText(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    absl::StatusOr<std::string> text = actors.pid_to_text.find(actors.pids[i])->second;
    benchmark::DoNotOptimize(text);
  });
}
BENCHMARK(BM_MapPidToText<2>)->Name("BM_MapPidToText")->Apply(Sizes);
BENCHMARK(BM_MapPidToText<100>)->Name("BM_MapPidToText/family:100")->Apply(Sizes);

template <uint32_t kFamily>
void BM_PidToPath(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    absl::StatusOr<ActorPath> path = actors.registry->PathOf(actors.pids[i]);
    benchmark::DoNotOptimize(path);
  });
}
BENCHMARK(BM_PidToPath<2>)->Name("BM_PidToPath")->Apply(Sizes);
BENCHMARK(BM_PidToPath<100>)->Name("BM_PidToPath/family:100")->Apply(Sizes);

template <uint32_t kFamily>
void BM_MapPidToPath(benchmark::State& state) {
  Run<kFamily>(state, [](const Actors& actors, size_t i) {
    absl::StatusOr<ActorPath> path = actors.pid_to_path.find(actors.pids[i])->second;
    benchmark::DoNotOptimize(path);
  });
}
BENCHMARK(BM_MapPidToPath<2>)->Name("BM_MapPidToPath")->Apply(Sizes);
BENCHMARK(BM_MapPidToPath<100>)->Name("BM_MapPidToPath/family:100")->Apply(Sizes);

// Coming and going: an entry of an actor against an entry of a map by its whole text.
void BM_RegisterAndUnregister(benchmark::State& state) {
  auto registry = *ActorPathRegistry::Create(ActorSystemConfig{.system_name = "warehouse"}, {});
  Check(registry->RegisterRoot({0, 1}));
  Check(registry->Register({1, 1}, {0, 1}, "user"));
  uint32_t generation = 0;
  for (auto _ : state) {
    ++generation;
    Check(registry->RegisterAuto({2, generation}, {1, 1}, generation));
    Check(registry->Unregister({2, generation}, Instant()));
  }
}
BENCHMARK(BM_RegisterAndUnregister);

void BM_MapInsertAndErase(benchmark::State& state) {
  absl::flat_hash_map<std::string, Pid> map;
  const std::string user = "pekko://warehouse/user";
  uint32_t generation = 0;
  for (auto _ : state) {
    ++generation;
    const std::string text = absl::StrCat(user, "/$", generation);
    map.emplace(text, Pid{2, generation});
    map.erase(text);
  }
}
BENCHMARK(BM_MapInsertAndErase);

}  // namespace
}  // namespace fraktor
