// ToolboxWorker: the work of a thread of the runtime, divided into steps. WorkerHandle: wakes a
// worker and waits for its end.
//
//   class Printer : public ToolboxWorker {
//    public:
//     explicit Printer(Lines& lines) : lines_(lines) {}
//     Progress RunSome() override {
//       std::optional<std::string> line = lines_.TryPop();
//       if (!line) return lines_.IsClosed() ? Progress::kDone : Progress::kIdle;
//       std::cout << *line;
//       return Progress::kBusy;
//     }
//
//    private:
//     Lines& lines_;        // guarded by a mutex
//   };
//
//   WorkerHandle printer = toolbox.StartWorker({.name = "printer"}, std::make_unique<Printer>(lines)).value();
//   lines.Push("hello\n");
//   printer.Wake();
//
// A toolbox with threads gives each worker a thread; on a toolbox without threads the workers take
// turns. So a worker never waits inside a step: it returns kIdle, is parked, and runs again after
// the next Wake.
//
// No wake-up is lost. Before the toolbox parks a worker, it publishes that fact, so that a Wake
// from then on has an effect. Then it asks the worker again, by BeforePark, whether there is really
// nothing to do. So either BeforePark sees the work that a caller published before Wake, or Wake
// sees that the worker is parking. This is Dekker's argument, and it needs one total order. Publish
// work by a sequentially consistent operation, or under a mutex that RunSome and BeforePark take
// too, and check for it in BeforePark in the same way. A relaxed or release store is not enough.
#ifndef FRAKTOR_UTILS_TOOLBOX_TOOLBOX_WORKER_H_
#define FRAKTOR_UTILS_TOOLBOX_TOOLBOX_WORKER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/utils/toolbox/internal/parking_word.h"

namespace fraktor::inline v0 {

// The toolbox calls all methods from one thread at a time, which is the worker's own on a toolbox
// with threads. They must not throw. The toolbox destroys the worker, on the same thread, as soon
// as it is done.
class ToolboxWorker {
 public:
  enum class Progress {
    kBusy,  // did something, or there may be more: call again soon
    kIdle,  // found nothing to do: park
    kDone,  // never call again
  };

  virtual ~ToolboxWorker() = default;

  // Does a bounded amount of work. On a toolbox with threads, due timers and the end of the toolbox
  // wait for it to return.
  virtual Progress RunSome() = 0;

  // Called after kIdle, when the toolbox has published that this worker is about to park. Checks
  // again everything that a Wake may have announced. kIdle parks the worker. A scheduler that
  // counts idle and searching workers publishes the counts here, and then checks; if it finds work,
  // it takes the counts back and returns kBusy.
  virtual Progress BeforePark() { return RunSome(); }

  // Called when the worker runs again after a BeforePark that returned kIdle, whether it really
  // slept or not. Not called if the toolbox ends.
  virtual void AfterPark() {}
};

struct WorkerOptions {
  // For debuggers, errors and traces; Linux shows the first 15 bytes as the name of the thread. If
  // it is empty, the toolbox makes a name. At most 100 bytes.
  std::string name = {};
  // How many times in a row RunSome may return kIdle before the worker is parked, from 0 to
  // 1'000'000. Waking a parked thread on another core costs the waker about 8 us and the sleeper 25
  // us; checking again occupies a core. Only toolboxes with threads use it.
  int idle_rounds = 0;
  // Whether this worker may fire timers, between its steps and while it is parked. Set false if
  // steps block on I/O: timers would be late.
  bool drives_timers = true;
  // The CPUs that the thread may run on, from 0 to 1023. Empty: those of the thread that starts the
  // worker. A toolbox without threads checks the numbers, and ignores them.
  std::vector<int> cpus = {};
  // The nice value of the thread, from -20 (runs first) to 19. Not given: that of the thread that
  // starts the worker. A toolbox without threads checks it, and ignores it.
  //
  // A worker that is started by a worker with `cpus` or `nice` of its own does not take them over:
  // it gets those of the thread that has made the toolbox. Where the process may not lower a nice
  // value, it keeps the higher one.
  std::optional<int> nice = std::nullopt;
};

// True if other work waits for this thread: it is a worker that drives timers, or a thread that is
// pumping a toolbox or firing timers. Such a thread must not block.
bool IsWorkerThread();

// True if this thread drives virtual time: it has made, or was the last to pump, a toolbox without
// threads that still exists. While such a thread blocks, no worker and no timer of that toolbox
// runs.
bool DrivesVirtualTime();

namespace toolbox_internal {

// Knows which thread drives a toolbox without threads: the thread that makes it, and then the last
// thread that called MoveToThisThread().
class VirtualTimeDriver {
 public:
  VirtualTimeDriver();
  ~VirtualTimeDriver();
  VirtualTimeDriver(const VirtualTimeDriver&) = delete;
  VirtualTimeDriver& operator=(const VirtualTimeDriver&) = delete;

  // This thread drives from now on.
  void MoveToThisThread();

 private:
  // The number of toolboxes that a thread drives. Shared, since the thread may end before the
  // toolbox.
  using Count = std::shared_ptr<std::atomic<int>>;
  static Count& OfThisThread();
  friend bool v0::DrivesVirtualTime();

  Count count_;
};

// IsWorkerThread() returns `is_worker` on this thread until the scope ends.
class WorkerThreadScope {
 public:
  explicit WorkerThreadScope(bool is_worker);
  ~WorkerThreadScope();
  WorkerThreadScope(const WorkerThreadScope&) = delete;
  WorkerThreadScope& operator=(const WorkerThreadScope&) = delete;

 private:
  const bool outer_;
};

// Returns InvalidArgument, naming the option, if an option is outside of its limits.
absl::Status CheckWorkerOptions(const WorkerOptions& options);

// The part of a worker that its toolbox and its handles share: the word that tells whether it is
// awake, and whether it is done. Shared ownership makes a late Wake safe.
class WorkerState {
 public:
  explicit WorkerState(std::string name) : name_(std::move(name)) {}
  virtual ~WorkerState() = default;
  WorkerState(const WorkerState&) = delete;
  WorkerState& operator=(const WorkerState&) = delete;

  void Wake() {
    if (word_.Wake()) OnWoken();
  }

  virtual absl::Status Join() = 0;
  bool done() const { return word_.done(); }
  const std::string& name() const { return name_; }

 protected:
  // Called when a Wake has found the worker asleep and has made it awake.
  virtual void OnWoken() = 0;

  alignas(64) ParkingWord word_;

 private:
  const std::string name_;
};

}  // namespace toolbox_internal

// A value; copies name the same worker. A default handle names none: it can only be assigned to and
// asked for valid(). Any thread may call all methods, unless a toolbox says otherwise.
class WorkerHandle {
 public:
  WorkerHandle() = default;
  explicit WorkerHandle(std::shared_ptr<toolbox_internal::WorkerState> state) : state_(std::move(state)) {}

  // Makes the worker call RunSome or BeforePark once more, after everything that the caller did
  // before (the top of this file says what counts as before). One load if the worker is awake; a
  // system call only if it sleeps. No effect if the worker is done or its toolbox has ended.
  void Wake() const { state_->Wake(); }

  // Waits until the worker is done and destroyed. It does not stop the worker: tell it first. A
  // toolbox without threads runs until then, and returns FailedPrecondition if that would never
  // happen. Also returns FailedPrecondition if the worker would wait for itself.
  absl::Status Join() const { return state_->Join(); }

  // True if Join would return at once.
  bool done() const { return state_->done(); }

  std::string_view name() const { return state_->name(); }
  bool valid() const { return state_ != nullptr; }

 private:
  std::shared_ptr<toolbox_internal::WorkerState> state_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_TOOLBOX_WORKER_H_
