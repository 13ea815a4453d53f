// The bare mechanism of message passing: a queue, a pool and a worker loop, and nothing else. It is the limit that the
// product is measured against, not something to build on.
//
//   void Echo(Actor& self, const Message& message, Port& port) { port.Send(*self.peer, message.value); }
//
//   BareRuntime runtime(/*workers=*/2);
//   Port port(runtime);                                     // this thread's way in
//   Actor& b = port.Spawn(&Echo);
//   port.Send(b, 42);
//
// What is left out, and what a runtime pays for: typed payloads, senders, stale references, supervision, suspension,
// system messages, exceptions, counters. Sends of a handler are chained per target until the handler ends or turns to
// another target, so a handler must not wait for what it has just sent. An actor that stops must have no other senders.
//
// An actor is touched by one thread at a time; a Port belongs to one thread. Nodes and actors come from pools of the
// process, so a runtime starts warm when another one ran before it.
#ifndef FRAKTOR_BENCHMARKS_LIMIT_BARE_RUNTIME_H_
#define FRAKTOR_BENCHMARKS_LIMIT_BARE_RUNTIME_H_

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "fraktor/utils/sync/mutex.h"

namespace fraktor::limit {

inline constexpr size_t kCacheLine = 64;

// Tells the processor that this thread waits in a loop.
inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// One message: a cache line, like the product's envelope. With -DFRAKTOR_LIMIT_NODE_BYTES=32 half of one: that is less
// memory to go through where many messages wait, and README.md says what it brings.
#ifndef FRAKTOR_LIMIT_NODE_BYTES
#define FRAKTOR_LIMIT_NODE_BYTES 64
#endif
struct alignas(FRAKTOR_LIMIT_NODE_BYTES) Message {
  std::atomic<Message*> next;  // store-release by the producer that follows in the queue, load-acquire by the consumer
  int64_t value;
  uint32_t kind;
};
static_assert(sizeof(Message) == FRAKTOR_LIMIT_NODE_BYTES);

class Port;
class Worker;
struct Actor;
using Handler = void (*)(Actor& self, const Message& message, Port& port);

struct alignas(kCacheLine) Actor {
  // The queue's last message, or Idle(): the exchange that appends a message also says who must schedule the actor.
  // Pairs: exchange by producers, compare-exchange back to Idle() by the consumer, both acquire-release.
  std::atomic<Message*> tail;
  Message* head;  // the next message to handle; belongs to whoever runs or schedules the actor
  Handler handler;
  Actor* next;  // link in a pool or in a shared queue
  Actor* peer;  // the rest is the handler's
  int64_t count;
  int64_t sum;
  bool stopped;

  static Message* Idle() { return reinterpret_cast<Message*>(uintptr_t{1}); }
};
static_assert(sizeof(Actor) == kCacheLine);

inline Message* Link(const Message& message) { return message.next.load(std::memory_order_relaxed); }
inline void SetLink(Message& message, Message* next) { message.next.store(next, std::memory_order_relaxed); }
inline Actor* Link(const Actor& actor) { return actor.next; }
inline void SetLink(Actor& actor, Actor* next) { actor.next = next; }

// One thread's stock of T. Whole batches are traded with the process-wide depot, so a consumer's freed objects go back
// to the producers with one lock per kBatch objects.
template <typename T>
class Stock {
 public:
  Stock() = default;
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  // What is left goes to the depot, in batches of any size.
  ~Stock() {
    if (current_ != nullptr) depot().Put({current_, size_});
    if (spare_ != nullptr) depot().Put({spare_, kBatch});
  }

  T& Take() {
    if (current_ == nullptr) [[unlikely]]
      Refill();
    T& object = *current_;
    current_ = Link(object);
    --size_;
    return object;
  }

  void Give(T& object) {
    if (size_ == kBatch) [[unlikely]] {
      if (spare_ != nullptr) depot().Put({spare_, kBatch});
      spare_ = std::exchange(current_, nullptr);
      size_ = 0;
    }
    SetLink(object, current_);
    current_ = &object;
    ++size_;
  }

 private:
  static constexpr uint32_t kBatch = 256;

  struct Batch {
    T* first;
    uint32_t size;
  };

  class Depot {
   public:
    void Put(Batch batch) {
      MutexLock lock(mutex_);
      batches_.push_back(batch);
    }

    Batch Get() {
      T* raw;
      {
        MutexLock lock(mutex_);
        if (!batches_.empty()) {
          const Batch batch = batches_.back();
          batches_.pop_back();
          return batch;
        }
        raw = Carve();
      }
      // The first touch of fresh memory waits for the kernel to clear it: not under the lock.
      for (uint32_t i = 0; i < kBatch; ++i) SetLink(*new (&raw[i]) T, i + 1 < kBatch ? &raw[i + 1] : nullptr);
      return {raw, kBatch};
    }

   private:
    // Fresh memory comes in huge pages: an ordinary page fault per 64 messages would cost more than sending them.
    T* Carve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (fresh_ == 0) {
        chunk_ = static_cast<T*>(std::aligned_alloc(kChunkBytes, kChunkBytes));
        if (chunk_ == nullptr) std::abort();
        madvise(chunk_, kChunkBytes, MADV_HUGEPAGE);
        fresh_ = kChunkBytes / sizeof(T);
      }
      fresh_ -= kBatch;
      return std::exchange(chunk_, chunk_ + kBatch);
    }

    static constexpr size_t kChunkBytes = size_t{2} << 20;
    static_assert(kChunkBytes / sizeof(T) % kBatch == 0);

    Mutex mutex_;
    std::vector<Batch> batches_ ABSL_GUARDED_BY(mutex_);
    T* chunk_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the rest of the newest chunk; chunks are never freed
    size_t fresh_ ABSL_GUARDED_BY(mutex_) = 0;    // how many objects it has room for
  };

  static Depot& depot() {
    static Depot* const depot = new Depot;  // lives as long as the process, like the references into it
    return *depot;
  }

  void Refill() {
    if (spare_ != nullptr) {
      current_ = std::exchange(spare_, nullptr);
      size_ = kBatch;
      return;
    }
    const Batch batch = depot().Get();
    current_ = batch.first;
    size_ = batch.size;
  }

  T* current_ = nullptr;
  uint32_t size_ = 0;
  T* spare_ = nullptr;  // nothing, or a full batch
};

// Ready actors under a lock, for those who have no ring or whose ring is full. Bounded by the number of actors.
class SharedQueue {
 public:
  void Push(Actor& actor) {
    MutexLock lock(mutex_);
    actor.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &actor;
    last_ = &actor;
    size_.fetch_add(1, std::memory_order_seq_cst);
  }

  Actor* Pop() {
    if (size_.load(std::memory_order_seq_cst) == 0) return nullptr;
    MutexLock lock(mutex_);
    Actor* const actor = first_;
    if (actor == nullptr) return nullptr;
    first_ = actor->next;
    if (first_ == nullptr) last_ = nullptr;
    size_.fetch_sub(1, std::memory_order_seq_cst);
    return actor;
  }

 private:
  Mutex mutex_;
  Actor* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Actor* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Changed under the lock, read without it. Sequentially consistent with BareRuntime::sleepers_: either the sleeper's
  // last look sees the actor or the pusher sees the sleeper.
  alignas(kCacheLine) std::atomic<int64_t> size_{0};
};

// A worker's ready actors: its owner pushes, anybody pops, first in first out.
class ReadyRing {
 public:
  // False when full. Only the owner calls it.
  bool TryPush(Actor& actor) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) >= kCapacity) return false;
    actors_[tail % kCapacity].store(&actor, std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_seq_cst);
    return true;
  }

  Actor* Pop() {
    uint32_t head = head_.load(std::memory_order_acquire);
    while (head != tail_.load(std::memory_order_seq_cst)) {
      Actor* const actor = actors_[head % kCapacity].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return actor;
      }
    }
    return nullptr;
  }

  uint32_t size() const { return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t kCapacity = 8192;  // trees of actors grow wide, and what overflows meets a lock

  alignas(kCacheLine) std::atomic<uint32_t> head_{0};  // the compare-exchange in Pop claims a place; pairs with TryPush
  // Store in TryPush, load in Pop. Sequentially consistent with BareRuntime::sleepers_, as SharedQueue::size_.
  alignas(kCacheLine) std::atomic<uint32_t> tail_{0};
  // Ordered by head_ and tail_; a value that was overwritten meanwhile is thrown away because head_ has moved.
  std::array<std::atomic<Actor*>, kCapacity> actors_{};
};

// The workers and what they share.
class BareRuntime {
 public:
  explicit BareRuntime(int workers);
  ~BareRuntime();  // no actor may have messages left

  BareRuntime(const BareRuntime&) = delete;
  BareRuntime& operator=(const BareRuntime&) = delete;

  // Waits until every worker sleeps.
  void AwaitIdle() const {
    while (sleepers_.load(std::memory_order_acquire) != static_cast<int>(workers_.size())) sched_yield();
  }

 private:
  friend class Port;
  friend class Worker;

  // Called after an actor was made ready where others can take it. A wake-up is a system call that costs as much as
  // hundreds of messages, so nobody is woken while somebody already looks for work.
  void WakeOne();

  SharedQueue injected_;  // by foreign threads; every run looks at it
  SharedQueue overflow_;  // by workers whose ring was full; they look when it is empty
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;
  // Both sequentially consistent with the ready queues: who pushes looks here afterwards; who goes to sleep changes
  // these first and then looks at the queues once more.
  alignas(kCacheLine) std::atomic<int> sleepers_{0};
  std::atomic<int> searchers_{0};
  std::atomic<bool> stopping_{false};  // release in the destructor, acquire in the worker loop
};

// A thread's way to spawn and send. Handlers get their worker's; a foreign thread makes its own.
class Port {
 public:
  explicit Port(BareRuntime& runtime) : runtime_(runtime) {}

  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  Actor& Spawn(Handler handler, Actor* peer = nullptr, int64_t count = 0, int64_t sum = 0) {
    Actor& actor = actors_.Take();
    actor.tail.store(Actor::Idle(), std::memory_order_relaxed);
    actor.head = nullptr;
    actor.handler = handler;
    actor.peer = peer;
    actor.count = count;
    actor.sum = sum;
    actor.stopped = false;
    return actor;
  }

  // Gives back an idle actor that nobody will send to.
  void Retire(Actor& actor) { actors_.Give(actor); }

  void Send(Actor& target, int64_t value, uint32_t kind = 0) {
    Message& message = messages_.Take();
    message.value = value;
    message.kind = kind;
    SetLink(message, nullptr);
    if (!in_handler_) {
      Append(target, message, message, Then::kMoreWork);
      return;
    }
    if (chain_target_ == &target && chain_length_ < kMaxChain) {
      SetLink(*chain_last_, &message);
      chain_last_ = &message;
      ++chain_length_;
      return;
    }
    Flush(Then::kMoreWork);
    chain_target_ = &target;
    chain_first_ = chain_last_ = &message;
    chain_length_ = 1;
  }

 protected:
  // What the sender does after making an actor ready: go on with other work, or leave the worker to that actor.
  enum class Then { kMoreWork, kNothing };

  Port(BareRuntime& runtime, Worker* worker) : runtime_(runtime), worker_(worker) {}

  void Flush(Then then) {
    if (chain_target_ == nullptr) return;
    Append(*std::exchange(chain_target_, nullptr), *chain_first_, *chain_last_, then);
  }

  BareRuntime& runtime_;
  Stock<Message> messages_;
  Stock<Actor> actors_;
  bool in_handler_ = false;

 private:
  static constexpr int kMaxChain = 64;

  void Append(Actor& target, Message& first, Message& last, Then then) {
    Message* const previous = target.tail.exchange(&last, std::memory_order_acq_rel);
    if (previous != Actor::Idle()) {
      previous->next.store(&first, std::memory_order_release);
      return;
    }
    target.head = &first;
    MakeReady(target, then);
  }

  void MakeReady(Actor& actor, Then then);

  Worker* const worker_ = nullptr;  // null for a foreign thread
  Actor* chain_target_ = nullptr;
  Message* chain_first_ = nullptr;
  Message* chain_last_ = nullptr;
  int chain_length_ = 0;
};

class alignas(kCacheLine) Worker final : public Port {
 public:
  Worker(BareRuntime& runtime, size_t index) : Port(runtime, this), index_(index) {}

  void Loop() {
    while (!runtime_.stopping_.load(std::memory_order_acquire)) {
      Actor* actor = Next();
      if (actor == nullptr) actor = Search();
      if (actor != nullptr) Run(*actor);
    }
  }

  // Leaves `actor` where another worker may take it, and sees to it that one looks.
  void Offer(Actor& actor) {
    Enqueue(actor);
    runtime_.WakeOne();
  }

  // Makes `actor` the next to run here; the one that was is offered.
  void KeepWarm(Actor& actor) {
    Actor* const previous = std::exchange(warm_, &actor);
    if (previous != nullptr) Offer(*previous);
  }

  // True if the worker slept and is now on its way.
  bool Wake() {
    int asleep = 1;
    if (asleep_.load(std::memory_order_relaxed) == 0 || !asleep_.compare_exchange_strong(asleep, 0)) return false;
    runtime_.searchers_.fetch_add(1);
    runtime_.sleepers_.fetch_sub(1);
    syscall(SYS_futex, &asleep_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }

 private:
  static constexpr int kBudget = 64;      // messages of one actor before others get their turn
  static constexpr int kWarmStreak = 32;  // runs from the warm slot before the ring gets its turn
  static constexpr uint32_t kMaxSteal = 256;
  static constexpr int kSearchRounds = 200;
  static constexpr int kLinkSpins = 100;

  void Run(Actor& actor) {
    in_handler_ = true;
    Message* message = actor.head;
    for (int budget = kBudget;;) {
      Message* next = message->next.load(std::memory_order_acquire);
      actor.handler(actor, *message, *this);
      Flush(next != nullptr ? Then::kMoreWork : Then::kNothing);
      if (actor.stopped) [[unlikely]] {
        Reap(actor, *message);
        break;
      }
      if (next == nullptr) next = NextUnlessIdle(actor, *message);
      messages_.Give(*message);
      if (next == nullptr) break;
      message = next;
      if (--budget == 0) {
        actor.head = message;
        Offer(actor);
        break;
      }
    }
    in_handler_ = false;
  }

  void Enqueue(Actor& actor) {
    if (!ring_.TryPush(actor)) runtime_.overflow_.Push(actor);
  }

  // The message after `last`; null when there is none and the actor is now idle: then it may already run elsewhere.
  Message* NextUnlessIdle(Actor& actor, Message& last) {
    Message* next = last.next.load(std::memory_order_acquire);
    if (next != nullptr) return next;
    Message* expected = &last;
    if (actor.tail.load(std::memory_order_relaxed) == &last &&
        actor.tail.compare_exchange_strong(expected, Actor::Idle(), std::memory_order_acq_rel)) {
      return nullptr;
    }
    // A producer is between its exchange and its link; if it was preempted there, it needs a processor.
    for (int spins = 0; (next = last.next.load(std::memory_order_acquire)) == nullptr; ++spins) {
      if (spins < kLinkSpins) {
        Relax();
      } else {
        sched_yield();
      }
    }
    return next;
  }

  void Reap(Actor& actor, Message& first) {
    for (Message* message = &first; message != nullptr;) {
      Message* const next = message->next.load(std::memory_order_acquire);
      messages_.Give(*message);
      message = next;
    }
    Retire(actor);
  }

  // What this worker has itself. Foreign threads come first, one at a time, or busy actors would starve them.
  Actor* Next() {
    if (Actor* const actor = runtime_.injected_.Pop()) return actor;
    if (warm_ != nullptr) {
      Actor* const actor = std::exchange(warm_, nullptr);
      if (streak_++ < kWarmStreak) return actor;
      Enqueue(*actor);  // nobody is woken: this worker goes on at once
    }
    streak_ = 0;
    if (Actor* const actor = ring_.Pop()) return actor;
    return runtime_.overflow_.Pop();
  }

  // One of another worker's actors; half of what is left there moves over, within reason.
  Actor* Steal() {
    const size_t count = runtime_.workers_.size();
    for (size_t i = 1; i < count; ++i) {
      ReadyRing& victim = runtime_.workers_[(index_ + i) % count]->ring_;
      Actor* const actor = victim.Pop();
      if (actor == nullptr) continue;
      for (uint32_t more = std::min(victim.size() / 2, kMaxSteal); more > 0; --more) {
        Actor* const another = victim.Pop();
        if (another == nullptr) break;
        Enqueue(*another);
      }
      return actor;
    }
    if (Actor* const actor = runtime_.injected_.Pop()) return actor;
    return runtime_.overflow_.Pop();
  }

  // Looks for work, sleeps when there is none. Null only when the runtime stops.
  Actor* Search() {
    runtime_.searchers_.fetch_add(1);
    for (;;) {
      for (int round = 0; round < kSearchRounds; ++round) {
        if (Actor* const actor = Steal()) return EndSearch(actor);
        Relax();
      }
      asleep_.store(1);
      runtime_.sleepers_.fetch_add(1);
      runtime_.searchers_.fetch_sub(1);
      Actor* const actor = Steal();  // what was pushed before anybody could see this worker sleep
      if (actor != nullptr || runtime_.stopping_.load(std::memory_order_seq_cst)) {
        int asleep = 1;
        if (!asleep_.compare_exchange_strong(asleep, 0)) return EndSearch(actor);  // Wake() has made it a searcher
        runtime_.sleepers_.fetch_sub(1);
        return actor;
      }
      while (asleep_.load() == 1) syscall(SYS_futex, &asleep_, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
      if (runtime_.stopping_.load(std::memory_order_acquire)) return EndSearch(nullptr);
    }
  }

  // The last searcher to find something wakes the next: pushers relied on it.
  Actor* EndSearch(Actor* actor) {
    if (runtime_.searchers_.fetch_sub(1) == 1 && actor != nullptr) runtime_.WakeOne();
    return actor;
  }

  const size_t index_;
  Actor* warm_ = nullptr;
  int streak_ = 0;
  ReadyRing ring_;
  alignas(kCacheLine) std::atomic<int> asleep_{0};  // 1 from going to sleep until Wake() or the sleeper takes it back
};

inline void Port::MakeReady(Actor& actor, Then then) {
  if (worker_ == nullptr) {
    runtime_.injected_.Push(actor);
    runtime_.WakeOne();
  } else if (then == Then::kMoreWork) {
    worker_->Offer(actor);
  } else {
    worker_->KeepWarm(actor);
  }
}

inline void BareRuntime::WakeOne() {
  if (sleepers_.load() == 0 || searchers_.load() != 0) return;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->Wake()) return;
  }
}

inline BareRuntime::BareRuntime(int workers) {
  for (int i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>(*this, i));
  for (const std::unique_ptr<Worker>& worker : workers_) threads_.emplace_back([&worker] { worker->Loop(); });
}

inline BareRuntime::~BareRuntime() {
  stopping_.store(true);
  for (const std::unique_ptr<Worker>& worker : workers_) worker->Wake();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace fraktor::limit

#endif  // FRAKTOR_BENCHMARKS_LIMIT_BARE_RUNTIME_H_
