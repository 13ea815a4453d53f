// SerialExecutor: runs posted tasks one after the other, in order, on a worker of its own. For
// example the I/O thread of a journal.
//
//   auto disk = SerialExecutor::Make(toolbox, {.name = "journal", .capacity = 1024}).value();
//   absl::Status accepted = disk->TryPost([&] { file.Append(batch); });   // ResourceExhausted: slow down
//   disk->Close();                                                       // rejects new tasks; accepted ones still run
//   absl::Status joined = disk->Join();
//
// It works on every toolbox. On a toolbox without threads the tasks run while it is pumped. On a
// toolbox with threads a task may block: the worker drives no timers.
//
// Limit: at most `capacity` tasks wait. If there are that many, TryPost returns ResourceExhausted,
// and Post destroys the task unrun, as Executor::Post says, and counts it. No caller ever waits for
// room. The limit does not apply to work that was accepted before: the executor accepts
// continuations of futures, and tasks that go on after they waited, even if it is full.
//
// Thread safety: any thread may call Post, TryPost, Close, pending and refused. Make, Join and the
// destructor follow the rules of the toolbox (on LocalToolbox: the pumping thread). If the toolbox
// is destroyed first, tasks that have not run are destroyed and later ones rejected. A task may
// destroy its executor, or cause that, even before the Post of that task has returned.
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
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor::inline v0 {

struct SerialExecutorOptions {
  // The name of the worker, at most 100 bytes.
  std::string name = "serial";
  // The most tasks that may wait, from 1 to 2^30.
  int64_t capacity = 65'536;
  // The most tasks in one step of the worker, from 1 to 65536.
  int tasks_per_step = 64;
  // The CPUs to run on: WorkerOptions::cpus.
  std::vector<int> cpus = {};
};

class SerialExecutor final : public Executor {
 public:
  // Returns InvalidArgument for a bad option, and the errors of RuntimeToolbox::StartWorker.
  static absl::StatusOr<std::unique_ptr<SerialExecutor>> Make(RuntimeToolbox& toolbox,
                                                              const SerialExecutorOptions& options);

  // Calls Close and Join. If Join fails (a toolbox without threads that cannot run now), tasks that
  // have not run are destroyed.
  ~SerialExecutor() override;

  // OK: `task` will run. ResourceExhausted: `capacity` tasks wait. FailedPrecondition: the executor
  // is closed. Without OK, `task` has been destroyed unrun.
  absl::Status TryPost(absl::AnyInvocable<void() &&> task);

  void Post(absl::AnyInvocable<void() &&> task) override { TryPost(std::move(task)).IgnoreError(); }

  // The lane may outlive the executor and its toolbox; then it rejects every step.
  std::shared_ptr<ExecutorLane> lane() override;

  // Rejects tasks from now on. Waiting tasks still run. May be called more than once, also by a
  // task.
  void Close();

  // Waits until the executor is closed and has run all tasks. Returns FailedPrecondition if one of
  // its own tasks calls it.
  absl::Status Join();

  // The number of tasks that wait, including those of the current step.
  size_t pending() const;

  // The number of tasks that were destroyed unrun: rejected, or dropped because the toolbox ended.
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
