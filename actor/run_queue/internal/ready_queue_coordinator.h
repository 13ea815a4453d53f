// ReadyQueueCoordinator: the run queue of a dispatcher, with the actors that are ready and the
// workers that wait for one.
//
// A sender whose message makes an idle mailbox busy calls RegisterReady. A worker (WorkerExecutor)
// calls DrainReady, runs the actor, and registers it again if it yielded. When there is nothing to
// drain, the worker calls BeginWait; if that returns true, it parks, and calls EndWait when it is
// awake.
//
// There are two implementations: WorkStealingCoordinator, the default, and MutexCoordinator, a list
// under a lock, which can let a simulation choose the next actor.
//
// Thread safety: the thread that holds an actor's mailbox (utils/queue/internal/inbox.h) registers
// the actor, so two threads never register it at once. To register it again while it is registered
// changes nothing. A worker calls the methods that take its index; other threads pass kForeign. No
// method allocates.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_READY_QUEUE_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_READY_QUEUE_COORDINATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/utils/queue/internal/atomics.h"

namespace fraktor::inline v0::actor_internal {

// The number of a worker within its pool.
using WorkerIndex = uint32_t;
// A thread that is no worker of the pool.
inline constexpr WorkerIndex kForeign = UINT32_MAX;
// More workers than this are refused.
inline constexpr WorkerIndex kMaxWorkers = 1024;

template <typename Atomics>
class BasicReadyMembership;

// The part of an actor that a run queue sees. A template over its atomics for the model checker.
template <typename Atomics = utils_internal::StdAtomics>
class BasicReadyNode {
 public:
  BasicReadyNode() = default;
  BasicReadyNode(const BasicReadyNode&) = delete;
  BasicReadyNode& operator=(const BasicReadyNode&) = delete;

  // Returns whether the actor is in a run queue. The result may be out of date at once, unless the
  // caller holds the mailbox.
  bool IsRegistered() const { return is_queued_.load(std::memory_order_relaxed); }

  // Marks the node as that of an actor which has not run yet. The caller holds the mailbox.
  void MarkAsNew() { has_run_ = false; }

 protected:
  ~BasicReadyNode() = default;

 private:
  friend class BasicReadyMembership<Atomics>;

  // The next node of the queue that this node is in.
  typename Atomics::template Plain<BasicReadyNode*> next_{nullptr};
  // Relaxed. Only the holder of the mailbox writes it, and the transfer of the mailbox orders the
  // writes of two holders.
  typename Atomics::template Atomic<bool> is_queued_{false};
  // A worker has taken the actor from a queue since the last MarkAsNew. Only the holder of the
  // mailbox reads and writes it.
  typename Atomics::template Plain<bool> has_run_{false};
};

using ReadyNode = BasicReadyNode<>;

// Wakes a worker for which BeginWait returned true. Any thread calls it. It must not call the
// coordinator.
class WorkerWaker {
 public:
  virtual ~WorkerWaker() = default;
  virtual void WakeWorker(WorkerIndex worker) = 0;
};

class ReadyQueueCoordinator {
 public:
  enum class Placement : uint8_t {
    kBack,   // Behind all ready actors.
    kNext,   // The worker runs it next, unless an older foreign actor waits: its mailbox is in the
             // cache. For a worker that is about to end its step.
    kYield,  // As kBack, for an actor that the worker has just run. No worker is woken for it.
  };

  virtual ~ReadyQueueCoordinator() = default;

  // Queues an actor, and wakes a worker if one waits and none is searching. Returns false if the
  // actor is queued already.
  virtual bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) = 0;

  // Removes up to `out.size()` actors from the queue, puts them into `out` and returns their
  // number.
  virtual size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) = 0;

  // For a worker that could run an actor next without queueing it. Returns whether it must queue
  // that actor and drain instead, because others have waited longer. Cheap: workers call it before
  // each run.
  bool WantsDrain() const { return waiting_->load(std::memory_order_relaxed) != 0; }

  // Returns false if a worker may run an actor next without queueing it, because no other actor
  // waits for this worker. The worker itself calls this, after many runs in a row. A coordinator
  // that chooses the next actor each time returns true.
  virtual bool HasReady(WorkerIndex) const { return true; }

  // For a worker that drained nothing. Returns true if the worker must wait: it will be woken,
  // once, when an actor is ready. Returns false if an actor is ready now.
  virtual bool BeginWait(WorkerIndex worker) = 0;

  // The worker is awake after BeginWait returned true: it was woken, or its wait ended by itself.
  virtual void EndWait(WorkerIndex worker) = 0;

  // Returns the approximate number of ready actors, for metrics. It is exact while nothing changes.
  virtual size_t ReadyCountHint() const = 0;

 protected:
  // Call it in the constructor. `waiting` counts the actors that go before one that a worker could
  // run next without queueing it. Without this call, all ready actors go before it. `waiting` must
  // live as long as the coordinator.
  void SetWaiting(const std::atomic<size_t>& waiting) { waiting_ = &waiting; }

 private:
  inline static const std::atomic<size_t> kAlwaysWaiting{1};

  // Relaxed: a hint.
  const std::atomic<size_t>* waiting_ = &kAlwaysWaiting;
};

// The functions by which coordinators use a ReadyNode.
template <typename Atomics = utils_internal::StdAtomics>
class BasicReadyMembership {
 public:
  using Node = BasicReadyNode<Atomics>;

  // The holder of the mailbox calls this, and puts the node into a queue if it returns true.
  // Returns false if the node is in a queue already.
  static bool Enter(Node& node) {
    if (node.IsRegistered()) return false;
    node.is_queued_.store(true, std::memory_order_relaxed);
    return true;
  }

  // The worker that has taken the node out of its queue calls this.
  static void Leave(Node& node) {
    node.is_queued_.store(false, std::memory_order_relaxed);
    node.has_run_ = true;
  }

  // True if a worker has taken the actor out of a queue before. The holder of the mailbox calls
  // this.
  static bool HasRun(const Node& node) { return node.has_run_; }

  static Node* next(const Node& node) { return node.next_; }
  static void set_next(Node& node, Node* next) { node.next_ = next; }
};

using ReadyMembership = BasicReadyMembership<>;

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_INTERNAL_READY_QUEUE_COORDINATOR_H_
