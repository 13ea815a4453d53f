// StartTask: runs a coroutine from outside of actors, or longer than an actor lives. The coroutine
// runs in the turns of an actor of its own, under /system.
//
//   Future<Receipt> buying = StartTask(system, Buy(store, order));
//
// A lambda that is a coroutine uses its captures while it runs. So pass the lambda itself, which
// StartTask keeps until the task has ended: StartTask(system, [id]() -> Task<Receipt> { ... }).
//
// Dropping or cancelling the future ends the task at its present co_await. An exception that leaves
// the task becomes an error (StatusFromException). The result is Cancelled if the system ends
// first, Unavailable if it has ended.
//
// In an actor, prefer ActorContext::Run and coroutine handlers: they may use the state of the
// actor.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_PATTERN_START_TASK_H_
#define FRAKTOR_ACTOR_PATTERN_START_TASK_H_

#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"
#include "fraktor/utils/future/with_stop.h"

namespace fraktor::inline v0 {

namespace start_task_internal {

// Spawns an actor without messages, which runs the task.
absl::StatusOr<ActorRef> SpawnRunner(ActorSystem& system);
// Runs the task in turns of the runner. The task is destroyed if the runner has ended.
void RunIn(ActorRef runner, Task<void> task);
// Ends the runner. In a turn of the runner.
void EndRunner();
// Ends the runner, from any thread.
Waker StopWaker(ActorRef runner);

template <class T>
Task<void> RunInto(Task<T> task, Promise<FutureValue<T>> promise) {
  std::optional<FutureResult<T>> result;
  try {
    FutureResult<T> come_to = co_await task;
    result.emplace(std::move(come_to));
  } catch (...) {
    result.emplace(StatusFromException(CaptureException()));
  }
  // The task is destroyed before anybody sees the result.
  task = Task<T>();
  promise.Set(*std::move(result));
  EndRunner();
}

template <class T>
inline constexpr bool kIsPlainTask = false;
template <class T>
inline constexpr bool kIsPlainTask<Task<T>> = true;

// The task that `make` returns. `make` lives as long as the coroutine.
template <class Make, class T>
Task<T> KeptTask(Make make, Task<T>*) {
  Task<T> task = make();
  if constexpr (std::is_void_v<T>) {
    co_await task;
  } else {
    co_return co_await task;
  }
}

}  // namespace start_task_internal

template <class T>
Future<FutureValue<T>> StartTask(ActorSystem& system, Task<T> task) {
  const absl::StatusOr<ActorRef> runner = start_task_internal::SpawnRunner(system);
  if (!runner.ok()) return MakeReadyFuture<FutureValue<T>>(runner.status());
  auto [promise, future] = MakePromise<FutureValue<T>>();
  promise.OnCancel(start_task_internal::StopWaker(*runner));
  start_task_internal::RunIn(*runner, start_task_internal::RunInto(std::move(task), std::move(promise)));
  return std::move(future);
}
// Calls `make`, which returns the task. `make` lives until the task has ended.
template <class Make>
requires(start_task_internal::kIsPlainTask<std::invoke_result_t<Make&>>) auto StartTask(ActorSystem& system,
                                                                                        Make make) {
  using Started = std::invoke_result_t<Make&>;
  return StartTask(system, start_task_internal::KeptTask(std::move(make), static_cast<Started*>(nullptr)));
}
// A request to stop ends the task at its present co_await: the result is Cancelled.
template <class T>
Future<FutureValue<T>> StartTask(ActorSystem& system, Task<T> task, std::stop_token stop) {
  if (stop.stop_requested()) return MakeReadyFuture<FutureValue<T>>(future_internal::FutureCancelledError());
  return WithStop(StartTask(system, std::move(task)), std::move(stop));
}
template <class Make>
requires(start_task_internal::kIsPlainTask<std::invoke_result_t<Make&>>) auto StartTask(ActorSystem& system, Make make,
                                                                                        std::stop_token stop) {
  using Started = std::invoke_result_t<Make&>;
  return StartTask(system, start_task_internal::KeptTask(std::move(make), static_cast<Started*>(nullptr)),
                   std::move(stop));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_START_TASK_H_
