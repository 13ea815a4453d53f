// IdleWorkers: the workers that sleep and those that search for work. A thread that queues work
// learns here whether it must wake a worker. BasicStealingQueues uses it.
//
// A thread that queues work pushes it (sequentially consistent), calls TakeSleeper, and wakes the
// worker that it gets. A worker whose queues are empty calls StartSearch and looks at the queues of
// others. If it finds work, it calls EndSearch; if that returns true, it wakes another worker as
// above, because there may be more. If it finds none, it calls BeginWait; if that returns true, it
// parks, and calls EndWait when it is awake.
//
// To wake a thread costs some microseconds. So a thread wakes a worker only if one sleeps and none
// searches: a worker that searches will find the work. No wake-up is lost. A worker that ends its
// search first counts itself as sleeping and then looks at all queues once more. Both steps, the
// push and the look for sleepers are sequentially consistent, so at least one side sees the other.
//
// Thread safety: a worker calls the methods that take its index. Any thread calls TakeSleeper.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_IDLE_WORKERS_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_IDLE_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::actor_internal {

template <typename Atomics = utils_internal::StdAtomics>
class BasicIdleWorkers {
 public:
  explicit BasicIdleWorkers(WorkerIndex workers)
      : worker_count_(workers), workers_(std::make_unique<Worker[]>(workers)) {}

  // Counts the worker as searching, unless it is counted already.
  void StartSearch(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.searching) return;
    worker.searching = true;
    searching_.fetch_add(1, std::memory_order_relaxed);
  }

  // The worker has found work. Returns true if it was searching. Other threads relied on its search
  // then, and it must wake the next worker.
  bool EndSearch(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (!worker.searching) return false;
    worker.searching = false;
    searching_.fetch_sub(1, std::memory_order_seq_cst);
    return true;
  }

  // The worker has found nothing. Returns true if it must sleep: from now on TakeSleeper may return
  // it, once. `anything_ready` returns whether there is any work, by sequentially consistent loads.
  // If there is, the worker does not sleep and continues its search.
  template <typename AnythingReady>
  bool BeginWait(WorkerIndex index, AnythingReady anything_ready) {
    EndSearch(index);
    workers_[index].sleeps.store(true, std::memory_order_relaxed);
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    if (!anything_ready()) return true;
    EndWait(index);
    // Other threads relied on its search until now, so there may be more work than it sees. It
    // wakes the next worker when it has found something, as after any search.
    StartSearch(index);
    return false;
  }

  // The worker is awake again: it was woken, or its wait ended by itself.
  void EndWait(WorkerIndex index) {
    Worker& worker = workers_[index];
    if (worker.sleeps.exchange(false, std::memory_order_relaxed)) {
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      // The thread that took this worker has counted it as searching.
      worker.searching = true;
    }
  }

  // Returns a worker that sleeps and counts it as searching; the caller, which has queued work,
  // must wake it. Returns kForeign if no worker sleeps, or if one is searching already.
  WorkerIndex TakeSleeper() {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return kForeign;
    if (searching_.load(std::memory_order_seq_cst) > 0) return kForeign;
    for (WorkerIndex i = 0; i < worker_count_; ++i) {
      Worker& worker = workers_[i];
      // The load avoids an exchange on awake workers. It sees every worker that sleeping_ counts.
      if (!worker.sleeps.load(std::memory_order_relaxed)) continue;
      if (!worker.sleeps.exchange(false, std::memory_order_relaxed)) continue;
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
      // After the exchange, not before: a search that is counted but does not take place would keep
      // other threads from waking a worker. If the worker is awake already and ends its search
      // first, the count is negative until this addition.
      searching_.fetch_add(1, std::memory_order_relaxed);
      return i;
    }
    return kForeign;
  }

 private:
  struct alignas(64) Worker {
    // The worker sets it before it sleeps. The thread that takes the worker, or the worker itself,
    // clears it. Relaxed: the exchange only decides which of the two is first. Every load follows a
    // load of sleeping_, which counts the worker.
    typename Atomics::template Atomic<bool> sleeps{false};
    // Whether searching_ counts the worker. Only the worker uses it.
    typename Atomics::template Plain<bool> searching{false};
  };

  const WorkerIndex worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  // The numbers of workers that sleep and that search. Sequentially consistent where they let a
  // thread wake a worker: when there are more sleepers or fewer searchers. These changes and the
  // loads of both pair with the push of work and the look at the queues; see the top. The other
  // changes are relaxed: a thread that has not seen one yet wakes a worker in vain, or finds no
  // sleeper.
  alignas(64) typename Atomics::template Atomic<int32_t> sleeping_{0};
  typename Atomics::template Atomic<int32_t> searching_{0};
};

using IdleWorkers = BasicIdleWorkers<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_IDLE_WORKERS_H_
