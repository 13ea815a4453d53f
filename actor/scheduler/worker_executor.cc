#include "fraktor/actor/scheduler/worker_executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "fraktor/actor/scheduler/dispatcher_table.h"
#include "fraktor/actor/scheduler/mutex_coordinator.h"
#include "fraktor/actor/scheduler/work_stealing_coordinator.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {
namespace {

absl::Status CheckRange(const char* name, int value, int most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("WorkerExecutorOptions.", name, " is ", value, "; it must be from 1 to ", most));
}

}  // namespace

absl::Status WorkerExecutorOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckRange("workers", workers, kMaxWorkers));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("budget", budget, 1'000'000));
  return CheckRange("runs_per_step", runs_per_step, 1'000'000);
}

class WorkerExecutor::Loop final : public Worker {
 public:
  Loop(WorkerExecutor& executor, WorkerIndex index)
      : executor_(executor), worker_(*executor.coordinator_, index, executor.number_, executor.lifecycle_) {}

  Progress RunSome() override {
    if (executor_.stopping_.load(std::memory_order_relaxed)) return Progress::kDone;
    if (!worker_.has_cache()) worker_.AdoptThread();
    const WorkerScope scope(worker_);
    ReadyQueueCoordinator& coordinator = *executor_.coordinator_;
    for (int runs = 0; runs < executor_.options_.runs_per_step; ++runs) {
      ReadyNode* node = nullptr;
      if (coordinator.DrainReady(worker_.index, absl::MakeSpan(&node, 1)) == 0) return Progress::kIdle;
      const InvokeResult result = executor_.invoker_.InvokeBatch(worker_, static_cast<ActorSlot&>(*node),
                                                                 static_cast<uint32_t>(executor_.options_.budget));
      coordinator.HandleInvokeResult(worker_.index, *node, result);
    }
    return Progress::kBusy;
  }

  Progress BeforePark() override {
    if (executor_.stopping_.load(std::memory_order_seq_cst)) return Progress::kDone;
    return executor_.coordinator_->BeginWait(worker_.index) ? Progress::kIdle : Progress::kBusy;
  }

  void AfterPark() override { executor_.coordinator_->EndWait(worker_.index); }

 private:
  WorkerExecutor& executor_;
  ActorWorker worker_;
};

WorkerExecutor::WorkerExecutor(const WorkerExecutorOptions& options, ActorLifecycle& lifecycle)
    : options_(options), invoker_(lifecycle), lifecycle_(lifecycle) {
  const auto workers = static_cast<WorkerIndex>(options.workers);
  WorkerWaker& waker = *this;
  if (options.coordinator == CoordinatorKind::kMutex) {
    coordinator_ = std::make_unique<MutexCoordinator>(workers, waker);
  } else {
    coordinator_ = std::make_unique<WorkStealingCoordinator>(workers, waker);
  }
}

absl::StatusOr<std::unique_ptr<WorkerExecutor>> WorkerExecutor::Start(const WorkerExecutorOptions& options,
                                                                      RuntimeToolbox& toolbox,
                                                                      ActorLifecycle& lifecycle) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<WorkerExecutor> executor(new WorkerExecutor(options, lifecycle));
  FRAKTOR_ASSIGN_OR_RETURN(executor->number_, DispatcherTable::Open(*executor->coordinator_));
  executor->open_ = true;
  executor->handles_.resize(static_cast<size_t>(options.workers));
  for (WorkerIndex i = 0; i < static_cast<WorkerIndex>(options.workers); ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(executor->handles_[i], toolbox.StartWorker({.name = absl::StrCat(options.name, "-", i)},
                                                                        std::make_unique<Loop>(*executor, i)));
  }
  return executor;
}

WorkerExecutor::~WorkerExecutor() { Stop(); }

void WorkerExecutor::Stop() {
  if (!open_) return;
  open_ = false;
  DispatcherTable::Close(number_);
  stopping_.store(true, std::memory_order_seq_cst);
  for (const WorkerHandle& handle : handles_) {
    if (!handle.valid()) continue;
    handle.Wake();
    handle.Join().IgnoreError();
  }
}

}  // namespace fraktor::inline v0
