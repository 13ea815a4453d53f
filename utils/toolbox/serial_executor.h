// SerialExecutor: runs what is posted, one after the other, in order, on a worker of its own. The I/O thread of a
// journal is one.
//
//   auto disk = SerialExecutor::Make(toolbox, {.name = "journal", .capacity = 1024}).value();
//   absl::Status taken = disk->TryPost([&] { file.Append(batch); });     // ResourceExhausted: slow down
//   disk->Close();                                                      // takes no more; what was taken still runs
//   disk->Join();
//
// Works on every toolbox; on one without threads the tasks run while it is pumped. A task may block where there are
// threads: the worker drives no timers.
//
// Bounded: at most `capacity` tasks wait. TryPost answers ResourceExhausted when they do; Post then destroys the task
// unrun, as Executor::Post says, and counts it. Nobody ever waits for room. Work that was taken on once is not lost to
// the limit: continuations of futures, and tasks that go on after they waited, get in even if it is full.
//
// Thread safety: Post, TryPost, Close, pending and refused from any thread. Make, Join and the destructor as the
// toolbox allows (on LocalToolbox: the pumping thread). If the toolbox is destroyed first, tasks that have not run are
// destroyed and later ones refused. A task may destroy its executor, or have it destroyed, even before the Post that took
// the task has returned.
#ifndef FRAKTOR_UTILS_TOOLBOX_SERIAL_EXECUTOR_H_
#define FRAKTOR_UTILS_TOOLBOX_SERIAL_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/utils/toolbox/executor.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/worker.h"

namespace fraktor::inline v0 {

struct SerialExecutorOptions {
  // The worker's name. At most 100 bytes.
  std::string name = "serial";
  // Tasks that may wait, from 1 to 2^30.
  int64_t capacity = 65'536;
  // Tasks in one step of the worker, from 1 to 65536.
  int tasks_per_step = 64;
  // The CPUs to run on: WorkerOptions::cpus.
  std::vector<int> cpus = {};
};

class SerialExecutor final : public Executor {
 public:
  // InvalidArgument for a bad option, and what the toolbox's StartWorker answers.
  static absl::StatusOr<std::unique_ptr<SerialExecutor>> Make(RuntimeToolbox& toolbox,
                                                              const SerialExecutorOptions& options);

  // Close and Join. If Join fails (a toolbox without threads that cannot run now), tasks that have not run are
  // destroyed.
  ~SerialExecutor() override;

  // OK: `task` will run. ResourceExhausted: `capacity` tasks wait. FailedPrecondition: closed. If it is not OK, `task`
  // has been destroyed unrun.
  absl::Status TryPost(absl::AnyInvocable<void() &&> task);

  void Post(absl::AnyInvocable<void() &&> task) override { TryPost(std::move(task)).IgnoreError(); }

  // May outlive the executor and its toolbox; then it refuses.
  std::shared_ptr<ExecutorLane> lane() override;

  // Takes no more tasks. Those that wait still run. May be called more than once, also by a task.
  void Close();

  // Waits until the executor is closed and has run everything. FailedPrecondition from one of its own tasks.
  absl::Status Join();

  // Tasks that wait, including those of the step that runs.
  size_t pending() const;

  // Tasks that were destroyed unrun: refused, or dropped because the toolbox ended.
  uint64_t refused() const;

 private:
  class Lane;  // the queue, shared with the worker
  class LaneWorker;

  explicit SerialExecutor(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {}

  const std::shared_ptr<Lane> lane_;
  WorkerHandle worker_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_SERIAL_EXECUTOR_H_
