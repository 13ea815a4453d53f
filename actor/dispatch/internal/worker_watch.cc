#include "fraktor/actor/dispatch/internal/worker_watch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0::actor_internal {
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
  if (yield_after != absl::InfiniteDuration()) {
    FRAKTOR_RETURN_IF_ERROR(CheckRange("yield_after", yield_after, absl::Microseconds(1), absl::Hours(1)));
  }
  if (stall_after == absl::InfiniteDuration()) return absl::OkStatus();
  return CheckRange("stall_after", stall_after, absl::Milliseconds(1), absl::Hours(1));
}

// The patrol: the thread that looks at the workers of all executors of a toolbox.
class WatchPatrol {
 public:
  // Returns the patrol of a toolbox, and starts it if there is none.
  static absl::StatusOr<std::shared_ptr<WatchPatrol>> Of(RuntimeToolbox& toolbox);

  ~WatchPatrol() {
    {
      MutexLock lock(round_->mutex);
      round_->over = true;
      round_->stirred.notify_all();
    }
    if (thread_.valid()) thread_.Join().IgnoreError();
  }

  void Add(std::shared_ptr<WorkerWatch> watch) {
    MutexLock lock(round_->mutex);
    round_->watches.push_back(std::move(watch));
  }

  void Remove(const WorkerWatch* watch) {
    MutexLock lock(round_->mutex);
    std::erase_if(round_->watches, [watch](const auto& one) { return one.get() == watch; });
  }

  // Wakes the patrol: a watch is armed.
  void Stir() {
    MutexLock lock(round_->mutex);
    round_->is_stirred = true;
    round_->stirred.notify_all();
  }

  // Blocks until the look that is under way has ended.
  void AwaitRound() {
    Round& round = *round_;
    MutexLock lock(round.mutex);
    const uint64_t begun = round.begun;
    round.ended.wait(lock, [&round, begun] {
      round.mutex.AssertHeld();
      return !round.looking || round.begun != begun;
    });
  }

 private:
  // The state that the patrol shares with its thread.
  struct Round {
    Mutex mutex;
    std::condition_variable_any stirred;
    std::condition_variable_any ended;
    std::vector<std::shared_ptr<WorkerWatch>> watches ABSL_GUARDED_BY(mutex);
    bool is_stirred ABSL_GUARDED_BY(mutex) = false;
    bool over ABSL_GUARDED_BY(mutex) = false;
    bool looking ABSL_GUARDED_BY(mutex) = false;
    uint64_t begun ABSL_GUARDED_BY(mutex) = 0;
  };

  class Thread final : public ToolboxWorker {
   public:
    Thread(RuntimeToolbox& toolbox, std::shared_ptr<Round> round) : toolbox_(toolbox), round_(std::move(round)) {}

    Progress RunSome() override {
      std::vector<std::shared_ptr<WorkerWatch>> watches;
      {
        MutexLock lock(round_->mutex);
        const auto is_stirred = [this] {
          round_->mutex.AssertHeld();
          return round_->is_stirred || round_->over;
        };
        if (delay_ == absl::InfiniteDuration()) {
          round_->stirred.wait(lock, is_stirred);
        } else {
          round_->stirred.wait_for(lock, absl::ToChronoNanoseconds(delay_), is_stirred);
        }
        if (round_->over) return Progress::kDone;
        round_->is_stirred = false;
        round_->looking = true;
        ++round_->begun;
        watches = round_->watches;
      }
      // All timers and workers may depend on this thread: `on_stall` and timers must not block it.
      const toolbox_internal::WorkerThreadScope scope(true);
      delay_ = absl::InfiniteDuration();
      for (const std::shared_ptr<WorkerWatch>& watch : watches) delay_ = std::min(delay_, watch->Tick());
      // Workers fire timers, but all may be stuck; or they sleep because another one is awake,
      // which is stuck.
      toolbox_.FireDueTimers();
      watches.clear();
      MutexLock lock(round_->mutex);
      round_->looking = false;
      round_->ended.notify_all();
      return Progress::kBusy;
    }

   private:
    RuntimeToolbox& toolbox_;
    const std::shared_ptr<Round> round_;
    absl::Duration delay_ = absl::InfiniteDuration();
  };

  WatchPatrol() = default;

  const std::shared_ptr<Round> round_ = std::make_shared<Round>();
  WorkerHandle thread_;
};

absl::StatusOr<std::shared_ptr<WatchPatrol>> WatchPatrol::Of(RuntimeToolbox& toolbox) {
  struct Patrols {
    Mutex mutex;
    absl::flat_hash_map<RuntimeToolbox*, std::weak_ptr<WatchPatrol>> by_toolbox ABSL_GUARDED_BY(mutex);
  };
  static Patrols& patrols = *new Patrols;
  MutexLock lock(patrols.mutex);
  absl::erase_if(patrols.by_toolbox, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<WatchPatrol>& known = patrols.by_toolbox[&toolbox];
  if (std::shared_ptr<WatchPatrol> patrol = known.lock()) return patrol;
  std::shared_ptr<WatchPatrol> patrol(new WatchPatrol);
  FRAKTOR_ASSIGN_OR_RETURN(patrol->thread_, toolbox.StartWorker({.name = "worker-watch", .drives_timers = false},
                                                                std::make_unique<Thread>(toolbox, patrol->round_)));
  known = patrol;
  return patrol;
}

WorkerWatch::WorkerWatch(const WorkerWatchOptions& options, RuntimeToolbox& toolbox, std::vector<ActorWorker*> workers)
    : options_(options),
      toolbox_(toolbox),
      workers_(std::move(workers)),
      seen_(workers_.size()),
      seen_slices_(workers_.size()),
      delay_(options.publish_after) {}

absl::Status WorkerWatch::Start() {
  FRAKTOR_ASSIGN_OR_RETURN(patrol_, WatchPatrol::Of(toolbox_));
  patrol_->Add(shared_from_this());
  return absl::OkStatus();
}

void WorkerWatch::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    armed_.store(false, std::memory_order_seq_cst);
  }
  if (patrol_ != nullptr) patrol_->Remove(this);
}

void WorkerWatch::AwaitEnd() {
  if (patrol_ != nullptr) patrol_->AwaitRound();
}

void WorkerWatch::Arm() {
  {
    MutexLock lock(mutex_);
    if (stopped_ || patrol_ == nullptr || armed_.load(std::memory_order_relaxed)) return;
    delay_ = options_.publish_after;
    quiet_ = 0;
    armed_.store(true, std::memory_order_seq_cst);
  }
  patrol_->Stir();
}

absl::Duration WorkerWatch::Tick() {
  if (!armed_.load(std::memory_order_seq_cst)) return absl::InfiniteDuration();
  Look(toolbox_.Now());
  MutexLock lock(mutex_);
  if (stopped_) return absl::InfiniteDuration();
  const uint64_t awakenings = awakenings_.load(std::memory_order_relaxed);
  const bool is_quiet = active_.load(std::memory_order_seq_cst) == 0 && awakenings == last_awakenings_;
  last_awakenings_ = awakenings;
  quiet_ = is_quiet ? quiet_ + 1 : 0;
  if (quiet_ >= kQuietLooks) {
    armed_.store(false, std::memory_order_seq_cst);
    if (active_.load(std::memory_order_seq_cst) == 0) return absl::InfiniteDuration();
    // A worker woke up meanwhile and may have seen armed_ still set.
    quiet_ = 0;
    armed_.store(true, std::memory_order_seq_cst);
  }
  delay_ = std::min(delay_ * 2, std::max(kSlowest, options_.publish_after));
  return delay_;
}

void WorkerWatch::Look(Instant now) {
  std::vector<WorkerStall> stalls;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    looks_.fetch_add(1, std::memory_order_relaxed);
    bool found = false;
    for (size_t i = 0; i < workers_.size(); ++i) {
      LookAtSlice(*workers_[i], seen_slices_[i], now);
      found |= LookAt(*workers_[i], seen_[i], now, stalls);
    }
    if (found) delay_ = options_.publish_after / 2;
  }
  // Without the lock: workers that wake up need it, and on_stall may call Stop.
  if (options_.on_stall == nullptr) return;
  for (const WorkerStall& stall : stalls) {
    const absl::Status told = future_internal::InvokeForResult(options_.on_stall, stall);
    // The patrol has no log.
    if (!told.ok()) std::fprintf(stderr, "fraktor: on_stall of a dispatcher threw: %s\n", told.ToString().c_str());
  }
}

void WorkerWatch::LookAtSlice(ActorWorker& worker, SeenSlice& seen, Instant now) {
  const uint64_t number = worker.slice.number();
  if (number != seen.number) {
    seen = {.number = number, .since = now, .ended = false};
    return;
  }
  if (seen.ended || worker.turn_state.running() == nullptr || now - seen.since < options_.yield_after) return;
  seen.ended = true;
  worker.slice.End();
  ended_slices_.fetch_add(1, std::memory_order_relaxed);
}

bool WorkerWatch::LookAt(ActorWorker& worker, Seen& seen, Instant now, std::vector<WorkerStall>& stalls) {
  DeferredTarget& target = worker.outbox.deferred();
  ActorSlot* const deferred = target.Peek();
  // Acquire: pairs with the release of MessageInvoker::BeginTurn.
  const ActorSlot* const running = worker.turn_state.slot.load(std::memory_order_acquire);
  const uint64_t runs = running == nullptr ? 0 : worker.RunNumber(running->type.load(std::memory_order_relaxed));
  if (running == nullptr || running != seen.running || runs != seen.runs) {
    seen = {
        .running = running, .runs = runs, .since = now, .deferred = deferred, .deferred_since = now, .reported = false};
    return false;
  }
  const absl::Duration held = now - seen.since;
  if (held >= options_.stall_after && !seen.reported) {
    seen.reported = true;
    stalls_.fetch_add(1, std::memory_order_relaxed);
    stalls.push_back(
        {.worker = worker.index, .actor_type = running->type.load(std::memory_order_relaxed), .held = held});
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

}  // namespace fraktor::inline v0::actor_internal
