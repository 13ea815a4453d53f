// What one worker counts: plain loads and stores in memory that only this worker writes.
//
//   WorkerMetrics* metrics = ...;  // of ObservabilityHub::AddWorker; null if the hub is off
//   if (metrics != nullptr) {
//     metrics->CountEnqueued(id, 1);                         // when a message has to wait for its turn
//     if (metrics->Sample()) { ... }                         // this message carries the time when it was sent
//     metrics->CountHandled(id, messages);                   // per run
//     metrics->passes().Count(id);                           // both at once
//   }
//
// A message that was counted by CountEnqueued is counted by CountHandled when it leaves the mailbox, whether it was
// handled or became a dead letter: the difference is the depth of the mailboxes. What was handled without having waited
// is counted once for both.
//
// Memory: 66 KiB, and 1.3 KiB more for each id whose durations this worker has sampled: at most max_timed_types and the
// actors that are observed alone, 1.7 MiB by default if all of them run here. Nothing is allocated after that.
//
// Thread safety: everything but the const methods belongs to the worker's thread. Anybody may read meanwhile.
#ifndef FRAKTOR_ACTOR_OBSERVE_WORKER_METRICS_H_
#define FRAKTOR_ACTOR_OBSERVE_WORKER_METRICS_H_

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/observed_id.h"

namespace fraktor::inline v0 {

// Messages by the ids of their receivers, counted by one thread: those that were handled as soon as they were sent, by
// the worker that sent them, so that they waited nowhere. It is the most frequent kind, and costs nothing more to count
// than the run of the actor, which is counted anyway. So a worker has this also if nobody observes.
class PassCounts {
 public:
  // It trusts the id, which must be of the hub's making.
  void Count(ObservedId id) {
    assert(id < kObservedIds);
    std::atomic<uint64_t>& count = counts_[id];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // For anybody.
  uint64_t of(ObservedId id) const { return counts_[id % kObservedIds].load(std::memory_order_relaxed); }
  uint64_t Sum() const;

 private:
  // Statistics with one writer; they pair with nothing.
  std::array<std::atomic<uint64_t>, kObservedIds> counts_{};
};

// A cache line of its own at each end: what a neighbour in memory writes does not slow the worker down.
class alignas(64) WorkerMetrics {
 public:
  // A change of the sampling rate is seen within so many calls of Sample.
  static constexpr uint32_t kSampleStride = 1024;
  // What SamplesOften means.
  static constexpr uint32_t kOften = 64;

  // `sample_every` is the hub's, and lives longer. Types from `timed_types` on share the durations of kOtherTypes.
  WorkerMetrics(const std::atomic<uint32_t>& sample_every, size_t timed_types);
  ~WorkerMetrics();
  WorkerMetrics(const WorkerMetrics&) = delete;
  WorkerMetrics& operator=(const WorkerMetrics&) = delete;

  // So many messages wait for an actor of that id.
  void CountEnqueued(ObservedId id, uint32_t messages = 1) { Increase(CountsOf(id).enqueued, messages); }
  // So many messages have left the mailbox of an actor of that id.
  void CountHandled(ObservedId id, uint32_t messages) { Increase(CountsOf(id).handled, messages); }
  // One more for a counter of the runtime: CounterOf(name), plus the value of its label.
  void Count(size_t counter) {
    assert(counter < kRuntimeCounters);
    Increase(counters_[counter], 1);
  }
  void CountDeadLetter(DeadLetterReason reason) { Count(CounterOf(kDeadLettersTotal) + static_cast<size_t>(reason)); }

  // True once in as many calls as the hub says: never for 0, always for 1. The calls are counted, not drawn by lot: a
  // program runs the same way each time.
  bool Sample() {
    if (--until_look_ != 0) [[likely]]
      return false;
    return LookWhetherToSample();
  }

  // For a caller that does not ask for each message: so many were sent without asking. The next answer may be true from
  // when IsDue is.
  void Skip(uint32_t messages) { until_look_ = until_look_ > messages ? until_look_ - messages : 1; }
  bool IsDue() const { return until_look_ == 1; }
  // Whether messages are sampled so often that a caller should ask for each.
  bool SamplesOften() const { return every_ != 0 && every_ <= kOften; }

  // Of sampled messages only: how long the handler ran, and how long the message had waited.
  void RecordDuration(ObservedId id, int64_t ns) {
    const size_t index = DurationsIndexOf(id);
    DurationHistogram* histogram = durations_[index].load(std::memory_order_relaxed);
    if (histogram == nullptr) [[unlikely]]
      histogram = &MakeDurations(index);
    histogram->Record(ns);
  }
  void RecordLatency(int64_t ns) { latency_.Record(ns); }

  // The worker has come from parking, or goes to park. A worker begins idle. A call that changes nothing does nothing.
  void BeginBusy(int64_t now_ns);
  void EndBusy(int64_t now_ns);

  // How long it has been busy in all, up to `now_ns`.
  int64_t BusyNs(int64_t now_ns) const;

  // Without those that have passed.
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

  // An id of nobody's making counts for somebody else, but stays inside the table.
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

  // Of the worker's thread alone. Calls of Sample until it looks again, and then from there until it is true.
  uint32_t until_look_ = 0;
  uint32_t until_sample_ = 0;
  uint32_t every_ = 0;
  const size_t timed_types_;
  const std::atomic<uint32_t>& sample_every_;

  // Twice (all the time that it was busy), less twice the time when it became busy, plus 1, while it is busy. In one
  // word, so that a reader sees both or neither. It pairs with nothing.
  std::atomic<int64_t> busy_{0};

  // Statistics with one writer; they pair with nothing.
  std::array<std::atomic<uint64_t>, kRuntimeCounters> counters_{};
  DurationHistogram latency_;
  std::array<Counts, kObservedIds> counts_{};
  PassCounts passes_;
  // Stored with release when the histogram has been made; pairs with the load in durations().
  std::array<std::atomic<DurationHistogram*>, kObservedIds> durations_{};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_WORKER_METRICS_H_
