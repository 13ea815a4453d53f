// What a thread needs to run actors: the turn that it is in, its outbox, its caches. One per worker.
//
// The current worker is found through a thread-local pointer, so that a reference can be told something anywhere, and a
// context, which stays with its actor while the actor moves between workers, finds the worker that it is on.
#ifndef FRAKTOR_ACTOR_SEND_ACTOR_WORKER_H_
#define FRAKTOR_ACTOR_SEND_ACTOR_WORKER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/mailbox/queue_mailbox.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/node_pool.h"
#include "fraktor/actor/observe/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/ready_queue_coordinator.h"
#include "fraktor/actor/send/outbox.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/actor/slot/lifecycle_state.h"
#include "fraktor/actor/slot/promise_slot.h"

namespace fraktor::inline v0 {

class ActorLifecycle;
class HandlerOwner;
class RuntimeToolbox;
enum class FailureCause : uint8_t;

// One run of one actor: the holder's part of the slot, taken out of the cache line that senders write to.
struct Turn {
  // Null between two runs. Atomic for WorkerWatch only, which looks what kind of actor it is; relaxed.
  std::atomic<ActorSlot*> slot{nullptr};
  uint64_t word = 0;  // Of the actor's references.
  MailLists lists;
  Envelope* current = nullptr;
  uint16_t failures = 0;
  uint8_t gate = 0;
  bool in_task = false;         // A coroutine of the actor runs,
  bool takes_no_other = false;  // and no other message is handled before it is done.
  bool takes_answer = false;    // An answer, or its absence, is being given to who waits for it in this turn.
  // How the actor fails with the error that its code returns now. Whoever sets it returns that
  // error at once; MessageInvoker::Fail takes it.
  FailureCause cause{};
  uint32_t dropped = 0;    // Messages that left the mailbox in this run without being handled.
  uint32_t uncounted = 0;  // Messages that made the actor ready and that nobody has counted.
  // Whose code runs, if that can end before the actor does: a behaviour. Null if it is the actor's own code.
  HandlerOwner* owner = nullptr;
  // Of an actor that ends: what the lifecycle kept of it, for OnEnded.
  std::unique_ptr<LifecycleState> ended_state;

  // Whether there is anything to heed before the next user message.
  bool gated() const { return (failures | gate) != 0; }
  bool suspended() const { return (failures | (gate & kSuspendingGates)) != 0; }
  bool Has(Gate bit) const { return (gate & static_cast<uint8_t>(bit)) != 0; }
  void Set(Gate bit) { gate |= static_cast<uint8_t>(bit); }
  void Clear(Gate bit) { gate &= static_cast<uint8_t>(~static_cast<uint8_t>(bit)); }
  ActorSlot* running() const { return slot.load(std::memory_order_relaxed); }
  ActorRef self() const { return running() == nullptr ? ActorRef() : ActorRef(running(), word); }
};

// The limits of a worker between two takes from the ready queue: messages per turn, and turns. The
// worker begins a slice at each take. WorkerWatch ends a slice that lasts too long: then the turn
// ends after the message that it is at. So nobody has to read the clock for each message.
//
// All are relaxed. A watch that is late may end the next slice, which then ends early.
class TimeSlice {
 public:
  // By the worker.
  void Begin(uint32_t messages, uint32_t streak) {
    messages_.store(messages, std::memory_order_relaxed);
    streak_.store(streak, std::memory_order_relaxed);
    number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // By any thread.
  void End() {
    messages_.store(0, std::memory_order_relaxed);
    streak_.store(0, std::memory_order_relaxed);
  }

  // How many messages a turn may have; 0 if the slice is over.
  uint32_t messages() const { return messages_.load(std::memory_order_relaxed); }
  // How many turns of actors that were scheduled meanwhile may follow that of the taken actor; 0 if
  // the slice is over.
  uint32_t streak() const { return streak_.load(std::memory_order_relaxed); }
  // Another one for each slice.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }

 private:
  // Written by the worker, or by the watch.
  std::atomic<uint32_t> messages_{0};
  std::atomic<uint32_t> streak_{0};
  // Written by the worker.
  std::atomic<uint64_t> number_{0};
};

// Whom a worker works for. What is null is not there.
struct WorkerSetup {
  ReadyQueueCoordinator& coordinator;
  ActorLifecycle& lifecycle;
  WorkerIndex index = 0;
  uint16_t dispatcher = 0;
  RuntimeToolbox* toolbox = nullptr;
  // Where new actors get their slots, and asks their promises.
  ActorSlotPool* slots = nullptr;
  PromiseSlotPool* promises = nullptr;
  WorkerMetrics* metrics = nullptr;
};

class ActorWorker {
 public:
  explicit ActorWorker(const WorkerSetup& setup);
  ~ActorWorker();

  // The worker that this thread is, or null.
  static ActorWorker* Current();

  // Sends a user message.
  template <class M>
  [[gnu::always_inline]] void Tell(ActorRef to, M&& message) {
    if constexpr (kIsInterceptedMessage<std::decay_t<M>>) {
      SendMarked(to, Make(turn.self(), std::forward<M>(message)));
    } else if (looks_at_sends_) [[unlikely]] {
      TellObserved(to, std::forward<M>(message));
    } else {
      using Message = std::decay_t<M>;
      // Not by an EnvelopePtr, whose destructor, which has nothing to do, some programs would call for each message.
      Post(to, EnvelopeFactory::Make<Message>(cache(), MessageLayout<Message>::kNodeClass, turn.self(), nullptr,
                                              std::forward<M>(message)));
    }
  }

  // The same; ResourceExhausted if the target's mailbox is full and says so.
  template <class M>
  absl::Status TryTell(ActorRef to, M&& message) {
    static_assert(!kIsInterceptedMessage<std::decay_t<M>>, "messages to the actor system are told, not tried");
    return TrySend(to, Make(turn.self(), std::forward<M>(message)));
  }

  // An envelope that was made on this thread. Takes it over.
  void Send(ActorRef to, Envelope* envelope) { Post(to, envelope); }
  absl::Status TrySend(ActorRef to, Envelope* envelope);
  // With a mark: the lifecycle looks at it first.
  void SendMarked(ActorRef to, Envelope* envelope);

  // Makes an envelope, now and then one that carries the time.
  template <class M>
  Envelope* Make(ActorRef sender, M&& message) {
    using Message = std::decay_t<M>;
    if (metrics != nullptr && metrics->Sample()) [[unlikely]] {
      return MakeTracedEnvelope<Message>(cache(), sender, TraceNow(), std::forward<M>(message)).release();
    }
    return MakeEnvelope<Message>(cache(), sender, std::forward<M>(message)).release();
  }

  // Takes the envelope over, whose target word says which kind of slot `slot` is; null if it was for no one.
  void DeadLetter(Envelope* envelope, TableSlot* slot, DeadLetterReason reason);

  // For the outbox: the mailbox of `slot` is held by the caller.
  void BecameReady(ActorSlot& slot) { Register(slot, ReadyQueueCoordinator::Placement::kBack); }
  // Also for the outbox: messages of Post that have to wait.
  void CountWaiting(const ActorSlot& slot, uint32_t messages) {
    if (metrics != nullptr) CountWaitingOf(slot, messages);
  }
  // So many messages were sent, or nearly so, that Tell has not looked at: one of the next may be sampled.
  void CountUnseen(uint32_t messages) {
    if (metrics == nullptr || looks_at_sends_) return;
    metrics->Skip(messages);
    looks_at_sends_ = metrics->IsDue();
  }
  void Register(ActorSlot& slot, ReadyQueueCoordinator::Placement placement);

  // The thread's own cache of nodes, once the worker has a thread.
  NodeCache& cache() { return *cache_; }
  bool has_thread() const { return cache_ != nullptr; }
  // The worker runs on the calling thread from now on. Whoever passes a worker from one thread to another sees to it that
  // the threads take turns.
  void AdoptThread();

  // Only if the setup has slots.
  ActorSlotPool::Cache& slots() { return *slots_; }
  // Only if the setup has promises.
  PromiseSlotPool::Cache& promises() { return *promises_; }
  // Whether a promise is of the same pool.
  bool Owns(const PromiseSlot& promise) const;

  ReadyQueueCoordinator& coordinator;
  ActorLifecycle& lifecycle;
  const WorkerIndex index;
  const uint16_t dispatcher;
  RuntimeToolbox* const toolbox;
  WorkerMetrics* const metrics;
  Turn turn;
  TimeSlice slice;
  Outbox<ActorWorker> outbox;

  // Never null. Of the metrics, if there are any.
  PassCounts* const passes;

  // A run has ended that has handled so many messages of an actor of that type, and was no pass.
  void CountRun(ObservedId type, uint32_t handled) {
    runs_.store(runs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (metrics == nullptr) return;
    metrics->CountEnqueued(type, turn.uncounted);
    metrics->CountHandled(type, handled);
  }
  // How many runs have ended. For anybody.
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed) + passes->Sum(); }
  // Another number after each run of an actor of that type.
  uint64_t RunNumber(ObservedId type) const { return runs_.load(std::memory_order_relaxed) + passes->of(type); }

 private:
  friend class WorkerScope;

  template <class M>
  [[gnu::noinline, gnu::cold]] void TellObserved(ActorRef to, M&& message) {
    Envelope* const envelope = Make(turn.self(), std::forward<M>(message));
    looks_at_sends_ = metrics->SamplesOften() || metrics->IsDue();
    Post(to, envelope);
  }

  [[gnu::always_inline]] void Post(ActorRef to, Envelope* envelope) {
    TableSlot* const slot = to.any_slot();
    envelope->set_target_word(to.word());
    // One comparison for both: a word with flags is no generation. One without is that of an actor.
    if (slot == nullptr || slot->generation() != to.word()) [[unlikely]] {
      SendElsewhereOrDrop(to, envelope);
      return;
    }
    outbox.Send(static_cast<ActorSlot&>(*slot), envelope);
  }

  void CountWaitingOf(const ActorSlot& slot, uint32_t messages);
  absl::Status SendElsewhere(ActorRef to, Envelope* envelope);
  void SendElsewhereOrDrop(ActorRef to, Envelope* envelope);
  MessageTrace TraceNow() const;

  // Whether the next message of Tell may be one to sample. Most are not looked at.
  bool looks_at_sends_;
  std::atomic<uint64_t> runs_{0};  // Without the passes. It pairs with nothing.
  const std::unique_ptr<PassCounts> own_passes_;
  ActorSlotPool* const pool_;
  PromiseSlotPool* const promise_pool_;
  NodeCache* cache_ = nullptr;
  std::unique_ptr<ActorSlotPool::Cache> slots_;
  std::unique_ptr<PromiseSlotPool::Cache> promises_;
};

// Makes a worker the current one of this thread for as long as it lives; or none, so that the thread sends as a foreign
// one does and leaves the outbox of its worker alone.
class WorkerScope {
 public:
  explicit WorkerScope(ActorWorker& worker);
  explicit WorkerScope(std::nullptr_t);
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

 private:
  ActorWorker* const outer_;
};

namespace actor_worker_internal {
extern constinit thread_local ActorWorker* current __attribute__((tls_model("initial-exec")));
}  // namespace actor_worker_internal

inline ActorWorker* ActorWorker::Current() { return actor_worker_internal::current; }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_ACTOR_WORKER_H_
