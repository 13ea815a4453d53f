#include "fraktor/actor/dispatch/blocking_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;

namespace {

constexpr size_t kMaxNameBytes = 80;

absl::Status CheckRange(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("BlockingPoolOptions.", name, " is ", value, "; it must be from ", least, " to ", most));
}

}  // namespace

absl::Status BlockingPoolOptions::Validate() const {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("BlockingPoolOptions.name has ", name.size(), " bytes; it must have from 1 to ", kMaxNameBytes));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_threads", max_threads, 1, 1024));
  return CheckRange("max_queued", max_queued, 1, 1'000'000);
}

class BlockingPool::Thread final : public ToolboxWorker {
 public:
  Thread(BlockingPool& pool, size_t number) : pool_(pool), number_(number) {}

  Progress RunSome() override {
    Work work;
    {
      MutexLock lock(pool_.mutex_);
      if (pool_.stopped_) return Progress::kDone;
      if (pool_.queue_.empty()) return Progress::kIdle;
      work = std::move(pool_.queue_.front());
      pool_.queue_.pop_front();
      ++pool_.working_;
    }
    Run(work);
    work = nullptr;  // Destroyed before the thread counts as free.
    MutexLock lock(pool_.mutex_);
    --pool_.working_;
    return Progress::kBusy;
  }

  Progress BeforePark() override {
    MutexLock lock(pool_.mutex_);
    if (pool_.stopped_) return Progress::kDone;
    if (!pool_.queue_.empty()) return Progress::kBusy;
    pool_.seats_[number_].sleeps = true;
    return Progress::kIdle;
  }

  void AfterPark() override {
    MutexLock lock(pool_.mutex_);
    pool_.seats_[number_].sleeps = false;
  }

 private:
  // An exception ends the program: no caller could receive it.
  static void Run(Work& work) noexcept { work(); }

  BlockingPool& pool_;
  const size_t number_;
};

BlockingPool::BlockingPool(const BlockingPoolOptions& options, RuntimeToolbox& toolbox)
    : options_(options), toolbox_(toolbox) {}

absl::StatusOr<std::unique_ptr<BlockingPool>> BlockingPool::Start(const BlockingPoolOptions& options,
                                                                  RuntimeToolbox& toolbox) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  return std::unique_ptr<BlockingPool>(new BlockingPool(options, toolbox));
}

BlockingPool::~BlockingPool() { Stop(); }

absl::Status BlockingPool::StartThread() {
  // The caller holds the lock until the seat is there, which the new thread looks for.
  const size_t number = seats_.size();
  FRAKTOR_ASSIGN_OR_RETURN(WorkerHandle handle, toolbox_.StartWorker({.name = absl::StrCat(options_.name, "-", number),
                                                                      .drives_timers = false},
                                                                     std::make_unique<Thread>(*this, number)));
  seats_.push_back({.handle = std::move(handle)});
  return absl::OkStatus();
}

absl::Status BlockingPool::Submit(Work work) {
  WorkerHandle woken;
  {
    MutexLock lock(mutex_);
    if (stopped_) {
      return absl::FailedPreconditionError(absl::StrCat("blocking pool \"", options_.name, "\" has been stopped"));
    }
    // A thread that neither works nor sleeps checks the queue before it sleeps.
    const size_t free_threads = seats_.size() - working_;
    if (queue_.size() >= free_threads && seats_.size() < static_cast<size_t>(options_.max_threads)) {
      absl::Status started = StartThread();
      // Without a new thread, the existing ones run the work.
      if (!started.ok() && seats_.empty()) return started;
    }
    const size_t waiting = queue_.size() - std::min(queue_.size(), seats_.size() - working_);
    if (waiting >= static_cast<size_t>(options_.max_queued)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("blocking pool \"", options_.name, "\" is full: ", working_, " pieces of work run and ",
                       queue_.size(), " wait; raise max_queued or max_threads, or submit less at a time"));
    }
    queue_.push_back(std::move(work));
    const auto sleeper = std::find_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.sleeps; });
    if (sleeper != seats_.end()) {
      sleeper->sleeps = false;
      woken = sleeper->handle;
    }
  }
  if (woken.valid()) woken.Wake();
  return absl::OkStatus();
}

void BlockingPool::Stop() {
  std::deque<Work> dropped;
  std::vector<WorkerHandle> handles;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    dropped.swap(queue_);
    for (const Seat& seat : seats_) handles.push_back(seat.handle);
  }
  dropped.clear();  // Without the lock: a waiter that is told may call Submit, which refuses.
  for (const WorkerHandle& handle : handles) handle.Wake();
  for (const WorkerHandle& handle : handles) handle.Join().IgnoreError();
}

size_t BlockingPool::threads() const {
  MutexLock lock(mutex_);
  return seats_.size();
}

size_t BlockingPool::queued() const {
  MutexLock lock(mutex_);
  return queue_.size();
}

void BlockingPool::FlushSender() {
  ActorWorker* const worker = ActorWorker::Current();
  if (worker != nullptr && worker->turn_state.self() != ActorRef()) worker->outbox.Flush();
}

namespace blocking_pool_internal {

absl::Status StatusOfException() {
  return absl::InternalError(
      absl::StrCat("work on a blocking pool ended by an ", StatusFromException(CaptureException()).message()));
}

absl::Status StoppedError() { return absl::CancelledError("the blocking pool was stopped before it ran this work"); }

}  // namespace blocking_pool_internal

}  // namespace fraktor::inline v0
