// WorkerWatch: observes the workers of an executor from another thread. It finds actors that wait
// for the end of a slow handler, and handlers that hold a worker too long. WorkerExecutor makes one
// if the toolbox has threads.
//
// - An actor that a handler has sent to is scheduled when the handler ends (outbox.h). If the
//   handler takes longer than `publish_after`, the watch schedules the actor.
// - If a worker has not taken a ready actor for longer than `yield_after`, the watch ends its
//   slice: the turn ends after the current message (TimeSlice in actor_worker.h). So slow messages
//   do not multiply with the budget.
// - If a run of an actor takes longer than `stall_after`, the watch reports it once, with the type
//   of the actor.
//
// All watches of a toolbox share one thread, the patrol. A timer would not do, because workers
// drive timers and all of them may be stuck. The patrol also fires timers that no worker fires in
// time. It looks while there is work, less often while it finds nothing, and sleeps while all
// workers sleep. So it acts at the latest kSlowest after the limit, plus the time that the
// operating system takes to run a thread. On a toolbox without threads a handler cannot delay other
// threads, and there is no watch.
//
// Thread safety: any thread, except where a method says otherwise.
#ifndef FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_WATCH_H_
#define FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_WATCH_H_

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

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {

// A report about an actor that has held a worker for long, and still does.
struct WorkerStall {
  WorkerIndex worker = 0;   // kForeign for a guest: guest_seat.h.
  uint16_t actor_type = 0;  // As in ActorSlot::type. ActorTypes::NameOf returns its name.
  absl::Duration held = absl::ZeroDuration();
};

struct WorkerWatchOptions {
  // How long a handler may delay an actor that it has sent to. From 1 us to 1 s.
  absl::Duration publish_after = absl::Microseconds(100);
  // How long a turn may take before it ends after its current message. From 1 us to 1 h; infinite
  // for no limit.
  absl::Duration yield_after = absl::Milliseconds(1);
  // How long a run may take before it is reported. From 1 ms to 1 h; infinite for no reports.
  absl::Duration stall_after = absl::Milliseconds(500);
  // The patrol calls it. It must not block and must not stop an executor, except by StopSoon. If it
  // throws, stderr gets a line. If it is null, the actor system logs a warning with the type of the
  // actor. Without a system, and for pinned actors, nothing is reported.
  std::function<void(const WorkerStall&)> on_stall = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class WatchPatrol;

class WorkerWatch : public std::enable_shared_from_this<WorkerWatch> {
 public:
  static constexpr absl::Duration kSlowest = absl::Milliseconds(1);
  // The number of looks without any work after which the watch stops looking until there is some.
  static constexpr int kQuietLooks = 8;

  // The workers must live until Stop() returns. The watch does not look before Start.
  WorkerWatch(const WorkerWatchOptions& options, RuntimeToolbox& toolbox, std::vector<ActorWorker*> workers);

  // Call it before the first worker runs. ResourceExhausted if the toolbox has no thread left.
  absl::Status Start();

  // A worker calls it when it begins to work after its sleep.
  void OnAwake() {
    awakenings_.fetch_add(1, std::memory_order_relaxed);
    // Sequentially consistent with the last look of a watch that stops looking.
    active_.fetch_add(1, std::memory_order_seq_cst);
    if (!armed_.load(std::memory_order_seq_cst)) Arm();
  }
  // A worker calls it before it sleeps.
  void OnAsleep() { active_.fetch_sub(1, std::memory_order_seq_cst); }

  // After it returns, the watch uses no worker. A call of on_stall may still be under way.
  void Stop();
  // Waits until no call of on_stall is under way. Call it after Stop, and not within on_stall.
  void AwaitEnd();

  // Returns whether the patrol looks at the workers. False before the first worker begins to work,
  // and after all have slept for a while.
  bool armed() const { return armed_.load(std::memory_order_seq_cst); }
  // Returns the number of looks so far.
  uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  // The numbers of actors that the watch has scheduled, of slices that it has ended, and of stalls
  // that it has found.
  uint64_t published() const { return published_.load(std::memory_order_relaxed); }
  uint64_t ended_slices() const { return ended_slices_.load(std::memory_order_relaxed); }
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }

  // Looks once at all workers. The patrol calls it, and tests.
  void Look(Instant now);

 private:
  // The run of a worker and its deferred actor when the watch saw them for the first time.
  struct Seen {
    const ActorSlot* running = nullptr;
    uint64_t runs = 0;
    Instant since;
    ActorSlot* deferred = nullptr;
    Instant deferred_since;
    bool reported = false;
  };
  // The slice of a worker when the watch saw it for the first time.
  struct SeenSlice {
    uint64_t number = 0;
    Instant since;
    bool ended = false;
  };

  friend class WatchPatrol;

  void Arm();
  // One look of the patrol. Returns the time until the next look; infinite if the watch is not
  // armed any more.
  absl::Duration Tick();
  void LookAtSlice(ActorWorker& worker, SeenSlice& seen, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the worker has a deferred actor. Appends to `stalls`.
  bool LookAt(ActorWorker& worker, Seen& seen, Instant now, std::vector<WorkerStall>& stalls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerWatchOptions options_;
  RuntimeToolbox& toolbox_;
  const std::vector<ActorWorker*> workers_;
  std::shared_ptr<WatchPatrol> patrol_;  // Null before Start.

  // The number of workers that are awake. Sequentially consistent with armed_: a worker adds itself
  // and then reads armed_; the watch clears armed_ and then reads this. At least one of them sees
  // the other.
  alignas(64) std::atomic<int> active_{0};
  std::atomic<bool> armed_{false};
  // Counters. Relaxed: they order nothing.
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

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_DISPATCH_INTERNAL_WORKER_WATCH_H_
