// StartTask: runs a coroutine for somebody who is no actor, or beyond the life of one: in the turns of an actor of its
// own, below /system.
//
//   Future<Receipt> buying = StartTask(system, Buy(store, order));
//
// Dropping or cancelling the future ends the task where it waits. An exception that leaves the task is an error
// (StatusFromException). Cancelled if the system ends first, Unavailable if it has.
//
// In an actor, ActorContext::Run and handlers that are coroutines are better: they may touch what the actor owns.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_PATTERN_START_TASK_H_
#define FRAKTOR_ACTOR_PATTERN_START_TASK_H_

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/waker.h"

namespace fraktor::inline v0 {

namespace start_task_internal {

// An actor without messages.
absl::StatusOr<ActorRef> SpawnRunner(ActorSystem& system);
// Runs the task in the runner's turns; it is destroyed if the runner has ended.
void RunIn(ActorRef runner, Task<void> task);
// In the runner's turn: it ends.
void EndRunner();
// Ends the runner, whoever calls.
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
  // Before anybody hears of the result: what the task holds.
  task = Task<T>();
  promise.Set(*std::move(result));
  EndRunner();
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

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_START_TASK_H_
