// ForeignMetrics: the counters of threads that are no workers: a few stripes, and each thread adds
// to one of them.
//
//   ForeignMetrics* metrics = hub.foreign();  // null if the hub is off
//   if (metrics != nullptr) metrics->CountEnqueued(id);
//
// The rules of WorkerMetrics apply. Each count is a read-modify-write of some nanoseconds. Threads
// whose numbers are equal modulo kStripes share a stripe. The stripes take 128 KiB in all.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_OBSERVE_INTERNAL_FOREIGN_METRICS_H_
#define FRAKTOR_ACTOR_OBSERVE_INTERNAL_FOREIGN_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/metric_table.h"

namespace fraktor::inline v0::actor_internal {

class ForeignMetrics {
 public:
  static constexpr size_t kStripes = 4;

  // The object belongs to the process, because a late thread may count after its hub has ended. A
  // reused object starts at zero.
  static ForeignMetrics* Acquire(uint32_t sample_every);
  static void Release(ForeignMetrics* metrics);

  ForeignMetrics(const ForeignMetrics&) = delete;
  ForeignMetrics& operator=(const ForeignMetrics&) = delete;

  void CountEnqueued(ObservedId id);
  void CountHandled(ObservedId id, uint32_t messages);
  void Count(size_t counter);
  void CountDeadLetter(DeadLetterReason reason) { Count(CounterOf(kDeadLettersTotal) + static_cast<size_t>(reason)); }

  // Returns true once in `sample_every` calls of a thread. A thread that sends to several systems
  // has one count for all.
  bool Sample() {
    const uint32_t every = sample_every_.load(std::memory_order_relaxed);
    return every != 0 && IsNext(every);
  }
  void SetSampleEvery(uint32_t sample_every) { sample_every_.store(sample_every, std::memory_order_relaxed); }

  uint64_t enqueued(ObservedId id) const;
  uint64_t handled(ObservedId id) const;
  uint64_t count(size_t counter) const;

 private:
  struct Counts {
    std::atomic<uint64_t> enqueued{0};
    std::atomic<uint64_t> handled{0};
  };
  // Statistics; they pair with nothing.
  struct alignas(64) Stripe {
    std::array<std::atomic<uint64_t>, kRuntimeCounters> runtime{};
    std::array<Counts, kObservedIds> counts{};
  };

  ForeignMetrics() = default;

  static bool IsNext(uint32_t every);
  void Clear();
  Stripe& OfThisThread();

  // Pairs with nothing.
  std::atomic<uint32_t> sample_every_{0};
  std::array<Stripe, kStripes> stripes_{};
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_OBSERVE_INTERNAL_FOREIGN_METRICS_H_
