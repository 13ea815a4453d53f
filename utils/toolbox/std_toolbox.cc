#include "fraktor/utils/toolbox/std_toolbox.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/time/timing_wheel.h"
#include "fraktor/utils/toolbox/internal/fork_guard.h"
#include "fraktor/utils/toolbox/internal/futex.h"
#include "fraktor/utils/toolbox/internal/parking_word.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

using toolbox_internal::ForkedError;
using toolbox_internal::IsForkedFromThreads;

namespace {

using toolbox_internal::FutexWait;
using toolbox_internal::FutexWakeOne;
using toolbox_internal::ParkingWord;
using toolbox_internal::WorkerState;

constexpr int kMaxWorkers = 16384;
constexpr size_t kMaxNameBytes = 80;
constexpr size_t kThreadNameBytes = 15;  // the limit of Linux

Instant SteadyNow() {
  return Instant::FromNanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

uint64_t SeedFromTheSystem() {
  std::random_device device;
  const uint64_t high = device();
  const uint64_t low = device();
  return high << 32 | low;
}

void RelaxTheCore() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Where a thread runs, and how much it gives way to others.
struct ThreadTraits {
  cpu_set_t cpus;
  int nice;
};

int NiceOfThisThread() {
  // Linux has a nice value for each thread: 0 is this one. -1 is a value, and the error too.
  errno = 0;
  const int nice = getpriority(PRIO_PROCESS, 0);
  return errno == 0 ? nice : 0;
}

ThreadTraits TraitsOfThisThread() {
  ThreadTraits traits = {.cpus = {}, .nice = NiceOfThisThread()};
  if (sched_getaffinity(0, sizeof(traits.cpus), &traits.cpus) != 0) CPU_ZERO(&traits.cpus);
  return traits;
}

// "0-3,8".
std::string TextOf(const cpu_set_t& cpus) {
  std::string text;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    size_t last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cpus)) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpu);
    if (last > cpu) absl::StrAppend(&text, "-", last);
    cpu = last;
  }
  return text;
}

// Puts this thread on the CPUs that the options name. The kernel leaves CPUs out that the process
// may not use, without a word, unless it may use none of them.
absl::Status SetCpus(const WorkerOptions& options, const std::string& name) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  // From here on the thread may run wherever the process may.
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_setaffinity(0, sizeof(all), &all) != 0 || sched_getaffinity(0, sizeof(usable), &usable) != 0) {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat("worker \"", name, "\": this system does not let a process choose its ",
                                               "CPUs (error ", error, "); give no cpus"));
  }
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int cpu : options.cpus) {
    const auto number = static_cast<size_t>(cpu);
    CPU_SET(number, &wanted);
    if (CPU_ISSET(number, &usable)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("worker \"", name, "\": cpus has ", cpu, ", and this process may use the CPUs ", TextOf(usable)));
  }
  if (sched_setaffinity(0, sizeof(wanted), &wanted) != 0) {
    const int error = errno;
    return absl::UnavailableError(
        absl::StrCat("worker \"", name, "\": the system refuses the CPUs ", TextOf(wanted), " (error ", error, ")"));
  }
  return absl::OkStatus();
}

absl::Status SetNice(int nice, const std::string& name) {
  const int before = NiceOfThisThread();
  if (setpriority(PRIO_PROCESS, 0, nice) == 0) return absl::OkStatus();
  const int error = errno;
  return absl::PermissionDeniedError(
      absl::StrCat("worker \"", name, "\": nice is ", nice, ", which this process may not set (error ", error,
                   "): use ", before, " or more, or give the process CAP_SYS_NICE or a higher RLIMIT_NICE"));
}

// The worker of the thread that drives timers when no other worker does.
class TimerKeeper final : public ToolboxWorker {
 public:
  Progress RunSome() override { return Progress::kIdle; }
};

// The thread of a worker.
class ThreadState final : public WorkerState, public std::enable_shared_from_this<ThreadState> {
 public:
  ThreadState(std::string name, const void* its_core, const WorkerOptions& options,
              std::unique_ptr<ToolboxWorker> its_worker)
      : WorkerState(std::move(name)),
        core(its_core),
        worker(std::move(its_worker)),
        idle_rounds(options.idle_rounds),
        drives_timers(options.drives_timers),
        has_own_cpus(!options.cpus.empty()),
        has_own_nice(options.nice.has_value()) {}

  absl::Status Join() override;

  ParkingWord& word() { return word_; }
  void SleepUntil(Instant deadline) { FutexWait(word_.word(), ParkingWord::kParked, deadline); }
  void WakeInKernel() { FutexWakeOne(word_.word()); }

  void Finish() {
    MutexLock lock(mutex_);
    finished_ = true;
    word_.Finish();
    ended_.notify_all();
  }

  const void* const core;                 // only compared
  std::unique_ptr<ToolboxWorker> worker;  // used by its own thread
  const int idle_rounds;
  const bool drives_timers;
  const bool has_own_cpus;
  const bool has_own_nice;
  pthread_t thread = {};  // written before another thread sees the state

  // Guarded by the mutex of the Core.
  bool counted_awake = true;
  bool left = false;  // the thread does not use the Core any more and can be joined

 protected:
  void OnWoken() override { WakeInKernel(); }

 private:
  Mutex mutex_;
  std::condition_variable_any ended_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

thread_local ThreadState* current_state = nullptr;

absl::Status ThreadState::Join() {
  if (current_state == this) {
    return absl::FailedPreconditionError(absl::StrCat("worker \"", name(), "\" cannot wait for its own end"));
  }
  if (IsForkedFromThreads()) return ForkedError(absl::StrCat("to join worker \"", name(), "\""));
  MutexLock lock(mutex_);
  ended_.wait(lock, [this] {
    mutex_.AssertHeld();
    return finished_;
  });
  return absl::OkStatus();
}

}  // namespace

// The threads and timers of a StdToolbox.
//
// Which worker drives the timers, all under mutex_: driver_ is the sleeping worker whose timeout is
// driver_deadline_. A driving worker becomes driver_ when it parks and no other driving worker is
// awake, and stops being it when it stirs. While driver_ is empty, one of these holds: a driving
// worker is awake and checks the timers between its steps; a driving worker is firing and checks
// again before it sleeps; or another thread is firing, and nudges one of the sleepers when it is
// done. A thread that arms a timer earlier than driver_deadline_ nudges the driver, unless it is an
// awake driving worker, which checks the timers itself.
class StdToolbox::Core {
 public:
  using Wheel = TimingWheel<TimerTask>;

  Core(std::string name, int max_workers, std::unique_ptr<Wheel> wheel)
      : name_(std::move(name)), max_workers_(max_workers), usual_(TraitsOfThisThread()), wheel_(std::move(wheel)) {}

  // Ends and joins all threads and drops the timers. Afterwards everything is rejected.
  void Stop();

  absl::StatusOr<WorkerHandle> Start(const WorkerOptions& options, std::unique_ptr<ToolboxWorker> worker);

  // `arm` inserts a timer into the wheel that it receives.
  template <typename ArmTask>
  absl::StatusOr<TimerId> Arm(ArmTask&& arm);
  bool Cancel(TimerId id);
  void FireIfDue() {
    const int64_t next = next_deadline_ns_.load(std::memory_order_relaxed);
    if (next == Instant::InfiniteFuture().nanoseconds() || SteadyNow().nanoseconds() < next) return;
    std::shared_ptr<ThreadState> next_driver;
    {
      MutexLock lock(mutex_);
      if (stopping()) return;
      Fire();
      next_driver = NudgeNextDriver();
    }
    if (next_driver != nullptr) next_driver->WakeInKernel();
  }

 private:
  static void* RunThread(void* start);
  static void JoinThread(ThreadState& state) {
    pthread_join(state.thread, nullptr);
    toolbox_internal::CountThreadEnd();
  }
  void Run(ThreadState& state);
  // Sleeps if there is nothing to do. Returns kBusy when the worker is awake again.
  ToolboxWorker::Progress Park(ThreadState& state);
  void SleepDriving(ThreadState& state);
  void SleepOnly(ThreadState& state);
  void Leave(ThreadState& state);

  // If all driving workers sleep without a timeout, one of them must take over the timers. Returns
  // the one that the caller must wake by the kernel after it has released the mutex, or null.
  std::shared_ptr<ThreadState> NudgeNextDriver() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Fires the timers that are due, unless another thread is doing that. Releases the mutex around
  // each task.
  void Fire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishNextDeadline() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t next = wheel_->NextDeadline().nanoseconds();
    if (next_deadline_ns_.load(std::memory_order_relaxed) != next) {
      next_deadline_ns_.store(next, std::memory_order_relaxed);
    }
  }

  // Takes `worker` only on success. Otherwise the caller destroys it, without the lock.
  absl::StatusOr<std::shared_ptr<ThreadState>> StartThread(const WorkerOptions& options,
                                                           std::unique_ptr<ToolboxWorker>& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JoinEndedThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepTimers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }
  absl::Status Stopping() const {
    return absl::FailedPreconditionError(absl::StrCat("toolbox \"", name_, "\" is being destroyed"));
  }

  const std::string name_;
  const int max_workers_;
  // The traits of the thread that has made the toolbox.
  const ThreadTraits usual_;

  // Set once, by the destructor. Pairs with PublishParking: a thread that has published reads this
  // before it sleeps, and the destructor wakes each thread after setting it.
  std::atomic<bool> stopping_ = false;

  // The wheel's NextDeadline at the last change under mutex_, so that workers see without the lock
  // that no timer is due. A hint: a worker checks again under the mutex before it sleeps.
  alignas(64) std::atomic<int64_t> next_deadline_ns_ = Instant::InfiniteFuture().nanoseconds();

  alignas(64) Mutex mutex_;
  std::unique_ptr<Wheel> wheel_ ABSL_GUARDED_BY(mutex_);
  bool firing_ ABSL_GUARDED_BY(mutex_) = false;
  int drivers_ ABSL_GUARDED_BY(mutex_) = 0;        // workers that drive timers
  int awake_drivers_ ABSL_GUARDED_BY(mutex_) = 0;  // driving workers that do not sleep
  std::shared_ptr<ThreadState> driver_ ABSL_GUARDED_BY(mutex_);
  Instant driver_deadline_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ThreadState>> workers_ ABSL_GUARDED_BY(mutex_);
  uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  bool keeper_started_ ABSL_GUARDED_BY(mutex_) = false;

  // A thread that has to change where or how it runs tells the thread that starts it what came of
  // that.
  struct ThreadStart {
    Core* core;
    std::shared_ptr<ThreadState> state;
    WorkerOptions options;
    bool resets_cpus;
    bool resets_nice;
    std::binary_semaphore is_ready{0};
    absl::Status result = absl::OkStatus();

    bool changes_traits() const {
      return !options.cpus.empty() || options.nice.has_value() || resets_cpus || resets_nice;
    }
    // On the new thread.
    absl::Status ChangeTraits() const;
  };
};

absl::Status StdToolbox::Core::ThreadStart::ChangeTraits() const {
  if (!options.cpus.empty()) {
    if (absl::Status set = SetCpus(options, state->name()); !set.ok()) return set;
  } else if (resets_cpus) {
    // The CPUs may have been taken from the process meanwhile; then the thread stays where it is.
    sched_setaffinity(0, sizeof(core->usual_.cpus), &core->usual_.cpus);
  }
  if (options.nice.has_value()) return SetNice(*options.nice, state->name());
  // A process that may not raise its priority keeps the nice value of the thread that has started
  // this one.
  if (resets_nice) setpriority(PRIO_PROCESS, 0, core->usual_.nice);
  return absl::OkStatus();
}

void StdToolbox::Core::Stop() {
  std::vector<std::shared_ptr<ThreadState>> workers;
  {
    MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_seq_cst);
    workers = workers_;
  }
  for (const std::shared_ptr<ThreadState>& state : workers) {
    if (current_state == state.get()) {
      std::fprintf(stderr, "fraktor: toolbox \"%s\" is destroyed by its own worker \"%s\", which it must join\n",
                   name_.c_str(), state->name().c_str());
      std::abort();
    }
  }
  for (const std::shared_ptr<ThreadState>& state : workers) state->Wake();
  for (const std::shared_ptr<ThreadState>& state : workers) JoinThread(*state);
  std::unique_ptr<Wheel> wheel;
  {
    MutexLock lock(mutex_);
    wheel = std::move(wheel_);
  }
  // The tasks are destroyed without the lock. Their destructors may still call this toolbox, which
  // then reports that it is stopping.
  wheel.reset();
}

absl::StatusOr<WorkerHandle> StdToolbox::Core::Start(const WorkerOptions& options,
                                                     std::unique_ptr<ToolboxWorker> worker) {
  // Before the lock, which a thread of the parent may have held.
  if (IsForkedFromThreads()) return ForkedError(absl::StrCat("to start worker \"", options.name, "\""));
  absl::StatusOr<std::shared_ptr<ThreadState>> state = absl::UnknownError("");
  {
    MutexLock lock(mutex_);
    state = StartThread(options, worker);
  }
  if (!state.ok()) return state.status();
  return WorkerHandle(*std::move(state));
}

absl::StatusOr<std::shared_ptr<ThreadState>> StdToolbox::Core::StartThread(const WorkerOptions& options,
                                                                           std::unique_ptr<ToolboxWorker>& worker) {
  if (stopping()) return Stopping();
  JoinEndedThreads();
  const size_t limit = static_cast<size_t>(max_workers_) + (keeper_started_ ? 1 : 0);
  if (workers_.size() >= limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("toolbox \"", name_, "\" has ", max_workers_, " workers, its limit; raise max_workers"));
  }
  const uint64_t ordinal = started_++;
  auto state = std::make_shared<ThreadState>(options.name.empty() ? absl::StrCat(name_, "-", ordinal) : options.name,
                                             this, options, std::move(worker));
  // A thread begins with the CPUs and the nice value of the thread that starts it.
  const auto start = std::make_shared<ThreadStart>();
  start->core = this;
  start->state = state;
  start->options = options;
  start->resets_cpus = current_state != nullptr && current_state->has_own_cpus;
  start->resets_nice = current_state != nullptr && current_state->has_own_nice;
  auto given = std::make_unique<std::shared_ptr<ThreadStart>>(start);
  toolbox_internal::CountThreadStart();
  const int error = pthread_create(&state->thread, nullptr, &RunThread, given.get());
  if (error != 0) {
    toolbox_internal::CountThreadEnd();
    worker = std::move(state->worker);
    return absl::ResourceExhaustedError(absl::StrCat("worker \"", state->name(),
                                                     "\": the system could not start a thread (error ", error,
                                                     "); toolbox \"", name_, "\" has ", workers_.size(), " threads"));
  }
  given.release();  // RunThread owns it now
  if (start->changes_traits()) {
    // The new thread needs no lock for that.
    start->is_ready.acquire();
    if (!start->result.ok()) {
      JoinThread(*state);
      worker = std::move(state->worker);
      return start->result;
    }
  }
  if (state->drives_timers) {
    ++drivers_;
    ++awake_drivers_;
  }
  workers_.push_back(state);
  return state;
}

void StdToolbox::Core::JoinEndedThreads() {
  // A thread with `left` set takes no lock any more, so the join is short.
  std::erase_if(workers_, [](const std::shared_ptr<ThreadState>& state) {
    if (!state->left) return false;
    JoinThread(*state);
    return true;
  });
}

void* StdToolbox::Core::RunThread(void* start) {
  const std::unique_ptr<std::shared_ptr<ThreadStart>> given(static_cast<std::shared_ptr<ThreadStart>*>(start));
  const std::shared_ptr<ThreadStart> mine = std::move(*given);
  ThreadState& state = *mine->state;
  if (mine->changes_traits()) {
    absl::Status changed = mine->ChangeTraits();
    const bool may_run = changed.ok();
    mine->result = std::move(changed);
    mine->is_ready.release();
    // The thread that starts this one joins it, and takes the worker back.
    if (!may_run) return nullptr;
  }
  current_state = &state;
  const toolbox_internal::WorkerThreadScope scope(state.drives_timers);
  pthread_setname_np(pthread_self(), state.name().substr(0, kThreadNameBytes).c_str());
  mine->core->Run(state);
  state.worker.reset();
  mine->core->Leave(state);
  current_state = nullptr;
  state.Finish();
  return nullptr;
}

void StdToolbox::Core::Run(ThreadState& state) {
  int idle = 0;
  while (!stopping()) {
    if (state.drives_timers) FireIfDue();
    ToolboxWorker::Progress progress = state.worker->RunSome();
    if (progress == ToolboxWorker::Progress::kIdle) {
      if (idle++ < state.idle_rounds) {
        RelaxTheCore();
        continue;
      }
      progress = Park(state);
    }
    if (progress == ToolboxWorker::Progress::kDone) return;
    idle = 0;
  }
}

ToolboxWorker::Progress StdToolbox::Core::Park(ThreadState& state) {
  state.word().PublishParking();
  if (stopping()) return ToolboxWorker::Progress::kBusy;
  const ToolboxWorker::Progress progress = state.worker->BeforePark();
  if (progress != ToolboxWorker::Progress::kIdle) {
    state.word().StayAwake();
    return progress;
  }
  if (state.drives_timers) {
    SleepDriving(state);
  } else {
    SleepOnly(state);
  }
  if (!stopping()) state.worker->AfterPark();
  return ToolboxWorker::Progress::kBusy;
}

void StdToolbox::Core::SleepOnly(ThreadState& state) {
  if (!state.word().FallAsleep()) return;
  while (!state.word().awake()) state.SleepUntil(Instant::InfiniteFuture());
}

void StdToolbox::Core::SleepDriving(ThreadState& state) {
  mutex_.Lock();
  --awake_drivers_;
  state.counted_awake = false;
  while (true) {
    Instant deadline = Instant::InfiniteFuture();
    const Instant next = wheel_->NextDeadline();
    const bool vacant = driver_ == nullptr || next < driver_deadline_;
    if (awake_drivers_ == 0 && vacant && !firing_) {
      driver_ = state.shared_from_this();
      driver_deadline_ = deadline = next;
    }
    // Under the mutex, so that a thread that arms an earlier timer finds this worker asleep and
    // nudges it, or finds it awake.
    const bool asleep = state.word().FallAsleep();
    if (asleep) {
      mutex_.Unlock();
      state.SleepUntil(deadline);
      mutex_.Lock();
    }
    if (driver_.get() == &state) driver_ = nullptr;
    if (!asleep || !state.word().Stir() || stopping()) break;
    Fire();
  }
  ++awake_drivers_;
  state.counted_awake = true;
  state.word().StayAwake();
  mutex_.Unlock();
}

std::shared_ptr<ThreadState> StdToolbox::Core::NudgeNextDriver() {
  if (awake_drivers_ > 0 || driver_ != nullptr || firing_) return nullptr;
  for (const std::shared_ptr<ThreadState>& state : workers_) {
    // A worker that does not sleep is about to check the timers itself.
    if (state->drives_timers && !state->left && state.get() != current_state)
      return state->word().Nudge() ? state : nullptr;
  }
  return nullptr;
}

void StdToolbox::Core::Leave(ThreadState& state) {
  std::shared_ptr<ThreadState> next_driver;
  {
    MutexLock lock(mutex_);
    if (state.drives_timers) {
      --drivers_;
      --awake_drivers_;
    }
    if (!stopping() && state.drives_timers) {
      next_driver = NudgeNextDriver();
      // If no thread can be started, timers wait until the next worker starts or the next timer is
      // armed, which reports the failure.
      if (drivers_ == 0 && wheel_->pending() > 0) KeepTimers().IgnoreError();
    }
    state.left = true;  // the last access: a thread that starts another one joins those that left
  }
  if (next_driver != nullptr) next_driver->WakeInKernel();
}

absl::Status StdToolbox::Core::KeepTimers() {
  keeper_started_ = true;
  std::unique_ptr<ToolboxWorker> worker = std::make_unique<TimerKeeper>();
  absl::StatusOr<std::shared_ptr<ThreadState>> keeper = StartThread({.name = absl::StrCat(name_, "-timers")}, worker);
  keeper_started_ = keeper.ok();
  return keeper.status();
}

template <typename ArmTask>
absl::StatusOr<TimerId> StdToolbox::Core::Arm(ArmTask&& arm) {
  if (IsForkedFromThreads()) return ForkedError("to arm a timer");
  std::shared_ptr<ThreadState> nudged;
  absl::StatusOr<TimerId> id = absl::UnknownError("");
  {
    MutexLock lock(mutex_);
    if (stopping()) return Stopping();
    if (drivers_ == 0) {
      absl::Status kept = KeepTimers();
      if (!kept.ok()) return kept;
    }
    id = arm(*wheel_);
    if (!id.ok()) return id;
    PublishNextDeadline();
    const bool armed_by_awake_driver = current_state != nullptr && current_state->core == this &&
                                       current_state->drives_timers && current_state->counted_awake;
    if (driver_ != nullptr && !armed_by_awake_driver && wheel_->NextDeadline() < driver_deadline_) {
      driver_deadline_ = wheel_->NextDeadline();
      if (driver_->word().Nudge()) nudged = driver_;
    }
  }
  if (nudged != nullptr) nudged->WakeInKernel();
  return id;
}

bool StdToolbox::Core::Cancel(TimerId id) {
  bool cancelled = false;
  std::optional<TimerTask> dropped;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  if (stopping()) return false;
  dropped = wheel_->Remove(id, cancelled);
  // The driver still wakes up at the old deadline: cancelling is far more frequent than that.
  return cancelled;
}

void StdToolbox::Core::Fire() {
  if (firing_) return;
  // All timers wait for the task that runs, on any thread: no task may block.
  const toolbox_internal::WorkerThreadScope scope(true);
  firing_ = true;
  wheel_->Expire(SteadyNow());
  while (!stopping()) {
    std::optional<Wheel::Due> due = wheel_->TakeExpired();
    if (!due.has_value()) break;
    mutex_.Unlock();
    due->payload(TimerFiring{.id = due->id, .deadline = due->deadline, .periods = due->periods});
    if (!due->periodic) due.reset();
    mutex_.Lock();
    if (!due.has_value() || (!stopping() && wheel_->Rearm(*due, SteadyNow()))) continue;
    // Cancelled while it ran, or the toolbox ends.
    mutex_.Unlock();
    due.reset();
    mutex_.Lock();
  }
  firing_ = false;
  PublishNextDeadline();
}

StdToolbox::StdToolbox(uint64_t seed, std::unique_ptr<Core> core) : RuntimeToolbox(seed), core_(std::move(core)) {}

// The threads still use the Core while it stops, so core_ is not null until then.
StdToolbox::~StdToolbox() {
  if (IsForkedFromThreads()) {
    toolbox_internal::KeepForEver(core_.release());
  } else {
    core_->Stop();
  }
}

int StdToolbox::HardwareThreads() {
  // 0 if it is unknown.
  const unsigned int threads = std::thread::hardware_concurrency();
  return threads == 0 ? 1 : static_cast<int>(threads);
}

absl::StatusOr<std::unique_ptr<StdToolbox>> StdToolbox::Make(const StdToolboxOptions& options) {
  if (options.name.empty() || options.name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("toolbox: the name has ", options.name.size(), " bytes; use 1 to ", kMaxNameBytes));
  }
  if (options.max_workers < 1 || options.max_workers > kMaxWorkers) {
    return absl::InvalidArgumentError(absl::StrCat("toolbox \"", options.name, "\": max_workers is ",
                                                   options.max_workers, "; use 1 to ", kMaxWorkers));
  }
  if (IsForkedFromThreads()) return ForkedError(absl::StrCat("to make toolbox \"", options.name, "\""));
  auto wheel = Core::Wheel::Make(
      {.resolution = options.timer_resolution, .max_timers = options.max_timers, .start = SteadyNow()});
  if (!wheel.ok()) return wheel.status();
  return std::unique_ptr<StdToolbox>(
      new StdToolbox(options.seed.has_value() ? *options.seed : SeedFromTheSystem(),
                     std::make_unique<Core>(options.name, options.max_workers, *std::move(wheel))));
}

Instant StdToolbox::Now() const { return SteadyNow(); }

absl::Time StdToolbox::WallNow() const { return absl::Now(); }

absl::Time StdToolbox::WallNowRoughly() const {
#if defined(CLOCK_REALTIME_COARSE)
  timespec now = {};
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0) return absl::TimeFromTimespec(now);
#endif
  return WallNow();
}

void StdToolbox::FireDueTimers() { core_->FireIfDue(); }

bool StdToolbox::CancelTimer(TimerId id) { return core_->Cancel(id); }

absl::StatusOr<WorkerHandle> StdToolbox::StartWorker(const WorkerOptions& options,
                                                     std::unique_ptr<ToolboxWorker> worker) {
  absl::Status checked = toolbox_internal::CheckWorkerOptions(options);
  if (!checked.ok()) return checked;
  if (worker == nullptr) return absl::InvalidArgumentError(absl::StrCat("worker \"", options.name, "\" is null"));
  return core_->Start(options, std::move(worker));
}

absl::StatusOr<TimerId> StdToolbox::Arm(Instant deadline, TimerTask task) {
  return core_->Arm([&](Core::Wheel& wheel) { return wheel.Insert(deadline, std::move(task)); });
}

absl::StatusOr<TimerId> StdToolbox::ArmPeriodic(Instant first, absl::Duration period, Cadence cadence, TimerTask task) {
  return core_->Arm([&](Core::Wheel& wheel) { return wheel.InsertPeriodic(first, period, cadence, std::move(task)); });
}

}  // namespace fraktor::inline v0
