// Looks after the workers of an executor from outside: for actors that a slow handler keeps from running, and for
// handlers that hold a worker too long.
//
// - A handler that has sent to an idle actor and goes on for longer than `publish_after` keeps that actor waiting,
//   since it is made ready when the handler ends (outbox.h). Then the watch makes it ready.
// - A worker that has not taken a ready actor for longer than `yield_after` is to take one: the
//   turn that it is in ends after the message that it is at (TimeSlice in actor_worker.h). So
//   messages that take long do not multiply with the budget.
// - A run of an actor that takes longer than `stall_after` is reported, once, with the type of the actor.
//
// All watches of a toolbox share one thread, the patrol: a timer would have to be driven by one of the workers, and
// they are the ones that may be stuck, all of them. It also fires timers that no worker comes to. It looks while there
// is work, slows down as long as it finds nothing, and sleeps while all workers do. How soon it acts is therefore
// between the limit and the limit plus kSlowest plus what the system takes to run a thread. On a toolbox without
// threads nobody waits for anybody inside of a handler, and there is no watch.
#ifndef FRAKTOR_ACTOR_DISPATCH_WORKER_WATCH_H_
#define FRAKTOR_ACTOR_DISPATCH_WORKER_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/actor/send/actor_worker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// An actor has held a worker for long, and still does.
struct WorkerStall {
  WorkerIndex worker = 0;   // kForeign for a guest: guest_seat.h.
  uint16_t actor_type = 0;  // As in ActorSlot::type. ActorTree::TypeName says its name.
  absl::Duration held = absl::ZeroDuration();
};

struct WorkerWatchOptions {
  // From 1 us to 1 s.
  absl::Duration publish_after = absl::Microseconds(100);
  // From 1 us to 1 h; infinite for never.
  absl::Duration yield_after = absl::Milliseconds(1);
  // From 1 ms to 1 h; infinite for never.
  absl::Duration stall_after = absl::Milliseconds(500);
  // Called by the patrol, which must not be kept: what is called neither waits nor stops an executor (StopSoon it may).
  // Null: the actor system logs a warning that names the type; without a system, and for pinned actors, nobody is told.
  std::function<void(const WorkerStall&)> on_stall = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class WatchPatrol;

class WorkerWatch : public std::enable_shared_from_this<WorkerWatch> {
 public:
  static constexpr absl::Duration kSlowest = absl::Milliseconds(1);
  // So many looks without any work, and it stops until there is some.
  static constexpr int kQuietLooks = 8;

  // The workers must outlive Stop(). It does not look before Start.
  WorkerWatch(const WorkerWatchOptions& options, RuntimeToolbox& toolbox, std::vector<ActorWorker*> workers);

  // Before the first worker runs. ResourceExhausted if the toolbox has no thread left.
  absl::Status Start();

  // By a worker that begins to work, after it has slept.
  void OnAwake() {
    awakenings_.fetch_add(1, std::memory_order_relaxed);
    // Sequentially consistent with the last look of a watch that stops.
    active_.fetch_add(1, std::memory_order_seq_cst);
    if (!armed_.load(std::memory_order_seq_cst)) Arm();
  }
  // By a worker that goes to sleep.
  void OnAsleep() { active_.fetch_sub(1, std::memory_order_seq_cst); }

  // From the return of this on it touches no worker. A call of on_stall may be under way.
  void Stop();
  // After Stop, and not within on_stall: from the return of this on on_stall is not called.
  void AwaitEnd();

  // Whether it looks now and then. False before the first worker has begun to work, and when all have slept for a
  // while.
  bool armed() const { return armed_.load(std::memory_order_seq_cst); }
  // How often it has looked.
  uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  // How many actors it has scheduled, how many slices it has ended, and how many stalls it has
  // seen.
  uint64_t published() const { return published_.load(std::memory_order_relaxed); }
  uint64_t ended_slices() const { return ended_slices_.load(std::memory_order_relaxed); }
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }

  // One look, as the patrol takes it; for tests.
  void Look(Instant now);

 private:
  // What was seen of a worker the last time that it was in another run, or had put off another actor.
  struct Seen {
    const ActorSlot* running = nullptr;
    uint64_t runs = 0;
    Instant since;
    ActorSlot* deferred = nullptr;
    Instant deferred_since;
    bool reported = false;
  };
  // The slice in which a worker was seen, the first time.
  struct SeenSlice {
    uint64_t number = 0;
    Instant since;
    bool ended = false;
  };

  friend class WatchPatrol;

  void Arm();
  // A look of the patrol. How long until the next; infinite if it is not armed any more.
  absl::Duration Tick();
  void LookAtSlice(ActorWorker& worker, SeenSlice& seen, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether there was something to see. Adds to `stalls`.
  bool LookAt(ActorWorker& worker, Seen& seen, Instant now, std::vector<WorkerStall>& stalls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerWatchOptions options_;
  RuntimeToolbox& toolbox_;
  const std::vector<ActorWorker*> workers_;
  std::shared_ptr<WatchPatrol> patrol_;  // Null before Start.

  // How many workers are awake. A worker adds itself and then looks at `armed_`; the watch says that it is not armed
  // and then looks here: one of them sees the other.
  alignas(64) std::atomic<int> active_{0};
  std::atomic<bool> armed_{false};
  // Counts; relaxed.
  std::atomic<uint64_t> awakenings_{0};
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> ended_slices_{0};
  std::atomic<uint64_t> stalls_{0};
  std::atomic<uint64_t> looks_{0};

  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Seen> seen_ ABSL_GUARDED_BY(mutex_);
  std::vector<SeenSlice> seen_slices_ ABSL_GUARDED_BY(mutex_);
  absl::Duration delay_ ABSL_GUARDED_BY(mutex_);
  int quiet_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_awakenings_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_WORKER_WATCH_H_
