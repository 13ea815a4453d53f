// PumpedToolbox: the common base of LocalToolbox and SimToolbox. It has one thread, virtual time
// that moves only when the caller says so, and workers that take turns.
//
//   toolbox->ScheduleAfter(absl::Minutes(59), [&] { expired = true; }).value();
//   ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());     // takes microseconds
//   EXPECT_TRUE(expired);
//
// Timers are exact to the nanosecond: a task sees Now() == its deadline.
//
// Thread safety: one thread at a time may call the methods, except Now(), WallNow() and the
// exceptions of the derived class. Workers and timer tasks may call everything but the Run methods,
// which then return FailedPrecondition.
#ifndef FRAKTOR_UTILS_TOOLBOX_PUMPED_TOOLBOX_H_
#define FRAKTOR_UTILS_TOOLBOX_PUMPED_TOOLBOX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

class PumpedToolbox : public RuntimeToolbox {
 public:
  // Destroys the workers, without calling them again, and the pending timers, without running them.
  ~PumpedToolbox() override;

  Instant Now() const override { return Instant::FromNanoseconds(now_ns_.load(std::memory_order_acquire)); }
  absl::Time WallNow() const override { return wall_start_ + (Now() - Instant()); }
  bool CancelTimer(TimerId id) override;
  bool has_threads() const override { return false; }
  absl::StatusOr<WorkerHandle> StartWorker(const WorkerOptions& options,
                                           std::unique_ptr<ToolboxWorker> worker) override;

  // Each Run method takes steps. A step is one RunSome of a worker, or one task of a timer. After
  // max_steps it stops and returns ResourceExhausted: some worker or timer never comes to rest.

  // Runs everything that can run now. Time does not move.
  absl::Status RunUntilIdle();

  // The same, and lets time pass: jumps from one deadline to the next, and ends exactly `duration`
  // later. With InfiniteDuration it ends when no worker is awake and no timer is pending. Returns
  // InvalidArgument if the duration is negative.
  absl::Status RunFor(absl::Duration duration);

  // Lets time pass until `done`, which is called before each step, returns true. Returns
  // DeadlineExceeded after `limit`. Returns FailedPrecondition if the limit is infinite and nothing
  // is left that could run.
  absl::Status RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit);

  // The number of steps since the toolbox was made.
  uint64_t steps() const { return steps_; }

 protected:
  class PumpedState;

  struct Limits {
    std::string name;
    int max_workers;
    int64_t max_timers;
    int64_t max_steps;
  };
  // A step that is about to run, or has run.
  struct Turn {
    bool is_timer;
    uint64_t ordinal;  // of the worker or the timer: how many were started or armed before it
    uint64_t outcome;  // the Progress of a worker, or the periods of a timer
  };

  // `on_woken` is called for each Wake that finds a worker parked, with the ordinal of the worker,
  // on the thread that wakes. It may be empty.
  PumpedToolbox(uint64_t seed, Limits limits, absl::Time wall_start, std::function<void(uint64_t)> on_woken);

  // Returns InvalidArgument, naming the option, if an option is outside of its limits.
  static absl::Status CheckLimits(const Limits& limits);

  // Chooses the next step: an index into `ordinals`, which are the awake workers in the order of
  // their start, or ordinals.size() for the next timer, if `timer_due`. There is at least one
  // candidate.
  virtual size_t PickTurn(absl::Span<const uint64_t> ordinals, bool timer_due) = 0;
  virtual void OnStarted(uint64_t /*ordinal*/) {}
  virtual void OnArmed(uint64_t /*ordinal*/, Instant /*deadline*/) {}
  virtual void OnCancelled(uint64_t /*ordinal*/) {}
  virtual void OnTurn(const Turn& /*turn*/) {}

  // Called when a run has not come to rest. The result is appended to the error text.
  virtual std::string OnRestless() { return {}; }

  const std::string& name() const { return limits_.name; }

  absl::StatusOr<TimerId> Arm(Instant deadline, TimerTask task) override;
  absl::StatusOr<TimerId> ArmPeriodic(Instant first, absl::Duration period, Cadence cadence, TimerTask task) override;

 private:
  struct OrdinalTask {
    uint64_t ordinal;
    TimerTask task;
  };
  using Wheel = TimingWheel<OrdinalTask>;

  // Returns false if nothing can run now.
  bool Step();
  void StepWorker(PumpedState& state);
  void StepTimer();
  absl::Status Pump(absl::FunctionRef<bool()> done, Instant end, bool move_time);
  absl::Status CheckAlive() const;

  const Limits limits_;
  const absl::Time wall_start_;
  const std::shared_ptr<const std::function<void(uint64_t)>> on_woken_;
  // Only the pumping thread writes it. Other threads only read it, so it orders nothing but itself.
  std::atomic<int64_t> now_ns_ = 0;
  const std::unique_ptr<Wheel> wheel_;
  std::vector<std::shared_ptr<PumpedState>> workers_;  // the workers that are not done, by ordinal
  std::vector<uint64_t> awake_ordinals_;               // used within one step; a member to reuse its memory
  std::vector<PumpedState*> awake_seats_;
  uint64_t workers_started_ = 0;
  uint64_t timers_armed_ = 0;
  uint64_t steps_ = 0;
  toolbox_internal::VirtualTimeDriver driver_;
  bool running_ = false;
  bool stopping_ = false;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_PUMPED_TOOLBOX_H_
