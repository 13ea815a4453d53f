// Worker: what a thread of the runtime does, cut into steps. WorkerHandle: wakes it and waits for its end.
//
//   class Printer : public Worker {
//    public:
//     Progress RunSome() override {
//       std::optional<std::string> line = lines.TryPop();
//       if (!line) return closed ? Progress::kDone : Progress::kIdle;
//       std::cout << *line;
//       return Progress::kBusy;
//     }
//   };
//   WorkerHandle printer = toolbox.StartWorker({.name = "printer"}, std::make_unique<Printer>()).value();
//   lines.Push("hello\n");
//   printer.Wake();
//
// A toolbox with threads gives each worker a thread; one without takes turns. So a worker never waits for anything
// inside a step: it says kIdle, is parked, and runs again after the next Wake.
//
// No wake-up is lost. Before a worker is parked, the toolbox publishes that (so that from then on a Wake leaves its
// mark) and asks the worker again, by BeforePark, whether there really is nothing to do. What a caller publishes before
// Wake is therefore either seen by BeforePark or the Wake sees that the worker is parking. This is Dekker's argument
// and needs one total order: publish work by a sequentially consistent operation, or under a mutex that RunSome and
// BeforePark take too, and look for it in BeforePark in the same way. A relaxed or release store does not do.
#ifndef FRAKTOR_UTILS_TOOLBOX_WORKER_H_
#define FRAKTOR_UTILS_TOOLBOX_WORKER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "fraktor/utils/toolbox/parking_word.h"

namespace fraktor::inline v0 {

// All methods are called from one thread at a time, which is the worker's own where there are threads, and must not
// throw. The toolbox destroys the worker, on the same thread, as soon as it is done.
class Worker {
 public:
  enum class Progress {
    kBusy,  // did something, or there may be more: call again soon
    kIdle,  // found nothing to do: park
    kDone,  // never call again
  };

  virtual ~Worker() = default;

  // Does a bounded amount of work. On a toolbox with threads, timers that are due and a toolbox that ends wait for it
  // to return.
  virtual Progress RunSome() = 0;

  // Called after kIdle, when the toolbox has published that this worker is about to park: looks once more at everything
  // that a Wake may have announced. kIdle parks. A scheduler that keeps counts of idle and searching workers publishes
  // them here, then looks; if it finds something it takes its publication back and says kBusy.
  virtual Progress BeforePark() { return RunSome(); }

  // Called after each BeforePark that said kIdle, when the worker runs again, whether it really slept or not. Not
  // called if the toolbox ends.
  virtual void AfterPark() {}
};

struct WorkerOptions {
  // For debuggers, errors and traces; Linux shows the first 15 bytes as the thread's name. Empty: the toolbox makes
  // one. At most 100 bytes.
  std::string name = {};
  // How often RunSome may say kIdle in a row before the worker is parked, from 0 to 1'000'000. Waking a parked thread
  // on another core costs the waker some 8 us and the sleeper 25 us; looking again costs a core. Only toolboxes with
  // threads heed it.
  int idle_rounds = 0;
  // Whether timers may be fired by this worker between its steps and while it is parked. Say false if steps block on
  // I/O: timers would be late.
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

// Whether this thread is one that others wait for: a worker that drives timers, or a thread that pumps a toolbox while
// it does. Such a thread must not block.
bool IsWorkerThread();

// Whether this thread drives virtual time: it has made, or has pumped last, a toolbox without
// threads that still exists. While such a thread blocks, no worker and no timer of that toolbox
// runs.
bool DrivesVirtualTime();

namespace internal_toolbox {

// The part of a toolbox without threads that knows who drives it: the thread that makes it, and
// then the thread that has called MoveToThisThread() last.
class VirtualTimeDriver {
 public:
  VirtualTimeDriver();
  ~VirtualTimeDriver();
  VirtualTimeDriver(const VirtualTimeDriver&) = delete;
  VirtualTimeDriver& operator=(const VirtualTimeDriver&) = delete;

  // From now on this thread drives.
  void MoveToThisThread();

 private:
  // How many toolboxes a thread drives. Shared, since the thread may end before the toolbox.
  using Count = std::shared_ptr<std::atomic<int>>;
  static Count& OfThisThread();
  friend bool v0::DrivesVirtualTime();

  Count count_;
};

// Says so for as long as it lives.
class WorkerThreadScope {
 public:
  explicit WorkerThreadScope(bool is_worker);
  ~WorkerThreadScope();
  WorkerThreadScope(const WorkerThreadScope&) = delete;
  WorkerThreadScope& operator=(const WorkerThreadScope&) = delete;

 private:
  const bool outer_;
};

// InvalidArgument, naming the option, unless every option is within its limits.
absl::Status CheckWorkerOptions(const WorkerOptions& options);

// Where a worker sits: the word that says whether it is awake, and its end. Shared by the toolbox and the handles, so
// that a late Wake is safe.
class WorkerSeat {
 public:
  explicit WorkerSeat(std::string name) : name_(std::move(name)) {}
  virtual ~WorkerSeat() = default;
  WorkerSeat(const WorkerSeat&) = delete;
  WorkerSeat& operator=(const WorkerSeat&) = delete;

  void Wake() {
    if (word_.Wake()) OnWoken();
  }

  virtual absl::Status Join() = 0;
  bool done() const { return word_.done(); }
  const std::string& name() const { return name_; }

 protected:
  // A Wake has found the worker asleep and made it awake.
  virtual void OnWoken() = 0;

  alignas(64) ParkingWord word_;

 private:
  const std::string name_;
};

}  // namespace internal_toolbox

// A value; copies name the same worker. A default handle names none: only assign to it and ask for valid(). All methods
// may be called from any thread, except where a toolbox says otherwise.
class WorkerHandle {
 public:
  WorkerHandle() = default;
  explicit WorkerHandle(std::shared_ptr<internal_toolbox::WorkerSeat> seat) : seat_(std::move(seat)) {}

  // Makes the worker call RunSome or BeforePark once more after everything that the caller did before (see the top of
  // the file for "before"). One load if the worker is awake; a system call only if it sleeps. Nothing if it is done or
  // its toolbox is gone.
  void Wake() const { seat_->Wake(); }

  // Waits until the worker is done and destroyed. Nobody stops it: tell it first. A toolbox without threads runs until
  // then, and answers FailedPrecondition if that would never happen. FailedPrecondition as well if the worker is asked
  // to wait for itself.
  absl::Status Join() const { return seat_->Join(); }

  // Whether Join would return at once.
  bool done() const { return seat_->done(); }

  std::string_view name() const { return seat_->name(); }
  bool valid() const { return seat_ != nullptr; }

 private:
  std::shared_ptr<internal_toolbox::WorkerSeat> seat_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_WORKER_H_
