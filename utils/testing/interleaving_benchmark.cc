// Executions per second of the model checker: two threads with six visible operations each.
#include <atomic>

#include "benchmark/benchmark.h"

#include "fraktor/utils/testing/interleaving.h"

namespace fraktor {
namespace {

// Every operation is on one location, so that few executions are redundant.
void BM_TwoThreadsOfSixOperations(benchmark::State& state) {
  int64_t executions = 0;
  for (auto _ : state) {
    const ModelResult result = CheckInterleavings({.max_executions = 100'000, .allow_incomplete = true}, [](Model& m) {
      auto& x = m.Make<ModelAtomic<int>>(0);
      auto& y = m.Make<ModelAtomic<int>>(0);
      for (int t = 0; t < 2; ++t) {
        m.Thread([&] {
          for (int i = 0; i < 2; ++i) {
            x.fetch_add(1, std::memory_order_acq_rel);
            y.store(1, std::memory_order_release);
            x.load(std::memory_order_acquire);
          }
        });
      }
    });
    if (!result.ok()) state.SkipWithError("the check failed");
    executions += result.executions + result.redundant_executions;
  }
  state.SetItemsProcessed(executions);
}
BENCHMARK(BM_TwoThreadsOfSixOperations);

// The same without the reduction: 924 interleavings and more.
void BM_SameWithoutReduction(benchmark::State& state) {
  int64_t executions = 0;
  for (auto _ : state) {
    const ModelResult result =
        CheckInterleavings({.max_executions = 100'000, .allow_incomplete = true, .reduce = false}, [](Model& m) {
          auto& x = m.Make<ModelAtomic<int>>(0);
          for (int t = 0; t < 2; ++t) {
            m.Thread([&] {
              for (int i = 0; i < 6; ++i) x.fetch_add(1, std::memory_order_acq_rel);
            });
          }
        });
    if (!result.ok()) state.SkipWithError("the check failed");
    executions += result.executions;
  }
  state.SetItemsProcessed(executions);
}
BENCHMARK(BM_SameWithoutReduction);

}  // namespace
}  // namespace fraktor
