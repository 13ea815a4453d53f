// Task<T>: a coroutine that waits for futures and other tasks without blocking.
//
//   Task<Receipt> Buy(Store& store, Order order) {
//     Future<Item> reserving = store.Reserve(order.item);
//     absl::StatusOr<Item> item = co_await reserving;            // two lines: see below
//     if (!item.ok()) co_return item.status();                   // an error
//     Task<Money> paying = Pay(order.account, item->price);
//     absl::StatusOr<Money> paid = co_await paying;
//     if (!paid.ok()) co_return Annotate(paid.status(), "pay");
//     co_return Receipt{item->id, *paid};                        // or a value
//   }
//
//   Future<Receipt> receipt = Buy(store, order).Start(executor);
//
// A task is lazy: nothing runs before it is started or awaited. It runs only on its executor (or in
// the turns of an actor), never on the thread that completes a future. The result is
// absl::StatusOr<T>. A `Task<void>` may end without co_return, and its result is absl::Status. A
// task that only has to co_return a status is a `Task<absl::Status>`.
//
// Exceptions: an exception that leaves a task is rethrown where the task is awaited. The exception
// of a root task goes to its driver: Start converts it to an error (StatusFromException), an actor
// passes it to its supervisor.
//
// Cancellation: if the future of Start is dropped or cancelled, the task is destroyed at the point
// where it waits, on its executor, innermost frame first. That drops the future that it waits for.
// A task that never waits is not interrupted.
//
// Two lines for an await: GCC 12 destroys temporaries of a co_await expression twice, so with that
// compiler only a named future or task can be awaited. Also keep other temporaries with destructors
// out of the expression: write `auto r = co_await f;` and use `r`. A coroutine takes its arguments
// by value, and is not a lambda with captures: references and captures would dangle when it
// resumes.
//
// Thread safety: a Task is a value with one owner; one thread at a time may use it.
//
// Costs: one frame for each task, from TaskFrames. A loop runs the awaits of tasks and of ready
// futures, so neither a deep nor a long chain of them exhausts the stack.
#ifndef FRAKTOR_UTILS_FUTURE_TASK_H_
#define FRAKTOR_UTILS_FUTURE_TASK_H_

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/internal/activity.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/toolbox/executor.h"

namespace fraktor::inline v0 {

template <class T = void>
class Task;

// The allocator of the frames of tasks: the heap, unless a program installs another one.
struct TaskFrames {
  void* (*allocate)(size_t size);
  void (*free)(void* frame, size_t size) noexcept;
};

// Installs another allocator of frames, which must live forever. Call it before the first task is
// made. Returns false, and changes nothing, if there already was one.
bool InstallTaskFrames(const TaskFrames& frames);

// Resumes a task after a wait. A driver has its own queue and its own wakers: the driver of an
// actor makes wakers of its slot, its generation, its restart count and the number of the wait.
// RunningTask makes all calls, on the driver's own thread.
class TaskDriver {
 public:
  // The task is about to wait. Returns the waker for this wait. When it is woken, the driver calls
  // RunningTask::Resume in its own turn.
  virtual Waker BeginWait() = 0;
  // The wait is over or was given up. If `wake_is_owed`, the waker has been called or will be at
  // any moment; otherwise it will not be called.
  virtual void EndWait(bool wake_is_owed) = 0;

 protected:
  ~TaskDriver() = default;
};

namespace future_internal {

void* AllocateTaskFrame(size_t size);
void FreeTaskFrame(void* frame, size_t size) noexcept;

class TaskPromiseBase;

// One run of a root task with everything that it awaits. Frames pass control to each other through
// `next`, and the loop in Run resumes them: without guaranteed tail calls a direct transfer from
// frame to frame would grow the stack.
class TaskContext {
 public:
  explicit TaskContext(TaskDriver& driver) : driver_(driver) {}
  TaskContext(const TaskContext&) = delete;
  TaskContext& operator=(const TaskContext&) = delete;

  // Runs until the innermost task waits (false) or the root is done (true).
  bool Run();
  // Ends a wait, and destroys all frames except the root's, innermost first.
  void Unwind() noexcept;

  void EnterRoot(TaskPromiseBase& root);
  void Enter(TaskPromiseBase& child, TaskPromiseBase& parent, std::coroutine_handle<>& owner);
  void Leave(TaskPromiseBase& finished);
  // Returns false if the future has become ready meanwhile.
  bool WaitFor(FutureNode& node);

 private:
  void EndWait() noexcept;

  TaskDriver& driver_;
  TaskPromiseBase* innermost_ = nullptr;
  std::coroutine_handle<> next_;
  FutureNode* waiting_for_ = nullptr;
};

template <class T>
inline constexpr bool kIsAwaitable = false;
template <class T>
inline constexpr bool kIsAwaitable<Future<T>> = true;
template <class T>
inline constexpr bool kIsAwaitable<Task<T>> = true;

class TaskPromiseBase {
 public:
  static void* operator new(size_t size) { return AllocateTaskFrame(size); }
  static void operator delete(void* frame, size_t size) noexcept { FreeTaskFrame(frame, size); }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      TaskPromiseBase& promise = finished.promise();
      promise.context_->Leave(promise);
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() { exception_ = CaptureException(); }

  // A task can only await what its driver understands.
  template <class Awaitable>
  Awaitable&& await_transform(Awaitable&& awaitable) const noexcept {
    static_assert(kIsAwaitable<std::remove_cvref_t<Awaitable>>, "a Task awaits a Future or a Task, and nothing else");
    return static_cast<Awaitable&&>(awaitable);
  }

  TaskContext* context() const { return context_; }
  const std::exception_ptr& exception() const { return exception_; }

 protected:
  void set_self(std::coroutine_handle<> self) { self_ = self; }

 private:
  friend class TaskContext;

  TaskContext* context_ = nullptr;
  TaskPromiseBase* parent_ = nullptr;
  std::coroutine_handle<> self_;
  // The handle in the Task that the parent awaits. Cleared if the frame is destroyed before its
  // owner.
  std::coroutine_handle<>* owner_ = nullptr;
  std::exception_ptr exception_;
};

template <class T>
class TaskPromise : public TaskPromiseBase {
 public:
  Task<T> get_return_object();

  // A value, a StatusOr, or a Status that is an error. A Status that is OK becomes a value if a T
  // can be made of it, and otherwise an error.
  template <class U>
  requires std::convertible_to<U&&, FutureResult<T>>
  void return_value(U&& result) {
    if constexpr (std::is_same_v<std::remove_cvref_t<U>, absl::Status> &&
                  !std::is_same_v<FutureResult<T>, absl::Status>) {
      if (!result.ok()) {
        result_.emplace(std::forward<U>(result));
      } else if constexpr (std::is_convertible_v<absl::Status, FutureValue<T>>) {
        result_.emplace(FutureValue<T>(std::forward<U>(result)));
      } else {
        result_.emplace(absl::InternalError(
            "a coroutine has returned absl::OkStatus() in place of a value: return a value, or an error"));
      }
    } else {
      result_.emplace(std::forward<U>(result));
    }
  }
  void return_value(FutureResult<T> result) { result_.emplace(std::move(result)); }

  FutureResult<T> TakeResult() { return *std::move(result_); }

 private:
  std::optional<FutureResult<T>> result_;
};

template <>
class TaskPromise<void> : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() const noexcept {}
  absl::Status TakeResult() const { return absl::OkStatus(); }
};

template <class T>
struct FutureAwaiter {
  bool await_ready() const { return future.IsReady(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> waiter) const {
    return waiter.promise().context()->WaitFor(future.node());
  }
  FutureResult<T> await_resume() const { return future.TakeReady(); }

  Future<T>& future;
};

template <class T>
struct TaskAwaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> waiter) const;
  FutureResult<T> await_resume() const;

  Task<T>& task;
};

}  // namespace future_internal

// See the top of this file. An empty one (moved from, started, or default-constructed) can only be
// assigned to or destroyed. A task is awaited or started once.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = future_internal::TaskPromise<T>;
  using Result = FutureResult<T>;

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { Destroy(); }

  bool valid() const { return handle_ != nullptr; }

  // Runs the task on `executor`, from its beginning, and returns the future of its result. If the
  // executor rejects it (now, because it is closed or full; later, because it is closed), the task
  // is destroyed on the thread that called the executor, and the result is kCancelled. A
  // SerialExecutor may be destroyed before the task, which counts as closed; for other executors
  // see Executor::lane.
  Future<FutureValue<T>> Start(Executor& executor) &&;

  // Runs the task as part of the task that awaits it. Returns its result, or throws its exception.
  future_internal::TaskAwaiter<T> operator co_await() & noexcept { return {*this}; }
#if FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
  // Without a definition: the error of a program that does not compile names it.
  struct GiveTheTaskANameFirst;
  GiveTheTaskANameFirst operator co_await() && = delete;  // `auto paying = Pay(...); auto paid = co_await paying;`
#else
  future_internal::TaskAwaiter<T> operator co_await() && noexcept { return {*this}; }
#endif

 private:
  friend promise_type;
  friend struct future_internal::TaskAwaiter<T>;
  template <class U>
  friend class RunningTask;

  explicit Task(std::coroutine_handle<> handle) : handle_(handle) {}

  promise_type& promise() const {
    if (handle_ == nullptr) future_internal::DieOfMisuse("use of an empty task; it was moved from or started before");
    return std::coroutine_handle<promise_type>::from_address(handle_.address()).promise();
  }

  void Destroy() {
    if (handle_ != nullptr) std::exchange(handle_, nullptr).destroy();
  }

  std::coroutine_handle<> handle_;
};

// A root task and its driver. The actor runtime uses it; other code uses Task::Start.
//
//   RunningTask<Receipt> running(Buy(store, order), driver);
//   // Now, and again after each wake-up:
//   if (running.Resume()) { ... running.exception() ... running.TakeResult() ... }
//
// The destructor destroys all frames, innermost first. Use it on the driver's thread only.
template <class T>
class RunningTask {
 public:
  RunningTask(Task<T> task, TaskDriver& driver) : context_(driver), task_(std::move(task)) {
    context_.EnterRoot(task_.promise());
  }
  ~RunningTask() { context_.Unwind(); }
  RunningTask(const RunningTask&) = delete;
  RunningTask& operator=(const RunningTask&) = delete;

  // Runs until the task waits (false) or is done (true). Does nothing if the awaited future is not
  // ready, so a superfluous wake-up is harmless.
  bool Resume() { return is_done_ = is_done_ || context_.Run(); }

  bool is_done() const { return is_done_; }

  // The exception that a task that is done has thrown, or null.
  std::exception_ptr exception() const { return task_.promise().exception(); }

  // The result of a task that is done; call it once. An exception becomes the error of
  // StatusFromException.
  FutureResult<T> TakeResult() {
    if (!is_done_) future_internal::DieOfMisuse("the result of a task that is not done");
    if (std::exception_ptr thrown = exception()) return StatusFromException(thrown);
    return task_.promise().TakeResult();
  }

 private:
  future_internal::TaskContext context_;
  Task<T> task_;
  bool is_done_ = false;
};

namespace future_internal {

// A task that runs on an executor.
template <class T>
class TaskActivity final : public Activity, private TaskDriver {
 public:
  static void Begin(Executor& executor, Task<T> task, Promise<FutureValue<T>> promise) {
    auto* const activity = new TaskActivity(executor, std::move(task), std::move(promise));
    activity->cancel_waits_ = activity->promise_.OnCancel(activity->LendWaker());
    if (!activity->cancel_waits_) activity->ReturnWaker();
    activity->Start(executor);
  }

 private:
  TaskActivity(Executor& executor, Task<T> task, Promise<FutureValue<T>> promise)
      : Activity(executor),
        promise_(std::move(promise)),
        running_(std::in_place, std::move(task), static_cast<TaskDriver&>(*this)) {}

  Waker BeginWait() override { return LendWaker(); }
  void EndWait(bool wake_is_owed) override {
    if (!wake_is_owed) ReturnWaker();
  }

  bool Step() noexcept override {
    if (promise_.IsCancelled()) {
      End(FutureCancelledError());
      return true;
    }
    if (!running_->Resume()) return false;
    End(running_->TakeResult());
    return true;
  }

  void Abandon() noexcept override { End(ExecutorClosedError()); }

  // The frames are destroyed before the result is published.
  void End(FutureResult<T> result) {
    running_.reset();
    if (cancel_waits_ && promise_.StopCancelWaking()) ReturnWaker();
    promise_.Set(std::move(result));
  }

  Promise<FutureValue<T>> promise_;
  std::optional<RunningTask<T>> running_;
  bool cancel_waits_ = false;
};

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  const auto handle = std::coroutine_handle<TaskPromise<T>>::from_promise(*this);
  set_self(handle);
  return Task<T>(handle);
}

inline Task<void> TaskPromise<void>::get_return_object() {
  const auto handle = std::coroutine_handle<TaskPromise<void>>::from_promise(*this);
  set_self(handle);
  return Task<void>(handle);
}

template <class T>
template <class Promise>
void TaskAwaiter<T>::await_suspend(std::coroutine_handle<Promise> waiter) const {
  waiter.promise().context()->Enter(task.promise(), waiter.promise(), task.handle_);
}

template <class T>
FutureResult<T> TaskAwaiter<T>::await_resume() const {
  if (task.promise().exception()) std::rethrow_exception(task.promise().exception());
  return task.promise().TakeResult();
}

}  // namespace future_internal

template <class T>
Future<FutureValue<T>> Task<T>::Start(Executor& executor) && {
  promise();
  PromiseAndFuture<FutureValue<T>> pair = MakePromise<FutureValue<T>>();
  future_internal::TaskActivity<T>::Begin(executor, std::move(*this), std::move(pair.promise));
  return std::move(pair.future);
}

template <class T>
auto Future<T>::operator co_await() & noexcept {
  return future_internal::FutureAwaiter<T>{*this};
}
#if !FRAKTOR_AWAIT_TEMPORARIES_MISCOMPILE
template <class T>
auto Future<T>::operator co_await() && noexcept {
  return future_internal::FutureAwaiter<T>{*this};
}
#endif

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_TASK_H_
