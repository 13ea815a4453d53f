// The set of actors that are ready to run, and the workers that wait for one.
//
//   coordinator.RegisterReady(worker, node, Placement::kBack);     // a mailbox was idle and got a message
//
//   ReadyNode* batch[1];                                           // a worker
//   while (coordinator.DrainReady(worker, batch) == 1) {
//     if (Run(*batch[0]) == InvokeResult::kYielded) {
//       coordinator.RegisterReady(worker, *batch[0], Placement::kYield);
//     }
//   }
//   if (coordinator.BeginWait(worker)) { Park(); coordinator.EndWait(worker); }
//
// There are two: MutexCoordinator, a list under a lock, which is simple enough to be the reference and can let a
// simulation choose who is next; and WorkStealingCoordinator, the default.
//
// Who may call what. An actor is registered by whoever holds its mailbox (see utils/queue/inbox.h): so never by two
// threads at once. To register it again while it is registered changes nothing. Methods that take a worker's index are
// called by the thread that is that worker, or with kForeign by any other. Nothing allocates.
#ifndef FRAKTOR_ACTOR_RUN_QUEUE_READY_QUEUE_COORDINATOR_H_
#define FRAKTOR_ACTOR_RUN_QUEUE_READY_QUEUE_COORDINATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "fraktor/utils/queue/atomics.h"

namespace fraktor::inline v0 {

// The number of a worker within its pool.
using WorkerIndex = uint32_t;
// A thread that is no worker of the pool.
inline constexpr WorkerIndex kForeign = UINT32_MAX;
// More workers than this are refused.
inline constexpr WorkerIndex kMaxWorkers = 1024;

template <typename Atomics>
class BasicReadyMembership;

// What is registered: the part of an actor that a ready queue sees. A template over its atomics for the model checker.
template <typename Atomics = StdAtomics>
class BasicReadyNode {
 public:
  BasicReadyNode() = default;
  BasicReadyNode(const BasicReadyNode&) = delete;
  BasicReadyNode& operator=(const BasicReadyNode&) = delete;

  // Whether it is in a ready queue: what was true a moment ago, unless the caller holds the mailbox.
  bool IsRegistered() const { return is_queued_.load(std::memory_order_relaxed); }

 protected:
  ~BasicReadyNode() = default;

 private:
  friend class BasicReadyMembership<Atomics>;

  // The next in a list; meaningful to the queue that the node is in.
  typename Atomics::template Plain<BasicReadyNode*> next_{nullptr};
  // Relaxed. Only the holder of the mailbox writes it, and the hand-over of the mailbox orders what
  // two holders do.
  typename Atomics::template Atomic<bool> is_queued_{false};
};

using ReadyNode = BasicReadyNode<>;

// Wakes a worker that said that it waits. Called by any thread; must not call the coordinator back.
class WorkerWaker {
 public:
  virtual ~WorkerWaker() = default;
  virtual void WakeWorker(WorkerIndex worker) = 0;
};

class ReadyQueueCoordinator {
 public:
  enum class Placement : uint8_t {
    kBack,   // Behind those that are ready.
    kNext,   // The worker runs it next, if the worker has nothing better: it is warm. For a worker that is about to
             // end its run.
    kYield,  // As kBack, for an actor that the worker itself had: it is nothing new, and nobody is woken for it.
  };

  virtual ~ReadyQueueCoordinator() = default;

  // Puts an actor among the ready ones, and wakes a worker if one waits and nobody is looking for work. False if it
  // was there already.
  virtual bool RegisterReady(WorkerIndex worker, ReadyNode& node, Placement placement) = 0;

  // Takes up to `out.size()` ready actors out, puts them into `out` and answers how many.
  virtual size_t DrainReady(WorkerIndex worker, absl::Span<ReadyNode*> out) = 0;

  // For a worker that has an actor of its own to run, which was never registered: whether it should register that one
  // and drain instead, because somebody has waited longer. Cheap: workers ask before each run.
  bool WantsDrain() const { return waiting_->load(std::memory_order_relaxed) != 0; }

  // For a worker that drained nothing: from now on it will be woken, once, when something is ready. False if something
  // is ready now; then it does not wait.
  virtual bool BeginWait(WorkerIndex worker) = 0;

  // The worker is awake, for whatever reason, after BeginWait answered true.
  virtual void EndWait(WorkerIndex worker) = 0;

  // How many are ready, more or less: exact only while nothing happens. For metrics.
  virtual size_t ReadyCountHint() const = 0;

 protected:
  // In the constructor: `waiting` counts those that have waited longer than an actor that a worker has at hand. Without
  // it all have. It must live as long as the coordinator.
  void SetWaiting(const std::atomic<size_t>& waiting) { waiting_ = &waiting; }

 private:
  inline static const std::atomic<size_t> kAlwaysWaiting{1};

  // Relaxed: a hint.
  const std::atomic<size_t>* waiting_ = &kAlwaysWaiting;
};

// How the coordinators use a ReadyNode.
template <typename Atomics = StdAtomics>
class BasicReadyMembership {
 public:
  using Node = BasicReadyNode<Atomics>;

  // The holder of the mailbox calls this, and puts the node into a queue if the answer is true. False
  // if the node is in a queue already.
  static bool Enter(Node& node) {
    if (node.IsRegistered()) return false;
    node.is_queued_.store(true, std::memory_order_relaxed);
    return true;
  }

  // The worker that has taken the node out of its queue calls this.
  static void Leave(Node& node) { node.is_queued_.store(false, std::memory_order_relaxed); }

  static Node* next(const Node& node) { return node.next_; }
  static void set_next(Node& node, Node* next) { node.next_ = next; }
};

using ReadyMembership = BasicReadyMembership<>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_RUN_QUEUE_READY_QUEUE_COORDINATOR_H_
