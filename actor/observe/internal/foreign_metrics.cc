#include "fraktor/actor/observe/internal/foreign_metrics.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"

#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {
namespace {

// Threads are numbered in the order of their first call. Pairs with nothing.
constinit std::atomic<uint32_t> threads{0};
constinit thread_local uint32_t thread_number = 0;  // 0 is none yet
// The calls of Sample since the last one that returned true, or since the first.
constinit thread_local uint32_t unsampled = 0;

struct FreeMetrics {
  Mutex mutex;
  std::vector<ForeignMetrics*> all ABSL_GUARDED_BY(mutex);
};

FreeMetrics& Free() {
  static FreeMetrics& free = *new FreeMetrics;
  return free;
}

}  // namespace

ForeignMetrics* ForeignMetrics::Acquire(uint32_t sample_every) {
  ForeignMetrics* metrics = nullptr;
  {
    FreeMetrics& free = Free();
    MutexLock lock(free.mutex);
    if (!free.all.empty()) {
      metrics = free.all.back();
      free.all.pop_back();
    }
  }
  if (metrics == nullptr) {
    metrics = new ForeignMetrics;  // NOLINT: belongs to the process
  } else {
    metrics->Clear();
  }
  metrics->SetSampleEvery(sample_every);
  return metrics;
}

void ForeignMetrics::Release(ForeignMetrics* metrics) {
  FreeMetrics& free = Free();
  MutexLock lock(free.mutex);
  free.all.push_back(metrics);
}

void ForeignMetrics::Clear() {
  for (Stripe& stripe : stripes_) {
    for (std::atomic<uint64_t>& count : stripe.runtime) count.store(0, std::memory_order_relaxed);
    for (Counts& counts : stripe.counts) {
      counts.enqueued.store(0, std::memory_order_relaxed);
      counts.handled.store(0, std::memory_order_relaxed);
    }
  }
}

ForeignMetrics::Stripe& ForeignMetrics::OfThisThread() {
  if (thread_number == 0) [[unlikely]]
    thread_number = (threads.fetch_add(1, std::memory_order_relaxed) % kStripes) + 1;
  return stripes_[thread_number - 1];
}

void ForeignMetrics::CountEnqueued(ObservedId id) {
  OfThisThread().counts[id % kObservedIds].enqueued.fetch_add(1, std::memory_order_relaxed);
}

void ForeignMetrics::CountHandled(ObservedId id, uint32_t messages) {
  OfThisThread().counts[id % kObservedIds].handled.fetch_add(messages, std::memory_order_relaxed);
}

void ForeignMetrics::Count(size_t counter) { OfThisThread().runtime[counter].fetch_add(1, std::memory_order_relaxed); }

// No read-modify-write: each thread has its own count.
bool ForeignMetrics::IsNext(uint32_t every) {
  if (++unsampled < every) return false;
  unsampled = 0;
  return true;
}

uint64_t ForeignMetrics::enqueued(ObservedId id) const {
  uint64_t sum = 0;
  for (const Stripe& stripe : stripes_)
    sum += stripe.counts[id % kObservedIds].enqueued.load(std::memory_order_relaxed);
  return sum;
}

uint64_t ForeignMetrics::handled(ObservedId id) const {
  uint64_t sum = 0;
  for (const Stripe& stripe : stripes_) sum += stripe.counts[id % kObservedIds].handled.load(std::memory_order_relaxed);
  return sum;
}

uint64_t ForeignMetrics::count(size_t counter) const {
  uint64_t sum = 0;
  for (const Stripe& stripe : stripes_) sum += stripe.runtime[counter].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace fraktor::inline v0::actor_internal
