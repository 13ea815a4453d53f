// WorkerMetrics: the counters of one worker: plain loads and stores in memory that only this worker
// writes.
//
//   if (metrics != nullptr) {                                // ObservabilityHub::AddWorker; null if the hub is off
//     metrics->CountEnqueued(id, 1);                         // a message that has to wait for a turn
//     if (metrics->Sample()) StampTime(message);             // this message carries the time of its sending
//     metrics->CountHandled(id, messages);                   // once per turn
//     metrics->passes().Count(id);                           // enqueued and handled at once
//   }
//
// A message that CountEnqueued counted is counted by CountHandled when it leaves the mailbox,
// whether it was handled or became a dead letter: the difference is the depth of the mailboxes. A
// message that was handled without waiting is counted once for both.
//
// Memory: 66 KiB, and 1.3 KiB for each id whose durations this worker has sampled. That is at most
// max_timed_types and the actors that are observed alone, 1.7 MiB by default if all of them run
// here. Later nothing is allocated.
//
// Thread safety: only the worker's thread calls the methods that are not const. Any thread may read
// meanwhile.
#ifndef FRAKTOR_ACTOR_OBSERVE_INTERNAL_WORKER_METRICS_H_
#define FRAKTOR_ACTOR_OBSERVE_INTERNAL_WORKER_METRICS_H_

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/metric_table.h"

namespace fraktor::inline v0::actor_internal {

// Counts messages by the ids of their recipients, on one thread: those that the sending worker
// handled at once, so that they never waited. They are the most frequent kind. Counting them costs
// no more than counting the turn of the actor, which happens anyway. So a worker has these counters
// even if the hub is off.
class PassCounts {
 public:
  // Does not check the id, which must come from the hub.
  void Count(ObservedId id) {
    assert(id < kObservedIds);
    std::atomic<uint64_t>& count = counts_[id];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Any thread may call it.
  uint64_t of(ObservedId id) const { return counts_[id % kObservedIds].load(std::memory_order_relaxed); }
  uint64_t Sum() const;

 private:
  // Statistics with one writer; they pair with nothing.
  std::array<std::atomic<uint64_t>, kObservedIds> counts_{};
};

// Aligned to cache lines, so that writes of neighbours in memory do not slow the worker down.
class alignas(64) WorkerMetrics {
 public:
  // A change of the sampling rate takes effect within this many calls of Sample.
  static constexpr uint32_t kSampleStride = 1024;
  // The largest rate for which SamplesOften returns true.
  static constexpr uint32_t kOften = 64;

  // `sample_every` belongs to the hub and outlives this object. Types from `timed_types` on share
  // the durations of kOtherTypes.
  WorkerMetrics(const std::atomic<uint32_t>& sample_every, size_t timed_types);
  ~WorkerMetrics();
  WorkerMetrics(const WorkerMetrics&) = delete;
  WorkerMetrics& operator=(const WorkerMetrics&) = delete;

  // Counts messages that wait for an actor of that id.
  void CountEnqueued(ObservedId id, uint32_t messages = 1) { Increase(CountsOf(id).enqueued, messages); }
  // Counts messages that have left the mailbox of an actor of that id.
  void CountHandled(ObservedId id, uint32_t messages) { Increase(CountsOf(id).handled, messages); }
  // One more for a counter of the runtime: CounterOf(name), plus the value of its label.
  void Count(size_t counter) {
    assert(counter < kRuntimeCounters);
    Increase(counters_[counter], 1);
  }
  void CountDeadLetter(DeadLetterReason reason) { Count(CounterOf(kDeadLettersTotal) + static_cast<size_t>(reason)); }

  // Returns true once in `sample_every` calls: never for 0, always for 1. It counts the calls and
  // does not draw at random, so that a program runs the same way each time.
  bool Sample() {
    if (--until_look_ != 0) [[likely]]
      return false;
    return LookWhetherToSample();
  }

  // Counts messages that were sent without a call of Sample. Sample may return true again once
  // IsDue does.
  void Skip(uint32_t messages) { until_look_ = until_look_ > messages ? until_look_ - messages : 1; }
  bool IsDue() const { return until_look_ == 1; }
  // Returns whether messages are sampled so often that a caller should call Sample for each.
  bool SamplesOften() const { return every_ != 0 && every_ <= kOften; }

  // For sampled messages only: how long the handler ran, and how long the message had waited.
  void RecordDuration(ObservedId id, int64_t ns) {
    const size_t index = DurationsIndexOf(id);
    DurationHistogram* histogram = durations_[index].load(std::memory_order_relaxed);
    if (histogram == nullptr) [[unlikely]]
      histogram = &MakeDurations(index);
    histogram->Record(ns);
  }
  void RecordLatency(int64_t ns) { latency_.Record(ns); }

  // The worker comes from parking, or parks. A worker begins idle. A call that changes nothing does
  // nothing.
  void BeginBusy(int64_t now_ns);
  void EndBusy(int64_t now_ns);

  // The total time that the worker was busy, up to `now_ns`.
  int64_t BusyNs(int64_t now_ns) const;

  // Without the messages in passes().
  uint64_t enqueued(ObservedId id) const { return CountsOf(id).enqueued.load(std::memory_order_relaxed); }
  uint64_t handled(ObservedId id) const { return CountsOf(id).handled.load(std::memory_order_relaxed); }
  uint64_t passed(ObservedId id) const { return passes_.of(id); }
  PassCounts& passes() { return passes_; }
  uint64_t count(size_t counter) const { return counters_[counter].load(std::memory_order_relaxed); }
  uint64_t dead_letters(DeadLetterReason reason) const {
    return count(CounterOf(kDeadLettersTotal) + static_cast<size_t>(reason));
  }
  const DurationHistogram& latency() const { return latency_; }
  // Null while there are none.
  const DurationHistogram* durations(ObservedId id) const {
    return durations_[id % kObservedIds].load(std::memory_order_acquire);
  }

 private:
  struct Counts {
    std::atomic<uint64_t> enqueued{0};
    std::atomic<uint64_t> handled{0};
  };

  static void Increase(std::atomic<uint64_t>& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  // An invalid id counts for another id, but stays inside the table.
  Counts& CountsOf(ObservedId id) {
    assert(id < kObservedIds);
    return counts_[id % kObservedIds];
  }
  const Counts& CountsOf(ObservedId id) const { return counts_[id % kObservedIds]; }

  size_t DurationsIndexOf(ObservedId id) const {
    assert(id < kObservedIds);
    return id >= timed_types_ && !IsObservedActor(id) ? kOtherTypes : id % kObservedIds;
  }

  bool LookWhetherToSample();
  void Restart(uint32_t every);
  DurationHistogram& MakeDurations(size_t index);

  // For the worker's thread only: the calls of Sample until it checks again, and from there until
  // it returns true.
  uint32_t until_look_ = 0;
  uint32_t until_sample_ = 0;
  uint32_t every_ = 0;
  const size_t timed_types_;
  const std::atomic<uint32_t>& sample_every_;

  // Twice the total busy time; while the worker is busy, minus twice the time at which it became
  // busy, plus 1. In one word, so that a reader sees a consistent pair. Pairs with nothing.
  std::atomic<int64_t> busy_{0};

  // Statistics with one writer; they pair with nothing.
  std::array<std::atomic<uint64_t>, kRuntimeCounters> counters_{};
  DurationHistogram latency_;
  std::array<Counts, kObservedIds> counts_{};
  PassCounts passes_;
  // The release store of a new histogram pairs with the acquire load in durations().
  std::array<std::atomic<DurationHistogram*>, kObservedIds> durations_{};
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_OBSERVE_INTERNAL_WORKER_METRICS_H_
