// RunUntilStopped: a task that ends early when a stop is requested.
//
//   std::stop_source stop;
//   Task<void> refreshing = RunUntilStopped(Refresh(cache), stop.get_token());
//   stop.request_stop();                // Refresh ends at its present co_await
//
// The frames of the inner task are destroyed where the outer task runs: on its executor, or in the
// turns of its actor. So the inner task may use the state of that actor in its destructors too. A
// task that ends early counts as one that has returned; an exception of the inner task is rethrown.
// A token without a stop source never stops. WithStop (with_stop.h) does the same for futures.
//
// Cost: an allocation for each wait of the inner task.
//
// Thread safety: as any task. Any thread may request the stop.
#ifndef FRAKTOR_UTILS_FUTURE_STOPPABLE_TASK_H_
#define FRAKTOR_UTILS_FUTURE_STOPPABLE_TASK_H_

#include <stop_token>

#include "fraktor/utils/future/task.h"

namespace fraktor::inline v0 {

Task<void> RunUntilStopped(Task<void> task, std::stop_token stop);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_STOPPABLE_TASK_H_
