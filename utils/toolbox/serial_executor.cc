#include "fraktor/utils/toolbox/serial_executor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {
namespace {

using Task = absl::AnyInvocable<void() &&>;

constexpr int64_t kMaxCapacity = int64_t{1} << 30;
constexpr int kMaxTasksPerStep = 65'536;

}  // namespace

class SerialExecutor::Lane final : public ExecutorLane {
 public:
  Lane(std::string name, size_t capacity) : name_(std::move(name)), capacity_(capacity) {}

  // Called before anything is pushed.
  void SetWorker(WorkerHandle worker) { worker_ = std::move(worker); }

  // Moves from `task` only if it accepts it.
  absl::Status Push(Task& task, bool heed_capacity = true) {
    MutexLock lock(mutex_);
    if (closed_) {
      ++refused_;
      return absl::FailedPreconditionError(
          absl::StrCat("executor \"", name_, "\" is closed; post before Close, or to another executor"));
    }
    if (heed_capacity && waiting_.size() + in_hand_ >= capacity_) {
      ++refused_;
      return absl::ResourceExhaustedError(absl::StrCat("executor \"", name_, "\" has ", capacity_,
                                                       " tasks waiting, its capacity; post less or raise capacity"));
    }
    waiting_.push_back(std::move(task));
    return absl::OkStatus();
  }

  void PostStep(Task step) override {
    // The worker and its toolbox may have ended. The lane is closed then, and Wake has no effect.
    if (Push(step, /*heed_capacity=*/false).ok()) worker_.Wake();
  }

  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }

  // Swaps all waiting tasks into `batch`, which is empty. Returns false if no task waits and none
  // ever will.
  bool Take(std::vector<Task>& batch) {
    MutexLock lock(mutex_);
    batch.swap(waiting_);
    in_hand_ = batch.size();
    return !batch.empty() || !closed_;
  }

  void MarkRun(size_t tasks) {
    MutexLock lock(mutex_);
    in_hand_ -= tasks;
  }

  // Rejects tasks from now on, and returns the waiting ones, for the caller to destroy. `unrun` of
  // the tasks that the worker has taken will not run either.
  std::vector<Task> Abandon(size_t unrun) {
    MutexLock lock(mutex_);
    closed_ = true;
    in_hand_ -= unrun;
    refused_ += waiting_.size() + unrun;
    return std::exchange(waiting_, {});
  }

  size_t pending() const {
    MutexLock lock(mutex_);
    return waiting_.size() + in_hand_;
  }
  uint64_t refused() const {
    MutexLock lock(mutex_);
    return refused_;
  }

 private:
  const std::string name_;
  const size_t capacity_;
  WorkerHandle worker_;

  mutable Mutex mutex_;
  std::vector<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t in_hand_ ABSL_GUARDED_BY(mutex_) = 0;  // taken by the worker and not yet run
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

class SerialExecutor::LaneWorker final : public ToolboxWorker {
 public:
  LaneWorker(std::shared_ptr<Lane> lane, size_t tasks_per_step)
      : lane_(std::move(lane)), tasks_per_step_(tasks_per_step) {}

  // If the worker is not done, the toolbox is ending.
  ~LaneWorker() override { const std::vector<Task> dropped = lane_->Abandon(batch_.size() - next_); }

  Progress RunSome() override {
    if (next_ == batch_.size()) {
      batch_.clear();
      next_ = 0;
      if (!lane_->Take(batch_)) return Progress::kDone;
      if (batch_.empty()) return Progress::kIdle;
    }
    size_t ran = 0;
    while (ran < tasks_per_step_ && next_ < batch_.size()) {
      Task task = std::move(batch_[next_++]);
      std::move(task)();
      ++ran;
    }
    lane_->MarkRun(ran);
    return Progress::kBusy;
  }

 private:
  const std::shared_ptr<Lane> lane_;
  const size_t tasks_per_step_;
  std::vector<Task> batch_;
  size_t next_ = 0;
};

absl::StatusOr<std::unique_ptr<SerialExecutor>> SerialExecutor::Make(RuntimeToolbox& toolbox,
                                                                     const SerialExecutorOptions& options) {
  if (options.capacity < 1 || options.capacity > kMaxCapacity) {
    return absl::InvalidArgumentError(
        absl::StrCat("executor \"", options.name, "\": capacity is ", options.capacity, "; use 1 to ", kMaxCapacity));
  }
  if (options.tasks_per_step < 1 || options.tasks_per_step > kMaxTasksPerStep) {
    return absl::InvalidArgumentError(absl::StrCat("executor \"", options.name, "\": tasks_per_step is ",
                                                   options.tasks_per_step, "; use 1 to ", kMaxTasksPerStep));
  }
  auto lane = std::make_shared<Lane>(options.name, static_cast<size_t>(options.capacity));
  std::unique_ptr<SerialExecutor> executor(new SerialExecutor(lane));
  absl::StatusOr<WorkerHandle> worker =
      toolbox.StartWorker({.name = options.name, .drives_timers = false, .cpus = options.cpus},
                          std::make_unique<LaneWorker>(lane, static_cast<size_t>(options.tasks_per_step)));
  if (!worker.ok()) return worker.status();
  lane->SetWorker(*worker);
  executor->worker_ = *std::move(worker);
  return executor;
}

SerialExecutor::~SerialExecutor() {
  if (!worker_.valid()) return;
  Close();
  if (!Join().ok()) lane_->Abandon(0);
}

absl::Status SerialExecutor::TryPost(Task task) {
  // As soon as the task is in the lane, it may run and destroy this executor. So nothing of the
  // executor is used after that.
  const WorkerHandle worker = worker_;
  absl::Status pushed = lane_->Push(task);
  if (pushed.ok()) worker.Wake();
  return pushed;
}

std::shared_ptr<ExecutorLane> SerialExecutor::lane() { return lane_; }

void SerialExecutor::Close() {
  const WorkerHandle worker = worker_;  // as in TryPost: a thread that waits for the end may destroy this executor
  lane_->Close();
  worker.Wake();
}

absl::Status SerialExecutor::Join() { return worker_.Join(); }

size_t SerialExecutor::pending() const { return lane_->pending(); }

uint64_t SerialExecutor::refused() const { return lane_->refused(); }

}  // namespace fraktor::inline v0
