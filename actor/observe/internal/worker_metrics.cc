#include "fraktor/actor/observe/internal/worker_metrics.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "fraktor/actor/observe/duration_histogram.h"

namespace fraktor::inline v0::actor_internal {

static_assert(sizeof(WorkerMetrics) <= 67 * 1024, "the header says 66 KiB");
static_assert(sizeof(DurationHistogram) <= 1328, "the header says 1.3 KiB");

uint64_t PassCounts::Sum() const {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& count : counts_) sum += count.load(std::memory_order_relaxed);
  return sum;
}

WorkerMetrics::WorkerMetrics(const std::atomic<uint32_t>& sample_every, size_t timed_types)
    : timed_types_(timed_types), sample_every_(sample_every) {
  Restart(sample_every_.load(std::memory_order_relaxed));
}

WorkerMetrics::~WorkerMetrics() {
  for (std::atomic<DurationHistogram*>& histogram : durations_) {
    const std::unique_ptr<DurationHistogram> owned(histogram.load(std::memory_order_acquire));
  }
}

void WorkerMetrics::Restart(uint32_t every) {
  every_ = every;
  until_look_ = every == 0 ? kSampleStride : std::min(every, kSampleStride);
  until_sample_ = every == 0 ? 0 : every - until_look_;
}

bool WorkerMetrics::LookWhetherToSample() {
  const uint32_t every = sample_every_.load(std::memory_order_relaxed);
  if (every != every_) {
    Restart(every);
    return every == 1;
  }
  if (until_sample_ != 0) {
    until_look_ = std::min(until_sample_, kSampleStride);
    until_sample_ -= until_look_;
    return false;
  }
  Restart(every);
  return every != 0;
}

DurationHistogram& WorkerMetrics::MakeDurations(size_t index) {
  auto made = std::make_unique<DurationHistogram>();
  DurationHistogram& histogram = *made;
  durations_[index].store(made.release(), std::memory_order_release);
  return histogram;
}

void WorkerMetrics::BeginBusy(int64_t now_ns) {
  const int64_t word = busy_.load(std::memory_order_relaxed);
  if ((word & 1) != 0) return;
  busy_.store(word - 2 * now_ns + 1, std::memory_order_relaxed);
}

void WorkerMetrics::EndBusy(int64_t now_ns) {
  const int64_t word = busy_.load(std::memory_order_relaxed);
  if ((word & 1) == 0) return;
  busy_.store(word - 1 + 2 * now_ns, std::memory_order_relaxed);
}

int64_t WorkerMetrics::BusyNs(int64_t now_ns) const {
  const int64_t word = busy_.load(std::memory_order_relaxed);
  return (word & 1) == 0 ? word / 2 : (word - 1) / 2 + now_ns;
}

}  // namespace fraktor::inline v0::actor_internal
