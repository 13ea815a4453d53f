// RuntimeToolbox: where the runtime gets time, threads and chance from.
//
//   void Heartbeat(RuntimeToolbox& toolbox, Peer& peer) {
//     toolbox.SchedulePeriodic({.period = absl::Seconds(1)}, [&peer] { peer.SendHeartbeat(); }).value();
//   }
//
// Nothing else reads a clock, starts a thread or draws a seed, so that the same code runs on
// - StdToolbox: threads and the real clock;
// - LocalToolbox: one thread that the caller pumps, virtual time;
// - SimToolbox: one thread, virtual time, and every choice made by a seeded generator, so that a run repeats exactly.
//
// Timers
// - Never early. Fixed-rate timers make one firing out of the periods that they missed and say how many.
// - Firings of one toolbox never overlap and come in order of deadline (rounded up to the toolbox's resolution) and,
//   within that, of arming. They run on a worker, or on the pumping thread: a task must be short, must not throw and
//   must not block; it posts, wakes or sends.
// - CancelTimer answers true exactly once, and only if the task has not begun: then it never runs. A periodic timer
//   that is just running on another thread runs to its end. With threads a task may begin before the call that armed it
//   has returned the id.
// - The task is destroyed after it ran or was cancelled; tasks that are pending when the toolbox ends are destroyed and
//   do not run.
//
// Thread safety: each toolbox says. The toolbox must outlive every call to it; ids and worker handles may outlive it.
#ifndef FRAKTOR_UTILS_TOOLBOX_RUNTIME_TOOLBOX_H_
#define FRAKTOR_UTILS_TOOLBOX_RUNTIME_TOOLBOX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/random.h"
#include "fraktor/utils/toolbox/worker.h"

namespace fraktor::inline v0 {

// What a timer's task may want to know.
struct TimerFiring {
  TimerId id;
  Instant deadline;      // as it was asked for; of the first period that fires here
  uint64_t periods = 1;  // more than one if a fixed-rate timer missed some
};

using TimerTask = absl::AnyInvocable<void(const TimerFiring&)>;

struct PeriodicOptions {
  absl::Duration period = absl::ZeroDuration();  // must be positive
  // Until the first firing; a period if not given.
  std::optional<absl::Duration> initial_delay = std::nullopt;
  Cadence cadence = Cadence::kFixedRate;
};

class RuntimeToolbox {
 public:
  virtual ~RuntimeToolbox() = default;

  // The monotonic clock. Reading the real one takes some 22 ns: not once per message.
  virtual Instant Now() const = 0;

  // The date, which may jump. Virtual where time is virtual.
  virtual absl::Time WallNow() const = 0;

  // The date to some milliseconds, for what is stamped in great numbers: it costs less than WallNow, and is not ahead.
  virtual absl::Time WallNowRoughly() const { return WallNow(); }

  // Arms a timer. The task is called with nothing, or with a const TimerFiring&. A deadline in the past is due at once;
  // no task ever runs inside the call that arms it. ResourceExhausted if the toolbox's max_timers are pending,
  // FailedPrecondition if the toolbox is being destroyed.
  template <typename Task>
  absl::StatusOr<TimerId> ScheduleAt(Instant deadline, Task&& task) {
    return Arm(deadline, AsTimerTask(std::forward<Task>(task)));
  }
  template <typename Task>
  absl::StatusOr<TimerId> ScheduleAfter(absl::Duration delay, Task&& task) {
    return Arm(Now() + delay, AsTimerTask(std::forward<Task>(task)));
  }

  // Arms a timer that fires until it is cancelled. Also InvalidArgument if the period is not positive.
  template <typename Task>
  absl::StatusOr<TimerId> SchedulePeriodic(const PeriodicOptions& options, Task&& task) {
    return ArmPeriodic(FirstDeadline(options), options.period, options.cadence, AsTimerTask(std::forward<Task>(task)));
  }

  virtual bool CancelTimer(TimerId id) = 0;

  // Fires the timers that are due, unless another thread is about it. For threads that look after workers that may be
  // stuck; a toolbox without threads does nothing here.
  virtual void FireDueTimers() {}

  // Starts a worker, which is awake. InvalidArgument for bad options and for CPUs that the process
  // may not use, PermissionDenied for a nice value that it may not set, ResourceExhausted if there
  // are too many workers or the system gives no thread, FailedPrecondition if the toolbox is being
  // destroyed. The worker is destroyed, unused, in these cases.
  virtual absl::StatusOr<WorkerHandle> StartWorker(const WorkerOptions& options, std::unique_ptr<Worker> worker) = 0;

  // Whether workers run by themselves. Otherwise nothing happens while a caller waits, so it must not.
  virtual bool has_threads() const = 0;

  // For schedulers: whether this toolbox makes the choices of the schedule, and one of them: 0 to n - 1. Those that do
  // not always say 0.
  virtual bool chooses() const { return false; }
  virtual uint64_t Choose(uint64_t /*n*/) { return 0; }

  // A generator for one purpose. The same toolbox seed and stream give the same numbers; each owner takes a stream of
  // its own.
  Random MakeRandom(uint64_t stream) const { return random_.Fork(stream); }

  // Seeds everything random in this toolbox.
  uint64_t seed() const { return random_.seed(); }

 protected:
  explicit RuntimeToolbox(uint64_t seed) : random_(seed) {}

  virtual absl::StatusOr<TimerId> Arm(Instant deadline, TimerTask task) = 0;
  virtual absl::StatusOr<TimerId> ArmPeriodic(Instant first, absl::Duration period, Cadence cadence,
                                              TimerTask task) = 0;

 private:
  template <typename Task>
  static TimerTask AsTimerTask(Task&& task) {
    if constexpr (std::is_invocable_v<std::decay_t<Task>&, const TimerFiring&>) {
      return TimerTask(std::forward<Task>(task));
    } else {
      return [wrapped = std::forward<Task>(task)](const TimerFiring&) mutable { wrapped(); };
    }
  }

  Instant FirstDeadline(const PeriodicOptions& options) const;

  const Random random_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_RUNTIME_TOOLBOX_H_
