// Which workers sleep and which look for work, so that a thread that makes work knows whether to wake one.
//
//   queue.Push(work);                                              // a thread that makes work; sequentially consistent
//   if (WorkerIndex i = idle.TakeSleeper(); i != kForeign) waker.WakeWorker(i);
//
//   idle.StartSearch(me);                                          // a worker that ran dry
//   if (Work* found = Look()) {
//     if (idle.EndSearch(me)) WakeAnother();                       // there may be more: TakeSleeper as above
//   } else if (idle.BeginWait(me, [&] { return !queue.IsEmptyForParking(); })) {
//     Park();
//     idle.EndWait(me);
//   }
//
// Waking a thread costs the waker some microseconds, so it is done only if a worker sleeps and no worker is searching
// (one that searches will find the work). A worker that finds work after a search wakes the next one if there may be
// more. Nothing is lost: a worker that gives up its search says so, says that it sleeps, and then looks at everything
// once more; these steps, the making of work and the look for sleepers are sequentially consistent, so one of the two
// sees the other.
//
// Thread safety: methods that take a worker's index are called by that worker; TakeSleeper by any thread.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_IDLE_WORKERS_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_IDLE_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

template <typename Atomics = StdAtomics>
class BasicIdleWorkers {
 public:
  explicit BasicIdleWorkers(WorkerIndex workers)
      : worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)) {}

  // The worker looks for work from now on, if it did not already.
  void StartSearch(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.searching) return;
    worker.searching = true;
    searching_.fetch_add(1, std::memory_order_relaxed);
  }

  // The worker has work. True if it was searching: then others relied on it, and it has to wake the next one.
  bool EndSearch(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (!worker.searching) return false;
    worker.searching = false;
    searching_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }

  // The worker found nothing. True if it is to sleep: from now on TakeSleeper may answer it, once. `anything_ready`
  // looks, sequentially consistently, whether there is any work; if there is, the worker does not sleep but searches
  // on.
  template <typename AnythingReady>
  bool BeginWait(WorkerIndex index, AnythingReady anything_ready) {
    EndSearch(index);
    workers_[index].sleeps.store(true, std::memory_order_relaxed);
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    if (!anything_ready()) return true;
    EndWait(index);
    // There may be more than it can see: others relied on its search until a moment ago. So it hands over when it has
    // found something, as after any search.
    StartSearch(index);
    return false;
  }

  // The worker is awake again, for whatever reason.
  void EndWait(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.sleeps.exchange(false, std::memory_order_relaxed)) {
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      // Whoever took this worker has counted it as searching.
      worker.searching = true;
    }
  }

  // For a thread that has made work: a worker that sleeps, which the caller must wake and which counts as searching;
  // kForeign if none does, or if one is searching already.
  WorkerIndex TakeSleeper() {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return kForeign;
    if (searching_.load(std::memory_order_seq_cst) > 0) return kForeign;
    for (WorkerIndex i = 0; i < worker_count_; ++i) {
      Worker& worker = workers_[i];
      // The look spares the others an exchange. It sees whoever sleeping_ has counted.
      if (!worker.sleeps.load(std::memory_order_relaxed)) continue;
      if (!worker.sleeps.exchange(false, std::memory_order_relaxed)) continue;
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
      // In this order: to count a search that does not take place, even for a moment, would keep others from waking. If
      // the worker is awake already and ends its search first, the count is below zero for that moment.
      searching_.fetch_add(1, std::memory_order_relaxed);
      return i;
    }
    return kForeign;
  }

 private:
  struct alignas(64) Worker {
    // Set by the worker before it sleeps, cleared by whoever takes it, or by itself. Relaxed: it decides who of them
    // was first, and orders nothing. A look at it comes after one at sleeping_, which has counted the worker.
    typename Atomics::template Atomic<bool> sleeps{false};
    // Of the worker alone: it is counted in searching_.
    typename Atomics::template Plain<bool> searching{false};
  };

  const WorkerIndex worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  // How many workers sleep, and how many look for work. What makes a thread wake somebody, more sleepers and fewer
  // searchers, and the looks at both are sequentially consistent, and pair in that order with what tells that there is
  // work: see above. The other changes are relaxed: who has not seen one yet wakes a worker in vain, or looks for a
  // sleeper that is none.
  alignas(64) typename Atomics::template Atomic<int32_t> sleeping_{0};
  typename Atomics::template Atomic<int32_t> searching_{0};
};

using IdleWorkers = BasicIdleWorkers<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_IDLE_WORKERS_H_
