// StdToolbox: a toolbox of threads and the real clock.
//
//   auto toolbox = StdToolbox::Make({.name = "shop"}).value();
//   WorkerHandle worker = toolbox->StartWorker({.name = "till"}, std::make_unique<Till>()).value();
//   toolbox->ScheduleAfter(absl::Seconds(1), [worker] { worker.Wake(); }).value();
//
// Each worker is a thread that calls RunSome in a loop and sleeps on a futex when there is nothing
// to do.
//
// Timers have no thread of their own. The driving worker that parks last sleeps only until the next
// deadline, and driving workers that are awake check the timers between two steps. Only if no
// worker drives timers, the toolbox starts a thread for them, when the first timer is armed.
//
// How late a timer may be: one resolution; plus the time that the system takes to wake a thread
// (about 50 us of timer slack and 10 to 30 us on a quiet machine, more on a busy one); plus, while
// no driving worker sleeps, the longest of their steps; plus the tasks of timers that were due
// before it. A worker whose steps block sets drives_timers = false. Where workers may get stuck
// nevertheless, another thread calls FireDueTimers from time to time.
//
// Thread safety: any thread may call all methods, also workers and timer tasks. The destructor must
// not run on one of the toolbox's own threads. It lets each worker end its current step, joins all
// threads, destroys the workers, and drops pending timers without running them. In the child of a
// fork(), which has none of the threads, it does nothing, and no toolbox can be made: see
// fork_guard.h.
#ifndef FRAKTOR_UTILS_TOOLBOX_STD_TOOLBOX_H_
#define FRAKTOR_UTILS_TOOLBOX_STD_TOOLBOX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

struct StdToolboxOptions {
  // Used in errors, and as the beginning of the names of threads that have no name of their own. At
  // most 80 bytes.
  std::string name = "fraktor";
  // The most workers at one time, from 1 to 16384.
  int max_workers = 256;
  // The most pending timers, from 1 to 2^28 - 1.
  int64_t max_timers = int64_t{1} << 22;
  // Deadlines round up to a multiple of it, so that timers with close deadlines fire in one
  // wake-up. From 1 ns to 1 h.
  absl::Duration timer_resolution = absl::Milliseconds(1);
  // The seed of MakeRandom. The operating system gives one if it is not set.
  std::optional<uint64_t> seed = std::nullopt;
};

class StdToolbox final : public RuntimeToolbox {
 public:
  // Returns InvalidArgument if an option is outside of its limits.
  static absl::StatusOr<std::unique_ptr<StdToolbox>> Make(const StdToolboxOptions& options);

  // The number of threads that the machine runs at the same time; at least 1.
  static int HardwareThreads();

  ~StdToolbox() override;

  Instant Now() const override;
  absl::Time WallNow() const override;
  absl::Time WallNowRoughly() const override;
  bool CancelTimer(TimerId id) override;
  bool has_threads() const override { return true; }
  void FireDueTimers() override;
  absl::StatusOr<WorkerHandle> StartWorker(const WorkerOptions& options,
                                           std::unique_ptr<ToolboxWorker> worker) override;

 protected:
  absl::StatusOr<TimerId> Arm(Instant deadline, TimerTask task) override;
  absl::StatusOr<TimerId> ArmPeriodic(Instant first, absl::Duration period, Cadence cadence, TimerTask task) override;

 private:
  class Core;  // the threads and the timers

  StdToolbox(uint64_t seed, std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;  // Not null until the destructor.
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_STD_TOOLBOX_H_
