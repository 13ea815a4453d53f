// How long messages of a foreign thread are on their way: a receiver notes it for each, and the probe says what came out.
//
//   Send(receiver, LatencyProbe::Now());          // the foreign thread
//   probe.Receive(sent);                          // the receiver
//   probe.Report(state, messages);                // when all is quiet
#ifndef FRAKTOR_BENCHMARKS_MEASURING_LATENCY_PROBE_H_
#define FRAKTOR_BENCHMARKS_MEASURING_LATENCY_PROBE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"

#include "fraktor/benchmarks/measuring/program_time.h"

namespace fraktor::inline v0 {

class LatencyProbe {
 public:
  explicit LatencyProbe(size_t messages) { latencies_.reserve(messages); }

  static int64_t Now() { return ProgramClock::now().time_since_epoch().count(); }

  // Called by the receiver only.
  void Receive(int64_t sent) {
    latencies_.push_back(ProgramClock::now() - ProgramClock::time_point(ProgramClock::duration(sent)));
    received_.fetch_add(1, std::memory_order_release);
  }

  size_t received() const { return received_.load(std::memory_order_acquire); }

  // The share of messages that arrived and the percentiles of those. Only when the receiver is idle.
  void Report(benchmark::State& state, size_t sent) {
    state.counters["delivered"] = static_cast<double>(latencies_.size()) / static_cast<double>(sent);
    if (latencies_.empty()) return;
    std::sort(latencies_.begin(), latencies_.end());
    const auto percentile = [&](double share) {
      return 1e6 * Seconds(latencies_[static_cast<size_t>(share * static_cast<double>(latencies_.size() - 1))]);
    };
    state.counters["p50_us"] = percentile(0.50);
    state.counters["p95_us"] = percentile(0.95);
    state.counters["p99_us"] = percentile(0.99);
  }

 private:
  std::vector<ProgramClock::duration> latencies_;
  std::atomic<size_t> received_{0};  // release by the receiver after each entry, acquire by the measuring thread
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_BENCHMARKS_MEASURING_LATENCY_PROBE_H_
