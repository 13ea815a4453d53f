#include "fraktor/actor/timer/system_timers.h"

#include <cxxabi.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/send/internal/actor_worker.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

using actor_internal::ActorWorker;
using actor_internal::MayLive;
using actor_internal::NodeCache;

namespace {

// Sends from a task of the toolbox, which runs between actors.
void Send(ActorRef to, EnvelopePtr message, bool is_intercepted) {
  if (ActorWorker* const worker = ActorWorker::Current()) {
    if (is_intercepted) {
      worker->SendIntercepted(to, message.release());
    } else {
      worker->Send(to, message.release());
    }
    worker->outbox.Flush();
  } else {
    SendForeign(to, std::move(message), is_intercepted ? kIntercepted : 0).IgnoreError();
  }
}

bool HasEnded(ActorRef actor) { return !MayLive(actor); }

}  // namespace

// The mutex of the core guards everything but `core`. The thread that has set kRunning owns the
// action.
struct Cancellable::Task {
  enum class State : uint8_t {
    kPending,
    kRunning,
    kCancelledRunning,  // Runs for the last time.
    kDone,
  };

  explicit Task(std::shared_ptr<Core> of) : core(std::move(of)) {}

  const std::shared_ptr<Core> core;
  State state = State::kPending;
  bool is_periodic = false;
  bool is_cancelled = false;
  TimerId id;
  absl::AnyInvocable<bool()> action;
  absl::AnyInvocable<void()> on_cancel;
  std::list<std::shared_ptr<Task>>::iterator place;  // Valid until the task is done.
};

// Shared by SystemTimers and its cancellables. The end of SystemTimers closes it.
class Cancellable::Core : public std::enable_shared_from_this<Cancellable::Core> {
 public:
  explicit Core(ActorSystem& system) : toolbox_(&system.toolbox()), log_(system.log()) {}

  using Arm = absl::AnyInvocable<absl::StatusOr<TimerId>(RuntimeToolbox&, std::shared_ptr<Task>)>;

  absl::StatusOr<std::shared_ptr<Task>> Add(bool is_periodic, absl::AnyInvocable<bool()> action,
                                            absl::AnyInvocable<void()> on_cancel, Arm arm) {
    auto task = std::make_shared<Task>(shared_from_this());
    task->is_periodic = is_periodic;
    task->action = std::move(action);
    task->on_cancel = std::move(on_cancel);
    // Under the lock: a task that is due at once waits until its id is stored.
    MutexLock lock(mutex_);
    if (is_closing_)
      return absl::FailedPreconditionError("system timer: the actor system ends, and starts no further timers");
    FRAKTOR_ASSIGN_OR_RETURN(task->id, arm(*toolbox_, task));
    task->place = tasks_.insert(tasks_.end(), task);
    return task;
  }

  void Fire(const std::shared_ptr<Task>& task, uint64_t periods) {
    {
      MutexLock lock(mutex_);
      if (task->state != Task::State::kPending) return;
      task->state = Task::State::kRunning;
      running_.push_back(std::this_thread::get_id());
    }
    bool goes_on = true;
    for (uint64_t i = 0; i < std::min(periods, kMaxCatchUp) && goes_on; ++i) goes_on = Run(*task);
    absl::AnyInvocable<bool()> ended;
    absl::AnyInvocable<void()> ended_callback;
    {
      MutexLock lock(mutex_);
      running_.erase(std::find(running_.begin(), running_.end(), std::this_thread::get_id()));
      if (task->is_periodic && goes_on && task->state == Task::State::kRunning) {
        task->state = Task::State::kPending;
      } else {
        End(*task);
        ended = std::move(task->action);
        ended_callback = std::move(task->on_cancel);
      }
      idle_.notify_all();
    }
  }

  bool Cancel(Task& task) {
    absl::AnyInvocable<bool()> ended;
    absl::AnyInvocable<void()> on_cancel;
    {
      MutexLock lock(mutex_);
      if (task.state == Task::State::kPending) {
        End(task);
        ended = std::move(task.action);
      } else if (task.state == Task::State::kRunning && task.is_periodic) {
        task.state = Task::State::kCancelledRunning;
      } else {
        return false;
      }
      task.is_cancelled = true;
      on_cancel = std::move(task.on_cancel);
    }
    if (on_cancel) CallOnCancel(on_cancel);
    return true;
  }

  bool IsCancelled(const Task& task) {
    MutexLock lock(mutex_);
    return task.is_cancelled;
  }

  // Cancels all entries, and waits for running actions: no action runs after this returns, except
  // one that has called it.
  void CancelAll() {
    std::vector<absl::AnyInvocable<bool()>> ended;
    std::vector<absl::AnyInvocable<void()>> callbacks;
    {
      MutexLock lock(mutex_);
      is_closing_ = true;
      for (auto at = tasks_.begin(); at != tasks_.end();) {
        const std::shared_ptr<Task> task = *at++;
        if (task->state == Task::State::kPending) {
          End(*task);
          ended.push_back(std::move(task->action));
        } else if (task->state == Task::State::kRunning && task->is_periodic) {
          task->state = Task::State::kCancelledRunning;
        } else {
          continue;
        }
        task->is_cancelled = true;
        if (task->on_cancel) callbacks.push_back(std::move(task->on_cancel));
      }
      const auto is_another = [self = std::this_thread::get_id()](std::thread::id id) { return id != self; };
      idle_.wait(lock, [&] {
        mutex_.AssertHeld();
        return std::none_of(running_.begin(), running_.end(), is_another);
      });
    }
    for (absl::AnyInvocable<void()>& on_cancel : callbacks) CallOnCancel(on_cancel);
  }

  // The same, when SystemTimers ends.
  void Close() {
    CancelAll();
    MutexLock lock(mutex_);
    toolbox_ = nullptr;
  }

 private:
  bool IsCancelledWhileRunning(const Task& task) {
    MutexLock lock(mutex_);
    return task.state != Task::State::kRunning;
  }

  void CallOnCancel(absl::AnyInvocable<void()>& on_cancel) {
    std::string what;
    try {
      on_cancel();
      return;
    } catch (abi::__forced_unwind&) {
      throw;  // The thread is being cancelled: that must not be stopped here.
    } catch (const std::exception& e) {
      what = e.what();
    } catch (...) {
      what = "something that is no std::exception";
    }
    MutexLock lock(mutex_);
    if (toolbox_ == nullptr) return;
    log_.Log(LogLevel::kError,
             {.at = toolbox_->WallNow(), .text = ToStd(absl::StrCat("the on_cancel of an entry threw: ", what))});
  }

  // Returns false if the action must not run again.
  bool Run(Task& task) {
    if (IsCancelledWhileRunning(task)) return false;
    try {
      return task.action();
    } catch (abi::__forced_unwind&) {
      throw;  // The thread is being cancelled: that must not be stopped here.
    } catch (const std::exception& e) {
      Log(task, absl::StrCat(" threw: ", e.what()));
    } catch (...) {
      Log(task, " threw something that is no std::exception");
    }
    return false;
  }

  void Log(const Task& task, const std::string& what) {
    MutexLock lock(mutex_);
    const std::string text =
        absl::StrCat("the function of a system timer", what, task.is_periodic ? "; it is not repeated" : "");
    log_.Log(LogLevel::kError, {.at = toolbox_->WallNow(), .text = ToStd(text)});
  }

  // The caller destroys the action, without the lock.
  void End(Task& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    task.state = Task::State::kDone;
    // Frees a place in the timing wheel, which holds another pointer to the task.
    toolbox_->CancelTimer(task.id);
    tasks_.erase(task.place);
  }

  Mutex mutex_;
  std::condition_variable_any idle_;
  // Null after the end, because the log is gone then.
  RuntimeToolbox* toolbox_ ABSL_GUARDED_BY(mutex_);
  const Logger& log_ ABSL_GUARDED_BY(mutex_);
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  // The threads that run actions, once for each run.
  std::vector<std::thread::id> running_ ABSL_GUARDED_BY(mutex_);
  // In the order in which they were started.
  std::list<std::shared_ptr<Task>> tasks_ ABSL_GUARDED_BY(mutex_);
};

bool Cancellable::Cancel() { return task_ != nullptr && task_->core->Cancel(*task_); }

bool Cancellable::IsCancelled() const { return task_ != nullptr && task_->core->IsCancelled(*task_); }

SystemTimers::SystemTimers(ActorSystem& system) : core_(std::make_shared<Cancellable::Core>(system)) {
  if (!system.OnTermination([core = core_] { core->CancelAll(); }).ok()) core_->CancelAll();
}

SystemTimers::~SystemTimers() { core_->Close(); }

SystemTimers::Action SystemTimers::FunctionAction(absl::AnyInvocable<void()> function) {
  return [function = std::move(function)]() mutable {
    function();
    return true;
  };
}

SystemTimers::Action SystemTimers::SingleMessageAction(ActorRef to, EnvelopePtr message, bool is_intercepted) {
  return [to, message = std::move(message), is_intercepted]() mutable {
    Send(to, std::move(message), is_intercepted);
    return false;
  };
}

SystemTimers::Action SystemTimers::MessageAction(ActorRef to, EnvelopePtr message, bool is_intercepted) {
  return [to, message = std::move(message), is_intercepted]() mutable {
    if (HasEnded(to)) return false;
    Send(to, CopyEnvelope(NodeCache::OfThisThread(), *message), is_intercepted);
    return true;
  };
}

absl::StatusOr<Cancellable> SystemTimers::Once(absl::Duration delay, Action action, SystemTimerOptions options) {
  FRAKTOR_RETURN_IF_ERROR(CheckTimerDelay("system timer", delay));
  FRAKTOR_ASSIGN_OR_RETURN(std::shared_ptr<Cancellable::Task> task,
                           core_->Add(/*is_periodic=*/false, std::move(action), std::move(options.on_cancel),
                                      [delay](RuntimeToolbox& toolbox, std::shared_ptr<Cancellable::Task> armed) {
                                        return toolbox.ScheduleAfter(
                                            delay, [armed = std::move(armed)] { armed->core->Fire(armed, 1); });
                                      }));
  return Cancellable(std::move(task));
}

absl::StatusOr<Cancellable> SystemTimers::Periodically(const TimerPeriod& period, Cadence cadence, Action action,
                                                       SystemTimerOptions options) {
  FRAKTOR_RETURN_IF_ERROR(CheckTimerPeriod("system timer", period));
  const PeriodicOptions periodic{.period = period.period, .initial_delay = period.first(), .cadence = cadence};
  FRAKTOR_ASSIGN_OR_RETURN(std::shared_ptr<Cancellable::Task> task,
                           core_->Add(/*is_periodic=*/true, std::move(action), std::move(options.on_cancel),
                                      [periodic](RuntimeToolbox& toolbox, std::shared_ptr<Cancellable::Task> armed) {
                                        return toolbox.SchedulePeriodic(
                                            periodic, [armed = std::move(armed)](const TimerFiring& firing) {
                                              armed->core->Fire(armed, firing.periods);
                                            });
                                      }));
  return Cancellable(std::move(task));
}

}  // namespace fraktor::inline v0
