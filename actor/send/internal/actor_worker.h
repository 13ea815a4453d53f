// ActorWorker: the state of a thread that runs actors: its current turn, its outbox, and its
// caches.
//
// A thread-local pointer leads to the current worker. So any code can send to a reference, and a
// context, which belongs to an actor and not to a worker, finds the worker that runs the actor.
//
// Called by: the executors (actor/dispatch), which run it, and everything that sends. Thread: the
// thread of the worker, except where a comment says otherwise.
#ifndef FRAKTOR_ACTOR_SEND_INTERNAL_ACTOR_WORKER_H_
#define FRAKTOR_ACTOR_SEND_INTERNAL_ACTOR_WORKER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/mailbox/internal/queue_mailbox.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/run_queue/internal/ready_queue_coordinator.h"
#include "fraktor/actor/send/internal/outbox.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/slot/internal/lifecycle_state.h"
#include "fraktor/actor/slot/internal/promise_slot.h"
#include "fraktor/actor/slot/internal/turn.h"

namespace fraktor::inline v0 {

class RuntimeToolbox;
enum class FailureCause : uint8_t;

namespace actor_internal {

class ActorLifecycle;
class HandlerOwner;
struct TurnState;

// Hears when the handling of a user message has ended: the invoker of a pool with middleware. It
// outlives the actors of the pool.
class HandlerEndListener {
 public:
  // Called once for each message, in the turn of its actor: when the handler has ended, or has
  // stashed or forwarded the message. Returns `status`, which is the result of the handler, or the
  // failure of a middleware.
  virtual absl::Status OnHandlerEnd(TurnState& state, Envelope& message, absl::Status status) = 0;

 protected:
  ~HandlerEndListener() = default;
};

// One turn of one actor: the part of the slot that only the holder uses, copied out of the cache
// line that senders write to.
struct TurnState {
  // Null between two turns. Atomic for WorkerWatch and status texts, which read it on other
  // threads; relaxed, it pairs with nothing.
  std::atomic<ActorSlot*> slot{nullptr};
  uint64_t word = 0;  // The word of references to the actor.
  MailLists lists;
  Envelope* current = nullptr;
  uint16_t failures = 0;
  uint8_t gate = 0;
  bool in_task = false;         // A coroutine of the actor runs.
  bool takes_no_other = false;  // It is exclusive: no other message is handled before it is done.
  bool takes_answer = false;    // The completion of an ask runs: woken handlers resume after it.
  // The cause of the error that the actor's code returns next. The code that sets it returns the
  // error at once, and MessageInvoker::Fail reads it.
  FailureCause cause{};
  uint32_t dropped = 0;    // Messages that left the mailbox in this turn without being handled.
  uint32_t uncounted = 0;  // Messages that scheduled the actor and are not counted yet.
  // The behaviour whose code runs, if it can be replaced before the actor ends. Null if it is the
  // actor's own code.
  HandlerOwner* owner = nullptr;
  // Waits for the end of the handler of `current`; null if nobody does.
  HandlerEndListener* end_listener = nullptr;
  // The state that the lifecycle kept for an actor that ends, for OnEnded.
  std::unique_ptr<LifecycleState> ended_state;
  // The messages in the mailbox, as the status reports of this turn count them. Reset before the
  // first system message of a turn.
  std::optional<uint64_t> waiting;

  // True if a gate must be checked before the next user message.
  bool gated() const { return (failures | gate) != 0; }
  bool suspended() const { return (failures | (gate & kSuspendingGates)) != 0; }
  bool Has(Gate bit) const { return (gate & static_cast<uint8_t>(bit)) != 0; }
  void Set(Gate bit) { gate |= static_cast<uint8_t>(bit); }
  void Clear(Gate bit) { gate &= static_cast<uint8_t>(~static_cast<uint8_t>(bit)); }
  ActorSlot* running() const { return slot.load(std::memory_order_relaxed); }
  [[gnu::always_inline]] ActorRef self() const {
    ActorSlot* const actor = running();
    if (actor == nullptr) [[unlikely]]
      return {};
    return ActorRef(actor, word);
  }
};

// The limits of a worker between two takes from the run queue: messages per turn, and turns. The
// worker begins a slice at each take. WorkerWatch ends a slice that lasts too long: the turn then
// ends after the current message. So no thread reads the clock for each message.
//
// All accesses are relaxed. A watch that is late may end the next slice too early.
class TimeSlice {
 public:
  // Called by the worker.
  void Begin(uint32_t messages, uint32_t streak) {
    messages_.store(messages, std::memory_order_relaxed);
    streak_.store(streak, std::memory_order_relaxed);
    number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Any thread.
  void End() {
    messages_.store(0, std::memory_order_relaxed);
    streak_.store(0, std::memory_order_relaxed);
  }

  // The number of messages that a turn may handle; 0 if the slice is over.
  uint32_t messages() const { return messages_.load(std::memory_order_relaxed); }
  // The number of turns of deferred targets that may follow the turn of the taken actor; 0 if the
  // slice is over.
  uint32_t streak() const { return streak_.load(std::memory_order_relaxed); }
  // The number of the slice.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }

 private:
  // Written by the worker and by the watch. They pair with nothing.
  std::atomic<uint32_t> messages_{0};
  std::atomic<uint32_t> streak_{0};
  // Written by the worker. It pairs with nothing.
  std::atomic<uint64_t> number_{0};
};

// The collaborators of a worker. A null member means that the feature is off.
struct WorkerSetup {
  ReadyQueueCoordinator& coordinator;
  ActorLifecycle& lifecycle;
  WorkerIndex index = 0;
  uint16_t dispatcher = 0;
  RuntimeToolbox* toolbox = nullptr;
  // The pools that new actors take their slots from, and asks their promises.
  ActorSlotPool* slots = nullptr;
  PromiseSlotPool* promises = nullptr;
  WorkerMetrics* metrics = nullptr;
};

class ActorWorker {
 public:
  explicit ActorWorker(const WorkerSetup& setup);
  ~ActorWorker();

  // The worker of this thread, or null.
  static ActorWorker* Current();

  // The turn that the worker is in. Must be called only while the worker runs an actor.
  Turn turn() { return {*this, *turn_state.running()}; }

  // Sends a user message.
  template <class M>
  [[gnu::always_inline]] void Tell(ActorRef to, M&& message) {
    if constexpr (kIsInterceptedMessage<std::decay_t<M>>) {
      SendIntercepted(to, Make(turn_state.self(), std::forward<M>(message)));
    } else if (looks_at_sends_) [[unlikely]] {
      TellObserved(to, std::forward<M>(message));
    } else {
      using Message = std::decay_t<M>;
      // Without an EnvelopePtr: in some programs the compiler would call its destructor, which has
      // nothing to do, for each message.
      Post(to, EnvelopeFactory::Make<Message>(cache(), MessageLayout<Message>::kNodeClass, turn_state.self(), nullptr,
                                              std::forward<M>(message)));
    }
  }

  // The same. ResourceExhausted if the target's mailbox is full and its overflow policy rejects the
  // message; NotFound if the target has ended.
  template <class M>
  absl::Status TryTell(ActorRef to, M&& message) {
    static_assert(!kIsInterceptedMessage<std::decay_t<M>>,
                  "use Tell for a message that the runtime intercepts; TryTell is for messages to actors");
    return TrySend(to, Make(turn_state.self(), std::forward<M>(message)));
  }

  // Sends an envelope that was made on this thread. Takes it over.
  void Send(ActorRef to, Envelope* envelope) { Post(to, envelope); }
  absl::Status TrySend(ActorRef to, Envelope* envelope);
  // The same with the flag kIntercepted (mailing.h): the runtime sees the message before the actor.
  void SendIntercepted(ActorRef to, Envelope* envelope);

  // Makes an envelope. A sampled one carries the time of the send.
  template <class M>
  Envelope* Make(ActorRef sender, M&& message) {
    using Message = std::decay_t<M>;
    if (metrics != nullptr && metrics->Sample()) [[unlikely]] {
      return MakeTracedEnvelope<Message>(cache(), sender, TraceNow(), std::forward<M>(message)).release();
    }
    return MakeEnvelope<Message>(cache(), sender, std::forward<M>(message)).release();
  }

  // Makes a message a dead letter. Takes the envelope over. The target word says which kind of slot
  // `slot` is; null if the message was for no one.
  void DeadLetter(Envelope* envelope, utils_internal::TableSlot* slot, DeadLetterReason reason);

  // Called by the outbox: schedules an actor whose mailbox the caller holds.
  void BecameReady(ActorSlot& slot) { Register(slot, ReadyQueueCoordinator::Placement::kBack); }
  // Called by the outbox: counts messages of Post that wait in the mailbox.
  void CountWaiting(const ActorSlot& slot, uint32_t messages) {
    if (metrics != nullptr) CountWaitingOf(slot, messages);
  }
  // About this many messages were sent without a look at the sampling counter: one of the next may
  // be sampled.
  void CountUnseen(uint32_t messages) {
    if (metrics == nullptr || looks_at_sends_) return;
    metrics->Skip(messages);
    looks_at_sends_ = metrics->IsDue();
  }
  // Schedules an actor whose mailbox the caller holds.
  void Register(ActorSlot& slot, ReadyQueueCoordinator::Placement placement);

  // The node cache of the thread. Only after AdoptThread.
  NodeCache& cache() { return *cache_; }
  bool has_thread() const { return cache_ != nullptr; }
  // The worker runs on the calling thread from now on. Code that passes a worker from one thread to
  // another must order the threads.
  void AdoptThread();

  // Only if the setup has slots.
  ActorSlotPool::Cache& slots() { return *slots_; }
  // Only if the setup has promises.
  PromiseSlotPool::Cache& promises() { return *promises_; }
  // True if the promise belongs to the pool of this worker.
  bool Owns(const PromiseSlot& promise) const;

  ReadyQueueCoordinator& coordinator;
  ActorLifecycle& lifecycle;
  const WorkerIndex index;
  const uint16_t dispatcher;
  RuntimeToolbox* const toolbox;
  WorkerMetrics* const metrics;
  TurnState turn_state;
  TimeSlice slice;
  Outbox<ActorWorker> outbox;

  // Never null. Part of the metrics, if there are any.
  PassCounts* const passes;

  // Counts a turn of an actor of that type, which has handled `handled` messages and was no pass.
  void CountRun(ObservedId type, uint32_t handled) {
    runs_.store(runs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (metrics == nullptr) return;
    metrics->CountEnqueued(type, turn_state.uncounted);
    metrics->CountHandled(type, handled);
  }
  // The number of turns that have ended. Any thread.
  uint64_t runs() const { return runs_.load(std::memory_order_relaxed) + passes->Sum(); }
  // A number that changes after each turn of an actor of that type. Any thread.
  uint64_t RunNumber(ObservedId type) const { return runs_.load(std::memory_order_relaxed) + passes->of(type); }

 private:
  friend class WorkerScope;

  template <class M>
  [[gnu::noinline, gnu::cold]] void TellObserved(ActorRef to, M&& message) {
    Envelope* const envelope = Make(turn_state.self(), std::forward<M>(message));
    looks_at_sends_ = metrics->SamplesOften() || metrics->IsDue();
    Post(to, envelope);
  }

  [[gnu::always_inline]] void Post(ActorRef to, Envelope* envelope) {
    utils_internal::TableSlot* const slot = to.any_slot();
    envelope->set_target_word(to.word());
    // One comparison checks both: a word with flags is no generation, and a word without flags is
    // that of an actor.
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

  // True if Tell must check whether to sample the next message. Mostly false.
  bool looks_at_sends_;
  std::atomic<uint64_t> runs_{0};  // Turns, without the passes. It pairs with nothing.
  const std::unique_ptr<PassCounts> own_passes_;
  ActorSlotPool* const pool_;
  PromiseSlotPool* const promise_pool_;
  NodeCache* cache_ = nullptr;
  std::unique_ptr<ActorSlotPool::Cache> slots_;
  std::unique_ptr<PromiseSlotPool::Cache> promises_;
};

// While it lives, `worker` is the current worker of this thread. With nullptr the thread has none:
// it sends as a foreign thread does and does not touch the outbox of its worker.
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

// The error of TryTell for a target that is no one or has ended.
[[gnu::cold]] absl::Status HasNoRecipient(const Envelope& message, ActorRef to);

inline ActorWorker* ActorWorker::Current() { return actor_worker_internal::current; }

inline TurnState& Turn::state() const { return worker.turn_state; }

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SEND_INTERNAL_ACTOR_WORKER_H_
