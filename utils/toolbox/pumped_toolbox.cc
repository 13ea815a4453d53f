#include "fraktor/utils/toolbox/pumped_toolbox.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/internal/parking_word.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {
namespace {

constexpr int kMaxWorkers = 16384;
constexpr int64_t kMaxTimers = (int64_t{1} << 28) - 1;
constexpr size_t kMaxNameBytes = 80;

}  // namespace

class PumpedToolbox::PumpedState final : public toolbox_internal::WorkerState {
 public:
  PumpedState(std::string name, uint64_t its_ordinal, std::unique_ptr<ToolboxWorker> its_worker,
              PumpedToolbox* its_toolbox, std::shared_ptr<const std::function<void(uint64_t)>> on_woken)
      : WorkerState(std::move(name)),
        ordinal(its_ordinal),
        worker(std::move(its_worker)),
        toolbox(its_toolbox),
        on_woken_(std::move(on_woken)) {}

  absl::Status Join() override {
    if (done()) return absl::OkStatus();
    absl::Status ran = toolbox->RunUntil([this] { return done(); }, absl::InfiniteDuration());
    if (ran.ok()) return ran;
    return absl::Status(ran.code(), absl::StrCat("worker \"", this->name(), "\" is not done: ", ran.message()));
  }

  toolbox_internal::ParkingWord& word() { return word_; }

  const uint64_t ordinal;
  std::unique_ptr<ToolboxWorker> worker;
  PumpedToolbox* toolbox;
  bool was_parked = false;  // AfterPark must be called

 protected:
  void OnWoken() override {
    if (*on_woken_) (*on_woken_)(ordinal);
  }

 private:
  const std::shared_ptr<const std::function<void(uint64_t)>> on_woken_;
};

absl::Status PumpedToolbox::CheckLimits(const Limits& limits) {
  if (limits.name.empty() || limits.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("toolbox: the name has ", limits.name.size(), " bytes; use 1 to ", kMaxNameBytes));
  }
  if (limits.max_workers < 1 || limits.max_workers > kMaxWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("toolbox \"", limits.name, "\": max_workers is ", limits.max_workers, "; use 1 to ", kMaxWorkers));
  }
  if (limits.max_timers < 1 || limits.max_timers > kMaxTimers) {
    return absl::InvalidArgumentError(
        absl::StrCat("toolbox \"", limits.name, "\": max_timers is ", limits.max_timers, "; use 1 to ", kMaxTimers));
  }
  if (limits.max_steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("toolbox \"", limits.name, "\": max_steps is ", limits.max_steps, "; use 1 or more"));
  }
  return absl::OkStatus();
}

PumpedToolbox::PumpedToolbox(uint64_t seed, Limits limits, absl::Time wall_start,
                             std::function<void(uint64_t)> on_woken)
    : RuntimeToolbox(seed),
      limits_(std::move(limits)),
      wall_start_(wall_start),
      on_woken_(std::make_shared<const std::function<void(uint64_t)>>(std::move(on_woken))),
      wheel_(Wheel::Make({.resolution = absl::Nanoseconds(1), .max_timers = limits_.max_timers}).value()) {}

PumpedToolbox::~PumpedToolbox() {
  stopping_ = true;
  // In the order of their start. A destructor of a worker may wake other workers; that has no
  // effect any more.
  for (const std::shared_ptr<PumpedState>& state : workers_) state->word().Finish();
  for (const std::shared_ptr<PumpedState>& state : workers_) state->worker.reset();
}

absl::Status PumpedToolbox::CheckAlive() const {
  if (!stopping_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("toolbox \"", limits_.name, "\" is being destroyed"));
}

absl::StatusOr<WorkerHandle> PumpedToolbox::StartWorker(const WorkerOptions& options,
                                                        std::unique_ptr<ToolboxWorker> worker) {
  absl::Status checked = toolbox_internal::CheckWorkerOptions(options);
  if (checked.ok()) checked = CheckAlive();
  if (!checked.ok()) return checked;
  if (worker == nullptr) return absl::InvalidArgumentError(absl::StrCat("worker \"", options.name, "\" is null"));
  if (workers_.size() >= static_cast<size_t>(limits_.max_workers)) {
    return absl::ResourceExhaustedError(absl::StrCat("toolbox \"", limits_.name, "\" has ", limits_.max_workers,
                                                     " workers, its limit; raise max_workers"));
  }
  const uint64_t ordinal = workers_started_++;
  auto state =
      std::make_shared<PumpedState>(options.name.empty() ? absl::StrCat(limits_.name, "-", ordinal) : options.name,
                                    ordinal, std::move(worker), this, on_woken_);
  workers_.push_back(state);
  OnStarted(ordinal);
  return WorkerHandle(std::move(state));
}

absl::StatusOr<TimerId> PumpedToolbox::Arm(Instant deadline, TimerTask task) {
  absl::Status alive = CheckAlive();
  if (!alive.ok()) return alive;
  absl::StatusOr<TimerId> id = wheel_->Insert(deadline, OrdinalTask{timers_armed_, std::move(task)});
  if (id.ok()) OnArmed(timers_armed_++, deadline);
  return id;
}

absl::StatusOr<TimerId> PumpedToolbox::ArmPeriodic(Instant first, absl::Duration period, Cadence cadence,
                                                   TimerTask task) {
  absl::Status alive = CheckAlive();
  if (!alive.ok()) return alive;
  absl::StatusOr<TimerId> id =
      wheel_->InsertPeriodic(first, period, cadence, OrdinalTask{timers_armed_, std::move(task)});
  if (id.ok()) OnArmed(timers_armed_++, first);
  return id;
}

bool PumpedToolbox::CancelTimer(TimerId id) {
  if (stopping_) return false;
  bool cancelled = false;
  const std::optional<OrdinalTask> dropped = wheel_->Remove(id, cancelled);
  if (dropped.has_value()) OnCancelled(dropped->ordinal);
  return cancelled;
}

void PumpedToolbox::StepWorker(PumpedState& state) {
  if (std::exchange(state.was_parked, false)) state.worker->AfterPark();
  ToolboxWorker::Progress progress = state.worker->RunSome();
  if (progress == ToolboxWorker::Progress::kIdle) {
    state.word().PublishParking();
    progress = state.worker->BeforePark();
    if (progress == ToolboxWorker::Progress::kIdle) {
      state.was_parked = true;
      state.word().FallAsleep();  // fails if a Wake came first: the worker stays awake
    } else {
      state.word().StayAwake();
    }
  }
  OnTurn({.is_timer = false, .ordinal = state.ordinal, .outcome = static_cast<uint64_t>(progress)});
  if (progress != ToolboxWorker::Progress::kDone) return;
  state.worker.reset();
  state.word().Finish();
  std::erase_if(workers_, [&](const std::shared_ptr<PumpedState>& other) { return other.get() == &state; });
}

void PumpedToolbox::StepTimer() {
  std::optional<Wheel::Due> due = wheel_->TakeExpired();
  OnTurn({.is_timer = true, .ordinal = due->payload.ordinal, .outcome = due->periods});
  due->payload.task(TimerFiring{.id = due->id, .deadline = due->deadline, .periods = due->periods});
  if (due->periodic) wheel_->Rearm(*due, Now());
}

bool PumpedToolbox::Step() {
  const bool timer_due = wheel_->Expire(Now());
  awake_ordinals_.clear();
  awake_seats_.clear();
  for (const std::shared_ptr<PumpedState>& state : workers_) {
    if (!state->word().awake()) continue;
    awake_ordinals_.push_back(state->ordinal);
    awake_seats_.push_back(state.get());
  }
  if (awake_seats_.empty() && !timer_due) return false;
  ++steps_;
  const size_t turn = PickTurn(awake_ordinals_, timer_due);
  if (turn < awake_seats_.size()) {
    StepWorker(*awake_seats_[turn]);
  } else {
    StepTimer();
  }
  return true;
}

absl::Status PumpedToolbox::Pump(absl::FunctionRef<bool()> done, Instant end, bool move_time) {
  absl::Status alive = CheckAlive();
  if (!alive.ok()) return alive;
  if (running_) {
    return absl::FailedPreconditionError(
        absl::StrCat("toolbox \"", limits_.name, "\" is pumped from inside one of its own workers or timers"));
  }
  running_ = true;
  driver_.MoveToThisThread();
  const toolbox_internal::WorkerThreadScope scope(true);
  absl::Status result = absl::OkStatus();
  for (int64_t steps = 0; !done();) {
    if (steps == limits_.max_steps) {
      result = absl::ResourceExhaustedError(
          absl::StrCat("toolbox \"", limits_.name, "\" has not come to rest after ", steps,
                       " steps; find the worker or timer that never stops, or raise max_steps. Virtual time is ",
                       absl::FormatDuration(Now() - Instant()), OnRestless()));
      break;
    }
    if (Step()) {
      ++steps;
      continue;
    }
    if (!move_time) break;
    const Instant next = wheel_->NextDeadline();
    if (next > end || next == Instant::InfiniteFuture()) {
      if (end != Instant::InfiniteFuture()) now_ns_.store(end.nanoseconds(), std::memory_order_release);
      break;
    }
    now_ns_.store(std::max(next, Now()).nanoseconds(), std::memory_order_release);
  }
  running_ = false;
  return result;
}

absl::Status PumpedToolbox::RunUntilIdle() {
  return Pump([] { return false; }, Now(), /*move_time=*/false);
}

absl::Status PumpedToolbox::RunFor(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("toolbox \"", limits_.name, "\" cannot run for ",
                                                   absl::FormatDuration(duration),
                                                   "; the duration must not be negative"));
  }
  return Pump([] { return false; }, Now() + duration, /*move_time=*/true);
}

absl::Status PumpedToolbox::RunUntil(absl::FunctionRef<bool()> done, absl::Duration limit) {
  absl::Status ran = Pump(done, Now() + std::max(limit, absl::ZeroDuration()), /*move_time=*/true);
  if (!ran.ok() || done()) return ran;
  if (limit == absl::InfiniteDuration()) {
    return absl::FailedPreconditionError(
        absl::StrCat("toolbox \"", limits_.name,
                     "\": all workers are parked, no timer is pending, and the condition does not hold"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("toolbox \"", limits_.name, "\": the condition did not hold within ", absl::FormatDuration(limit)));
}

}  // namespace fraktor::inline v0
