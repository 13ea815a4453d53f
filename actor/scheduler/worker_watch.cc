#include "fraktor/actor/scheduler/worker_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckRange(const char* name, absl::Duration value, absl::Duration least, absl::Duration most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("WorkerWatchOptions.", name, " is ", absl::FormatDuration(value),
                                                 "; it must be from ", absl::FormatDuration(least), " to ",
                                                 absl::FormatDuration(most)));
}

}  // namespace

absl::Status WorkerWatchOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckRange("publish_after", publish_after, absl::Microseconds(1), absl::Seconds(1)));
  if (stall_after == absl::InfiniteDuration()) return absl::OkStatus();
  return CheckRange("stall_after", stall_after, absl::Milliseconds(1), absl::Hours(1));
}

WorkerWatch::WorkerWatch(const WorkerWatchOptions& options, RuntimeToolbox& toolbox, std::vector<ActorWorker*> workers)
    : options_(options),
      toolbox_(toolbox),
      workers_(std::move(workers)),
      seen_(workers_.size()),
      delay_(options.publish_after) {}

void WorkerWatch::Stop() {
  TimerId timer;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    timer = timer_;
  }
  toolbox_.CancelTimer(timer);
}

void WorkerWatch::Arm() {
  MutexLock lock(mutex_);
  if (stopped_ || armed_.load(std::memory_order_relaxed)) return;
  delay_ = options_.publish_after;
  quiet_ = 0;
  ArmLocked(delay_);
}

void WorkerWatch::ArmLocked(absl::Duration delay) {
  armed_.store(true, std::memory_order_seq_cst);
  absl::StatusOr<TimerId> timer = toolbox_.ScheduleAfter(delay, [watch = weak_from_this()] {
    if (const std::shared_ptr<WorkerWatch> alive = watch.lock()) alive->Tick();
  });
  if (timer.ok()) {
    timer_ = *timer;
  } else {
    armed_.store(false, std::memory_order_seq_cst);  // The next worker that wakes up tries again.
  }
}

void WorkerWatch::Tick() {
  Look(toolbox_.Now());
  MutexLock lock(mutex_);
  if (stopped_) return;
  const uint64_t awakenings = awakenings_.load(std::memory_order_relaxed);
  const bool is_quiet = active_.load(std::memory_order_seq_cst) == 0 && awakenings == last_awakenings_;
  last_awakenings_ = awakenings;
  quiet_ = is_quiet ? quiet_ + 1 : 0;
  if (quiet_ >= kQuietLooks) {
    armed_.store(false, std::memory_order_seq_cst);
    if (active_.load(std::memory_order_seq_cst) == 0) return;
    // A worker woke up at this moment and may have seen that there was a timer.
    quiet_ = 0;
  }
  delay_ = std::min(delay_ * 2, std::max(kSlowest, options_.publish_after));
  ArmLocked(delay_);
}

void WorkerWatch::Look(Instant now) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  bool found = false;
  for (size_t i = 0; i < workers_.size(); ++i) found |= LookAt(*workers_[i], seen_[i], now);
  if (found) delay_ = options_.publish_after / 2;
}

bool WorkerWatch::LookAt(ActorWorker& worker, Seen& seen, Instant now) {
  const uint64_t runs = worker.runs.load(std::memory_order_relaxed);
  DeferredTarget& target = worker.outbox.deferred();
  ActorSlot* const deferred = target.Peek();
  if (runs % 2 == 0 || runs != seen.runs) {
    seen = {.runs = runs, .since = now, .deferred = deferred, .deferred_since = now, .reported = false};
    return false;
  }
  const absl::Duration held = now - seen.since;
  if (held >= options_.stall_after && !seen.reported) {
    seen.reported = true;
    stalls_.fetch_add(1, std::memory_order_relaxed);
    if (options_.on_stall != nullptr) {
      options_.on_stall(
          {.worker = worker.index, .actor_type = worker.running_type.load(std::memory_order_relaxed), .held = held});
    }
  }
  if (deferred != seen.deferred) {
    seen.deferred = deferred;
    seen.deferred_since = now;
    return deferred != nullptr;
  }
  if (deferred == nullptr || now - seen.deferred_since < options_.publish_after) return deferred != nullptr;
  if (ActorSlot* const slot = target.Steal(deferred)) {
    published_.fetch_add(1, std::memory_order_relaxed);
    DispatcherTable::RegisterOrEmpty(*slot);
  }
  seen.deferred = nullptr;
  return true;
}

}  // namespace fraktor::inline v0
