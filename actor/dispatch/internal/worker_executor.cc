#include "fraktor/actor/dispatch/internal/worker_executor.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "fraktor/actor/run_queue/internal/mutex_coordinator.h"
#include "fraktor/actor/run_queue/internal/work_stealing_coordinator.h"
#include "fraktor/actor/send/internal/dispatcher_table.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::actor_internal {
namespace {

constexpr size_t kMaxNameBytes = 80;
// A longer timeout counts as infinite, because its sum with the time of the clock could overflow.
constexpr absl::Duration kForever = absl::Hours(24 * 365);

absl::Status CheckRange(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("WorkerExecutorOptions.", name, " is ", value, "; it must be from ", least, " to ", most));
}

}  // namespace

absl::Status WorkerExecutorOptions::Validate() const {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("WorkerExecutorOptions.name has ", name.size(), " bytes; it must have from 1 to ", kMaxNameBytes));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckRange("workers", workers.value_or(1), 1, kMaxWorkers));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("budget", budget, 1, 1'000'000));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("runs_per_step", runs_per_step, 1, 1'000'000));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("idle_rounds", idle_rounds, 0, 1'000'000));
  FRAKTOR_RETURN_IF_ERROR(toolbox_internal::CheckWorkerOptions({.name = name, .cpus = cpus, .nice = nice}));
  for (const auto& middleware_part : middleware) {
    if (middleware_part == nullptr)
      return absl::InvalidArgumentError("WorkerExecutorOptions.middleware contains null; remove it");
  }
  return watch.Validate();
}

class WorkerExecutor::Loop final : public ToolboxWorker {
 public:
  Loop(WorkerExecutor& executor, ActorWorker& worker) : executor_(executor), worker_(worker) {}

  Progress RunSome() override {
    const State state = executor_.state_.load(std::memory_order_acquire);
    if (state == State::kStarting) return Progress::kIdle;
    if (state == State::kStopping) return End();
    if (!worker_.has_thread()) Begin();
    // A toolbox without threads may be pumped by another thread than the last time.
    if (&worker_.cache() != &NodeCache::OfThisThread()) worker_.AdoptThread();
    return RunActors(worker_, executor_.invoker_, *executor_.coordinator_);
  }

  Progress BeforePark() override {
    const State state = executor_.state_.load(std::memory_order_seq_cst);
    if (state == State::kStarting) return Progress::kIdle;
    if (state == State::kStopping) return End();
    if (!worker_.has_thread()) return Progress::kBusy;  // The state has just become kRunning.
    if (!executor_.coordinator_->BeginWait(worker_.index)) return Progress::kBusy;
    waits_ = true;
    if (worker_.metrics != nullptr) worker_.metrics->EndBusy(NowNs());
    if (executor_.watch_ != nullptr) executor_.watch_->OnAsleep();
    executor_.asleep_.fetch_add(1, std::memory_order_seq_cst);
    executor_.NoticeQuiet();
    return Progress::kIdle;
  }

  void AfterPark() override {
    if (!std::exchange(waits_, false)) return;
    executor_.asleep_.fetch_sub(1, std::memory_order_seq_cst);
    executor_.coordinator_->EndWait(worker_.index);
    Awake();
  }

 private:
  using Placement = ReadyQueueCoordinator::Placement;

  // Takes references, so that the compiler knows that they do not change.
  Progress RunActors(ActorWorker& worker, MessageInvoker& invoker, ReadyQueueCoordinator& coordinator) {
    const WorkerScope scope(worker);
    const auto budget = static_cast<uint32_t>(executor_.options_.budget);
    const std::atomic<State>& state = executor_.state_;
    const int most_runs = executor_.options_.runs_per_step;
    ActorSlot* slot = nullptr;
    uint32_t streak = streak_;
    for (int runs = 0; runs < most_runs; ++runs) {
      if (state.load(std::memory_order_relaxed) == State::kStopping) break;
      if (slot == nullptr) {
        slot = Drain(worker, coordinator);
        if (slot == nullptr) {
          // The destructor of the last message may have sent a message. Then the worker does not
          // sleep.
          worker.outbox.Flush();
          worker.CountUnseen(static_cast<uint32_t>(runs));
          CountPutBack(nullptr);
          return Progress::kIdle;
        }
        if (slot != carried_) streak = 0;
        carried_ = nullptr;
        worker.turn_state.uncounted = CountPutBack(slot);
        worker.slice.Begin(budget, kStreak);
      }
      if (invoker.Run(worker, *slot) == InvokeResult::kYielded) worker.Register(*slot, Placement::kYield);
      slot = worker.outbox.TakeDeferred();
      if (slot == nullptr) continue;
      // The worker runs the deferred target of the last actor at once, before the ready actors: its
      // mailbox is in the cache, and it needs no queue. But only for a streak, and not while a
      // foreign actor waits.
      worker.turn_state.uncounted = worker.outbox.TakeUncounted();
      if (slot->dispatcher == worker.dispatcher) [[likely]] {
        // The result of WantsDrain is not kept for later: GCC 12 would spill it to the stack, and
        // the exchange of the next message would wait for that store, as for all earlier ones.
        if (++streak <= worker.slice.streak() && !coordinator.WantsDrain()) [[likely]]
          continue;
        if (!coordinator.HasReady(worker.index)) {
          // Nobody waits, so there is no need for the way through the queue.
          worker.slice.Begin(budget, kStreak);
          streak = 0;
          continue;
        }
      }
      PutBack(*slot);
      worker.Register(*slot, coordinator.WantsDrain() ? Placement::kBack : Placement::kYield);
      slot = nullptr;
    }
    if (slot != nullptr) {
      PutBack(*slot);
      carried_ = slot;
      streak_ = streak;
      coordinator.RegisterReady(worker.index, *slot, Placement::kNext);
    }
    // A run usually sends one message that does not wait.
    worker.CountUnseen(static_cast<uint32_t>(most_runs));
    return Progress::kBusy;
  }

  // The worker queues an actor that it could have run at once. The message of that actor waits,
  // unless the actor is the next one all the same.
  void PutBack(const ActorSlot& slot) {
    if (worker_.turn_state.uncounted == 0) return;
    put_back_ = &slot;
    put_back_type_ = slot.type.load(std::memory_order_relaxed);
  }
  // The worker runs `next` next. Returns the number of its messages that are not counted yet.
  uint32_t CountPutBack(const ActorSlot* next) {
    if (put_back_ == nullptr) return 0;
    if (std::exchange(put_back_, nullptr) == next) return 1;
    if (worker_.metrics != nullptr) worker_.metrics->CountEnqueued(put_back_type_, 1);
    return 0;
  }

  static ActorSlot* Drain(const ActorWorker& worker, ReadyQueueCoordinator& coordinator) {
    ReadyNode* node = nullptr;
    coordinator.DrainReady(worker.index, absl::MakeSpan(&node, 1));
    return static_cast<ActorSlot*>(node);
  }

  void Begin() {
    worker_.AdoptThread();
    Awake();
  }
  // Ends the worker.
  Progress End() {
    if (executor_.heir_.has_value()) {
      // Another executor may have had this number before, so a late message for one of its actors
      // may have arrived here.
      while (ActorSlot* const slot = Drain(worker_, *executor_.coordinator_)) DispatcherTable::RegisterOrEmpty(*slot);
    }
    if (worker_.metrics != nullptr) worker_.metrics->EndBusy(NowNs());
    return Progress::kDone;
  }
  void Awake() {
    if (worker_.metrics != nullptr) worker_.metrics->BeginBusy(NowNs());
    if (executor_.watch_ != nullptr) executor_.watch_->OnAwake();
  }
  int64_t NowNs() const { return worker_.toolbox->Now().nanoseconds(); }

  // With 48, actors that send to each other got 37 times as many turns as an actor of the queue; a
  // factor of 32 is allowed (SCH-14).
  static constexpr uint32_t kStreak = 32;

  WorkerExecutor& executor_;
  ActorWorker& worker_;
  bool waits_ = false;  // The coordinator knows that the worker sleeps.
  // The number of runs in a row before the ready actors, at the end of the last step, and the actor
  // that was next then: with it the streak continues. The pointer is only compared, because another
  // worker may run the actor.
  uint32_t streak_ = 0;
  const ActorSlot* carried_ = nullptr;
  // The pointer is only compared, because another worker may run the actor.
  const ActorSlot* put_back_ = nullptr;
  ObservedId put_back_type_ = 0;
};

WorkerExecutor::WorkerExecutor(const WorkerExecutorOptions& options, const ExecutorServices& services)
    : options_(options),
      workers_wanted_(options.workers.value_or(1)),
      services_(services),
      invoker_(services.lifecycle, options.middleware) {
  const auto workers = static_cast<WorkerIndex>(workers_wanted_);
  WorkerWaker& waker = *this;
  RuntimeToolbox& toolbox = services.toolbox;
  if (toolbox.chooses()) {
    coordinator_ = std::make_unique<MutexCoordinator>(
        workers, waker, [&toolbox](size_t ready) { return static_cast<size_t>(toolbox.Choose(ready)); });
  } else if (options.coordinator == CoordinatorKind::kMutex) {
    coordinator_ = std::make_unique<MutexCoordinator>(workers, waker);
  } else {
    coordinator_ = std::make_unique<WorkStealingCoordinator>(workers, waker);
  }
}

absl::Status WorkerExecutor::AddMetrics() {
  metrics_.resize(static_cast<size_t>(workers_wanted_), nullptr);
  if (services_.hub == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < metrics_.size(); ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(metrics_[i],
                             services_.hub->AddWorker(absl::StrCat(options_.name, "-", i), services_.toolbox.Now()));
  }
  FRAKTOR_ASSIGN_OR_RETURN(
      ready_gauge_, services_.hub->AddGauge("scheduler.ready_queue.depth", {{"dispatcher", options_.name}},
                                            [this] { return static_cast<double>(coordinator_->ReadyCountHint()); }));
  return absl::OkStatus();
}

absl::Status WorkerExecutor::AddGuest() {
  if (!options_.takes_guests || !services_.toolbox.has_threads()) return absl::OkStatus();
  WorkerMetrics* metrics = nullptr;
  if (services_.hub != nullptr) {
    FRAKTOR_ASSIGN_OR_RETURN(metrics,
                             services_.hub->AddWorker(absl::StrCat(options_.name, "-guest"), services_.toolbox.Now()));
    metrics_.push_back(metrics);
  }
  guest_ = std::make_unique<ActorWorker>(WorkerSetup{.coordinator = *coordinator_,
                                                     .lifecycle = services_.lifecycle,
                                                     .index = kForeign,
                                                     .dispatcher = number_,
                                                     .toolbox = &services_.toolbox,
                                                     .slots = &services_.mailboxes.slots(),
                                                     .promises = &services_.mailboxes.promises(),
                                                     .metrics = metrics});
  GuestHost& host = *this;
  guest_seat_ = std::make_shared<GuestSeat>(host, number_);
  return absl::OkStatus();
}

void WorkerExecutor::RunAsGuest(absl::Span<ActorSlot* const> actors) {
  ActorWorker& worker = *guest_;
  const toolbox_internal::WorkerThreadScope is_worker(true);
  if (!worker.has_thread() || &worker.cache() != &NodeCache::OfThisThread()) worker.AdoptThread();
  if (worker.metrics != nullptr) worker.metrics->BeginBusy(services_.toolbox.Now().nanoseconds());
  if (watch_ != nullptr) watch_->OnAwake();
  {
    const WorkerScope scope(worker);
    worker.slice.Begin(static_cast<uint32_t>(options_.budget), static_cast<uint32_t>(options_.runs_per_step));
    uint32_t runs = 0;
    for (ActorSlot* const actor : actors) {
      worker.turn_state.uncounted = 0;  // The sender has counted its messages.
      for (ActorSlot* slot = actor; slot != nullptr;) {
        const bool is_over =
            runs >= worker.slice.streak() || state_.load(std::memory_order_relaxed) == State::kStopping;
        if (is_over || slot->dispatcher != number_) {
          if (worker.turn_state.uncounted != 0) worker.CountWaiting(*slot, worker.turn_state.uncounted);
          DispatcherTable::RegisterOrEmpty(*slot);
          break;
        }
        ++runs;
        if (invoker_.Run(worker, *slot) == InvokeResult::kYielded) DispatcherTable::RegisterOrEmpty(*slot);
        slot = worker.outbox.TakeDeferred();
        if (slot != nullptr) worker.turn_state.uncounted = worker.outbox.TakeUncounted();
      }
    }
    // The destructor of the last message may have sent a message.
    worker.outbox.Flush();
    worker.CountUnseen(runs);
  }
  if (watch_ != nullptr) watch_->OnAsleep();
  if (worker.metrics != nullptr) worker.metrics->EndBusy(services_.toolbox.Now().nanoseconds());
}

absl::StatusOr<std::unique_ptr<WorkerExecutor>> WorkerExecutor::Start(const WorkerExecutorOptions& options,
                                                                      const ExecutorServices& services) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<WorkerExecutor> executor(new WorkerExecutor(options, services));
  FRAKTOR_ASSIGN_OR_RETURN(executor->number_, DispatcherTable::Open(*executor->coordinator_));
  executor->has_number_ = true;
  executor->open_.store(true, std::memory_order_relaxed);
  FRAKTOR_RETURN_IF_ERROR(executor->AddMetrics());
  std::vector<ActorWorker*> watched;
  for (WorkerIndex i = 0; i < static_cast<WorkerIndex>(executor->workers_wanted_); ++i) {
    executor->workers_.push_back(std::make_unique<ActorWorker>(WorkerSetup{.coordinator = *executor->coordinator_,
                                                                           .lifecycle = services.lifecycle,
                                                                           .index = i,
                                                                           .dispatcher = executor->number_,
                                                                           .toolbox = &services.toolbox,
                                                                           .slots = &services.mailboxes.slots(),
                                                                           .promises = &services.mailboxes.promises(),
                                                                           .metrics = executor->metrics_[i]}));
    watched.push_back(executor->workers_.back().get());
  }
  FRAKTOR_RETURN_IF_ERROR(executor->AddGuest());
  if (executor->guest_ != nullptr) watched.push_back(executor->guest_.get());
  if (services.toolbox.has_threads()) {
    executor->watch_ = std::make_shared<WorkerWatch>(options.watch, services.toolbox, std::move(watched));
    FRAKTOR_RETURN_IF_ERROR(executor->watch_->Start());
  }
  executor->handles_.resize(static_cast<size_t>(executor->workers_wanted_));
  for (WorkerIndex i = 0; i < static_cast<WorkerIndex>(executor->workers_wanted_); ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(executor->handles_[i],
                             services.toolbox.StartWorker({.name = absl::StrCat(options.name, "-", i),
                                                           .idle_rounds = options.idle_rounds,
                                                           .drives_timers = !options.may_block,
                                                           .cpus = options.cpus,
                                                           .nice = options.nice},
                                                          std::make_unique<Loop>(*executor, *executor->workers_[i])));
  }
  // After all handles are set: a worker that finds work wakes others by their handles.
  executor->state_.store(State::kRunning, std::memory_order_seq_cst);
  for (const WorkerHandle& handle : executor->handles_) handle.Wake();
  executor->is_started_ = true;
  return executor;
}

WorkerExecutor::~WorkerExecutor() {
  Stop();
  // Only the queue still holds the mailboxes of ready actors; no worker of this executor runs them.
  for (WorkerIndex i = 0; i < static_cast<WorkerIndex>(workers_.size()); ++i) {
    ReadyNode* node = nullptr;
    while (coordinator_->DrainReady(i, absl::MakeSpan(&node, 1)) == 1) {
      auto& slot = static_cast<ActorSlot&>(*node);
      heir_.has_value() ? DispatcherTable::RegisterOrEmpty(slot) : DispatcherTable::Empty(slot);
    }
  }
  if (has_number_) {
    if (heir_.has_value() || !is_started_) {
      DispatcherTable::Release(number_);
    } else {
      services_.mailboxes.KeepDispatcher(number_);
    }
  }
  ready_gauge_ = {};
  if (services_.hub != nullptr) {
    for (const WorkerMetrics* const metrics : metrics_) services_.hub->RemoveWorker(metrics);
  }
}

void WorkerExecutor::StopSoonFor(uint16_t heir) {
  heir_ = heir;
  StopSoon();
}

void WorkerExecutor::StopSoon() {
  if (!open_.exchange(false, std::memory_order_acq_rel)) return;
  DispatcherTable::Close(number_, heir_);
  if (watch_ != nullptr) watch_->Stop();
  state_.store(State::kStopping, std::memory_order_seq_cst);
  {
    MutexLock lock(quiet_mutex_);
    quiet_.notify_all();
  }
  for (const WorkerHandle& handle : handles_) {
    if (handle.valid()) handle.Wake();
  }
}

bool WorkerExecutor::IsStopped() const {
  if (open_.load(std::memory_order_acquire)) return false;
  for (const WorkerHandle& handle : handles_) {
    if (handle.valid() && !handle.done()) return false;
  }
  return guest_seat_ == nullptr || !guest_seat_->is_taken();
}

void WorkerExecutor::Stop() {
  StopSoon();
  for (const WorkerHandle& handle : handles_) {
    if (handle.valid()) handle.Join().IgnoreError();
  }
  if (guest_seat_ != nullptr) guest_seat_->Close();
  if (watch_ != nullptr) watch_->AwaitEnd();
}

// Checks the guest first: it schedules actors and then leaves.
bool WorkerExecutor::IsQuiet() const {
  if (guest_seat_ != nullptr && guest_seat_->is_taken()) return false;
  return asleep_.load(std::memory_order_seq_cst) == workers_wanted_ && coordinator_->ReadyCountHint() == 0;
}

bool WorkerExecutor::IsRunning(const ActorSlot& slot) const {
  for (const std::unique_ptr<ActorWorker>& worker : workers_) {
    if (worker->turn_state.running() == &slot) return true;
  }
  return guest_ != nullptr && guest_->turn_state.running() == &slot;
}

uint64_t WorkerExecutor::runs() const {
  uint64_t runs = guest_ == nullptr ? 0 : guest_->runs();
  for (const std::unique_ptr<ActorWorker>& worker : workers_) runs += worker->runs();
  return runs;
}

void WorkerExecutor::NoticeQuiet() {
  if (awaited_.load(std::memory_order_seq_cst) == 0 || !IsQuiet()) return;
  MutexLock lock(quiet_mutex_);
  quiet_.notify_all();
}

bool WorkerExecutor::AwaitQuiet(absl::Duration timeout) {
  if (!services_.toolbox.has_threads()) return coordinator_->ReadyCountHint() == 0;
  bool quiet = false;
  // A stopped executor does not become quiet, because no worker runs its ready actors.
  const auto is_over = [this, &quiet] {
    quiet = IsQuiet();
    return quiet || state_.load(std::memory_order_seq_cst) == State::kStopping;
  };
  awaited_.fetch_add(1, std::memory_order_seq_cst);
  {
    MutexLock lock(quiet_mutex_);
    if (timeout > kForever) {
      quiet_.wait(lock, is_over);
    } else {
      quiet_.wait_for(lock, absl::ToChronoNanoseconds(timeout), is_over);
    }
  }
  awaited_.fetch_sub(1, std::memory_order_seq_cst);
  return quiet;
}

}  // namespace fraktor::inline v0::actor_internal
