// GuestSeat: a place in a pool of workers for threads that are none of them, such as those that bring messages from other
// nodes.
//
//   {
//     GuestStay stay(seat);                            // if the seat is free, and workers of the pool sleep
//     SendForeign(to, std::move(message));             // an actor of the pool that becomes ready is kept,
//   }                                                  // and run here
//
// To wake a worker takes longer than to handle most messages, so the thread that has one runs its actor. It does so as a
// worker would: one actor at a time, with the budget of the pool, and what the actor has sent to an idle one comes next.
// After `runs_per_step` runs, or with an actor that has used its budget, the pool goes on: so a guest does not stay,
// whatever actors do. There is one seat, so a handler that blocks has at most one thread that is not a worker's; such a
// handler is reported as on any worker (worker_watch.h).
//
// The pool's end waits for the guest, and it is not quiet while there is one. A seat may outlive its pool: then nobody
// gets it.
//
// Thread safety: GuestSeat from any thread; a GuestStay belongs to the thread that has made it.
#ifndef FRAKTOR_ACTOR_DISPATCH_GUEST_SEAT_H_
#define FRAKTOR_ACTOR_DISPATCH_GUEST_SEAT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"

#include "fraktor/actor/send/ready_keeper.h"
#include "fraktor/actor/slot/actor_slot.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

// Whose seat it is: a WorkerExecutor. Called by the thread that has the seat, and not after Close.
class GuestHost {
 public:
  // Whether a worker sleeps, which would have to be woken.
  virtual bool HasSleepers() const = 0;
  // Runs actors whose mailboxes the caller holds, or hands them over to the workers.
  virtual void RunAsGuest(absl::Span<ActorSlot* const> actors) = 0;
  // The seat is about to be free.
  virtual void OnGuestLeaves() = 0;

 protected:
  ~GuestHost() = default;
};

class GuestSeat {
 public:
  // `dispatcher` is the number of the host, whose actors a guest may run. The host calls Close before it ends.
  GuestSeat(GuestHost& host, uint16_t dispatcher) : dispatcher_(dispatcher), host_(&host) {}
  GuestSeat(const GuestSeat&) = delete;
  GuestSeat& operator=(const GuestSeat&) = delete;

  // Waits for the guest to leave, and lets nobody in any more. Not by the guest.
  void Close();

  // Whether there is a guest. Who sees that it has left sees what it has made ready.
  bool is_taken() const { return is_taken_.load(std::memory_order_seq_cst); }

 private:
  friend class GuestStay;

  // True: this thread has the seat until it calls Leave.
  bool TryTake() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Run(absl::Span<ActorSlot* const> actors) ABSL_NO_THREAD_SAFETY_ANALYSIS { host_->RunAsGuest(actors); }
  void Leave() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const uint16_t dispatcher_;
  // Held by the guest for its whole stay: others only try, except for Close.
  Mutex mutex_;
  GuestHost* host_ ABSL_GUARDED_BY(mutex_);
  // For those that must not wait. Sequentially consistent with what tells whether the workers sleep.
  std::atomic<bool> is_taken_{false};
};

class GuestStay final : private ReadyKeeper {
 public:
  // So many actors are kept; further ones go to the workers.
  static constexpr size_t kMostKept = 16;

  // The seat may be null. Nothing is kept by a worker, nor during another stay of the thread.
  explicit GuestStay(std::shared_ptr<GuestSeat> seat);
  // Runs the actors that were kept.
  ~GuestStay();
  GuestStay(const GuestStay&) = delete;
  GuestStay& operator=(const GuestStay&) = delete;

  // Whether it has got the seat.
  bool is_guest() const { return is_guest_; }

 private:
  bool Keep(ActorSlot& slot) override;

  const std::shared_ptr<GuestSeat> seat_;
  const bool is_guest_;
  size_t count_ = 0;
  std::array<ActorSlot*, kMostKept> kept_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_GUEST_SEAT_H_
