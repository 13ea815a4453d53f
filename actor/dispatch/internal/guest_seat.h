// GuestSeat: lets a thread that is no worker of a pool, the guest, run actors of the pool. Remoting
// uses it for the threads that bring messages from other nodes.
//
// The thread makes a GuestStay, sends messages, and destroys the stay. If the seat is free and
// workers of the pool sleep, the stay keeps the actors that these messages schedule, and its
// destructor runs them. Otherwise the workers run them as usual.
//
// To wake a worker takes longer than to handle most messages, so the thread that has the message
// runs the actor. It does so as a worker: one actor at a time, with the budget of the pool, and an
// idle actor to which the first one has sent comes next. After `runs_per_step` runs, and for an
// actor that has used up its budget, the workers take over, so a guest does not stay for long.
// There is one seat, so handlers that block hold at most one thread that is not a worker's. The
// watch reports such a handler as on any worker (worker_watch.h).
//
// The end of the pool waits for the guest, and the pool is not quiet while there is one. A seat may
// outlive its pool; it takes no guest then.
//
// Thread safety: any thread may use a GuestSeat. A GuestStay belongs to the thread that made it.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_GUEST_SEAT_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_GUEST_SEAT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"

#include "fraktor/actor/send/internal/ready_keeper.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0::actor_internal {

// The owner of a seat: a WorkerExecutor. The guest calls it, and not after Close.
class GuestHost {
 public:
  // Returns whether a worker sleeps and would have to be woken.
  virtual bool HasSleepers() const = 0;
  // Runs actors whose mailboxes the caller holds, or queues them for the workers.
  virtual void RunAsGuest(absl::Span<ActorSlot* const> actors) = 0;
  // The seat is about to be free.
  virtual void OnGuestLeaves() = 0;

 protected:
  ~GuestHost() = default;
};

class GuestSeat {
 public:
  // `dispatcher` is the number of the host. A guest runs only actors of that dispatcher. The host
  // calls Close before it ends.
  GuestSeat(GuestHost& host, uint16_t dispatcher) : dispatcher_(dispatcher), host_(&host) {}
  GuestSeat(const GuestSeat&) = delete;
  GuestSeat& operator=(const GuestSeat&) = delete;

  // Waits until the guest has left, and takes no further guest. The guest must not call it.
  void Close();

  // Returns whether there is a guest. A thread that sees that the guest has left sees the actors
  // that the guest has queued.
  bool is_taken() const { return is_taken_.load(std::memory_order_seq_cst); }

 private:
  friend class GuestStay;

  // Returns true if this thread has the seat now, until it calls Leave.
  bool TryTake() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Run(absl::Span<ActorSlot* const> actors) ABSL_NO_THREAD_SAFETY_ANALYSIS { host_->RunAsGuest(actors); }
  void Leave() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const uint16_t dispatcher_;
  // The guest holds it for its whole stay. Other threads only try to lock it, except Close.
  Mutex mutex_;
  GuestHost* host_ ABSL_GUARDED_BY(mutex_);
  // For threads that must not wait for the mutex. Sequentially consistent with the number of
  // sleeping workers (WorkerExecutor::asleep_).
  std::atomic<bool> is_taken_{false};
};

class GuestStay final : private ReadyKeeper {
 public:
  // The largest number of actors that a stay keeps. Further ones go to the workers.
  static constexpr size_t kMostKept = 16;

  // The seat may be null. A worker, and a thread that has another stay, do not become a guest.
  explicit GuestStay(std::shared_ptr<GuestSeat> seat);
  // Runs the actors that were kept.
  ~GuestStay();
  GuestStay(const GuestStay&) = delete;
  GuestStay& operator=(const GuestStay&) = delete;

  // Returns whether the thread is the guest.
  bool is_guest() const { return is_guest_; }

 private:
  bool Keep(ActorSlot& slot) override;

  const std::shared_ptr<GuestSeat> seat_;
  const bool is_guest_;
  size_t count_ = 0;
  std::array<ActorSlot*, kMostKept> kept_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_GUEST_SEAT_H_
