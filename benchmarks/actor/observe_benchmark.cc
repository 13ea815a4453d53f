// What observing costs a message: the counters and the sampling, against a loop without them.
//
// - Nothing: the loop alone. Every other figure has it in it.
// - NullTest: a hub that is off.
// - CountersAndSampling: what a message costs when it is sent, sampled and handled, one run per message.
// - CountersPerRun: the same with 64 messages in a run.
// - WithClock: the same, and one message in 256 reads the clock three times and records both durations.
// - Foreign: what a thread pays that is no worker.
#include <chrono>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"

#include "fraktor/actor/observe/observability_hub.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {

using actor_internal::ForeignMetrics;
using actor_internal::ObservedId;
using actor_internal::WorkerMetrics;

namespace {

constexpr int kTypes = 8;

// A worker of a hub, and the ids of some types, which the compiler cannot know.
struct Observed {
  explicit Observed(const ObservabilityOptions& options) : hub(*ObservabilityHub::Make(options)) {
    for (int i = 0; i < kTypes; ++i) ids[i] = hub->TypeId(absl::StrCat("T", i));
    worker = *hub->AddWorker("w", Instant());
    benchmark::DoNotOptimize(ids);
    benchmark::DoNotOptimize(worker);
  }

  std::unique_ptr<ObservabilityHub> hub;
  WorkerMetrics* worker = nullptr;
  ObservedId ids[kTypes] = {};
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Nothing(benchmark::State& state) {
  Observed observed({});
  uint32_t i = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Nothing);

void NullTest(benchmark::State& state) {
  Observed observed({.enabled = false});
  uint32_t i = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    WorkerMetrics* worker = observed.worker;
    benchmark::DoNotOptimize(worker);
    if (worker != nullptr) worker->CountEnqueued(id);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(NullTest);

void CountersAndSampling(benchmark::State& state) {
  Observed observed({});
  uint32_t i = 0;
  int64_t sampled = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    observed.worker->CountEnqueued(id);
    if (observed.worker->Sample()) ++sampled;
    observed.worker->CountHandled(id, 1);
  }
  benchmark::DoNotOptimize(sampled);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CountersAndSampling);

void CountersPerRun(benchmark::State& state) {
  Observed observed({});
  uint32_t i = 0;
  int64_t sampled = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    observed.worker->CountEnqueued(id);
    if (observed.worker->Sample()) ++sampled;
    if (i % 64 == 0) observed.worker->CountHandled(id, 64);
  }
  benchmark::DoNotOptimize(sampled);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CountersPerRun);

void WithClock(benchmark::State& state) {
  Observed observed({});
  uint32_t i = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    observed.worker->CountEnqueued(id);
    if (observed.worker->Sample()) {
      const int64_t sent = NowNs();
      const int64_t begin = NowNs();
      observed.worker->RecordLatency(begin - sent);
      observed.worker->RecordDuration(id, NowNs() - begin);
    }
    observed.worker->CountHandled(id, 1);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WithClock);

void Foreign(benchmark::State& state) {
  Observed observed({});
  ForeignMetrics& foreign = *observed.hub->foreign();
  uint32_t i = 0;
  int64_t sampled = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    foreign.CountEnqueued(id);
    if (foreign.Sample()) ++sampled;
  }
  benchmark::DoNotOptimize(sampled);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Foreign);

void RecordBothDurations(benchmark::State& state) {
  Observed observed({});
  uint32_t i = 0;
  for (auto _ : state) {
    ObservedId id = observed.ids[++i % kTypes];
    benchmark::DoNotOptimize(id);
    observed.worker->RecordLatency(i);
    observed.worker->RecordDuration(id, i);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(RecordBothDurations);

// By the number of types, of which each has durations.
void TakeSnapshot(benchmark::State& state) {
  const auto hub = *ObservabilityHub::Make();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  for (int64_t i = 0; i < state.range(0); ++i) {
    const ObservedId id = hub->TypeId(absl::StrCat("T", i));
    worker->CountEnqueued(id);
    worker->RecordDuration(id, i);
  }
  int64_t now_ns = 0;
  for (auto _ : state) benchmark::DoNotOptimize(hub->Snapshot(Instant::FromNanoseconds(++now_ns)));
}
BENCHMARK(TakeSnapshot)->Arg(10)->Arg(250)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fraktor
