// RuntimeToolbox: gives the runtime its clock, timers, threads and random numbers.
//
//   void Heartbeat(RuntimeToolbox& toolbox, Peer& peer) {
//     toolbox.SchedulePeriodic({.period = absl::Seconds(1)}, [&peer] { peer.SendHeartbeat(); }).value();
//   }
//
// No other code reads a clock, starts a thread or draws a seed. So the same code runs on
// - StdToolbox: threads and the real clock;
// - LocalToolbox: one thread that the caller pumps, and virtual time;
// - SimToolbox: one thread, virtual time, and a seeded generator that makes every choice, so that a
//   run repeats exactly.
//
// Timers
// - A timer is never early. A fixed-rate timer combines the periods that it missed into one firing,
//   which has their number.
// - Firings of one toolbox never overlap. They come in the order of their deadlines (rounded up to
//   the resolution of the toolbox), and timers with equal deadlines in the order of arming. Firings
//   run on a worker or on the pumping thread. So a task must be short, must not throw and must not
//   block: it posts, wakes or sends.
// - CancelTimer returns true exactly once, and only if the task has not begun: then it never runs.
//   A periodic timer that is running on another thread runs to its end. On a toolbox with threads,
//   a task may begin before the call that armed it has returned the id.
// - The task is destroyed after it has run or was cancelled. Tasks that are pending when the
//   toolbox ends are destroyed without running.
//
// Thread safety: each toolbox states its own. The toolbox must outlive every call to it; ids and
// worker handles may outlive it.
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
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

// Passed to the task of a timer.
struct TimerFiring {
  TimerId id;
  Instant deadline;      // as given by the caller; if periodic, the deadline of the first period that fires here
  uint64_t periods = 1;  // more than one if a fixed-rate timer missed periods
};

using TimerTask = absl::AnyInvocable<void(const TimerFiring&)>;

struct PeriodicOptions {
  absl::Duration period = absl::ZeroDuration();  // must be positive
  // The time until the first firing; one period if it is not given.
  std::optional<absl::Duration> initial_delay = std::nullopt;
  Cadence cadence = Cadence::kFixedRate;
};

class RuntimeToolbox {
 public:
  virtual ~RuntimeToolbox() = default;

  // The monotonic clock. Reading the real clock takes about 22 ns, so do not read it for each
  // message.
  virtual Instant Now() const = 0;

  // The date, which may jump. Virtual if the toolbox has virtual time.
  virtual absl::Time WallNow() const = 0;

  // The date with a precision of some milliseconds, for frequent time stamps. Costs less than
  // WallNow, and is never ahead of it.
  virtual absl::Time WallNowRoughly() const { return WallNow(); }

  // Arms a timer. `task` is called without arguments, or with a const TimerFiring&. A deadline in
  // the past is due at once, but no task ever runs inside the call that arms it. Returns
  // ResourceExhausted if max_timers are pending, and FailedPrecondition if the toolbox is being
  // destroyed.
  template <typename Task>
  absl::StatusOr<TimerId> ScheduleAt(Instant deadline, Task&& task) {
    return Arm(deadline, AsTimerTask(std::forward<Task>(task)));
  }
  template <typename Task>
  absl::StatusOr<TimerId> ScheduleAfter(absl::Duration delay, Task&& task) {
    return Arm(Now() + delay, AsTimerTask(std::forward<Task>(task)));
  }

  // Arms a timer that fires until it is cancelled. Also returns InvalidArgument if the period is
  // not positive.
  template <typename Task>
  absl::StatusOr<TimerId> SchedulePeriodic(const PeriodicOptions& options, Task&& task) {
    return ArmPeriodic(FirstDeadline(options), options.period, options.cadence, AsTimerTask(std::forward<Task>(task)));
  }

  virtual bool CancelTimer(TimerId id) = 0;

  // Fires the timers that are due, unless another thread is doing that. For threads that watch over
  // workers that may be stuck. Does nothing on a toolbox without threads.
  virtual void FireDueTimers() {}

  // Starts a worker, which is awake. Returns InvalidArgument for bad options and for CPUs that the
  // process may not use, PermissionDenied for a nice value that it may not set, ResourceExhausted
  // if there are too many workers or the system gives no thread, and FailedPrecondition if the
  // toolbox is being destroyed. In these cases the worker is destroyed unused.
  virtual absl::StatusOr<WorkerHandle> StartWorker(const WorkerOptions& options,
                                                   std::unique_ptr<ToolboxWorker> worker) = 0;

  // True if workers run by themselves. If false, nothing happens while a caller waits, so a caller
  // must not wait.
  virtual bool has_threads() const = 0;

  // For schedulers. chooses() tells whether this toolbox makes the choices of the schedule; Choose
  // makes one: 0 to n - 1. A toolbox that makes no choices returns 0.
  virtual bool chooses() const { return false; }
  virtual uint64_t Choose(uint64_t /*n*/) { return 0; }

  // A generator for one purpose. The same toolbox seed and stream give the same numbers; each owner
  // uses a stream of its own.
  Random MakeRandom(uint64_t stream) const { return random_.Fork(stream); }

  // The seed of all random numbers of this toolbox.
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
