// What a thread needs to run actors: the turn that it is in, its outbox, its caches. One per worker.
//
// The current worker is found through a thread-local pointer, so that a reference can be told something anywhere, and a
// context, which stays with its actor while the actor moves between workers, finds the worker that it is on.
#ifndef FRAKTOR_ACTOR_SCHEDULER_ACTOR_WORKER_H_
#define FRAKTOR_ACTOR_SCHEDULER_ACTOR_WORKER_H_

#include <cstdint>

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/node_pool.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/scheduler/actor_slot.h"
#include "fraktor/actor/scheduler/outbox.h"
#include "fraktor/actor/scheduler/ready_queue_coordinator.h"

namespace fraktor::inline v0 {

class ActorLifecycle;

// One run of one actor: the holder's part of the slot, taken out of the cache line that senders write to.
struct Turn {
  ActorSlot* slot = nullptr;
  uint32_t generation = 0;
  EnvelopeList user;
  Envelope* system = nullptr;
  Envelope* current = nullptr;
  uint16_t failures = 0;
  uint8_t gate = 0;

  bool gated() const { return (failures | gate) != 0; }
  ActorRef self() const { return slot == nullptr ? ActorRef() : ActorRef(slot, generation); }
};

class ActorWorker {
 public:
  ActorWorker(ReadyQueueCoordinator& ready_queue, WorkerIndex worker_index, uint16_t dispatcher_number,
              ActorLifecycle& actor_lifecycle);

  // The worker that this thread is, or null.
  static ActorWorker* Current();

  // Sends a user message that was made on this thread.
  void Send(ActorRef to, Envelope* envelope) {
    ActorSlot* const slot = to.slot();
    envelope->set_target_word(to.word());
    if (slot == nullptr || to.word() > UINT32_MAX || !slot->IsAt(to.generation())) [[unlikely]] {
      SendElsewhere(to, envelope);
      return;
    }
    outbox.Send(*slot, envelope);
  }

  // For the outbox.
  void BecameReady(ActorSlot& slot, bool next);

  // The thread's own cache of nodes, once the worker has a thread.
  NodeCache& cache() { return *cache_; }
  bool has_cache() const { return cache_ != nullptr; }
  void AdoptThread() { cache_ = &NodeCache::OfThisThread(); }

  ReadyQueueCoordinator& coordinator;
  ActorLifecycle& lifecycle;
  const WorkerIndex index;
  const uint16_t dispatcher;
  Turn turn;
  Outbox<ActorWorker> outbox;

 private:
  friend class WorkerScope;

  void SendElsewhere(ActorRef to, Envelope* envelope);

  NodeCache* cache_ = nullptr;
};

// Makes a worker the current one of this thread for as long as it lives.
class WorkerScope {
 public:
  explicit WorkerScope(ActorWorker& worker);
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

#endif  // FRAKTOR_ACTOR_SCHEDULER_ACTOR_WORKER_H_
