// An answer that comes later, or another one instead. For the faulty stores.
#ifndef FRAKTOR_PERSISTENCE_TESTING_LATE_ANSWER_H_
#define FRAKTOR_PERSISTENCE_TESTING_LATE_ANSWER_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/delayed.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0::testing_internal {

// What `answer` gives, or `instead` if that is an error, `delay` after it is there.
template <class T>
Task<T> AnswerLate(RuntimeToolbox* toolbox, Future<T> answer, absl::Duration delay, absl::Status instead) {
  FutureResult<T> result = co_await answer;
  if (delay > absl::ZeroDuration()) {
    Future<void> pause = ReadyAfter<void>(toolbox, delay, absl::OkStatus());
    const absl::Status paused = co_await pause;
    if (!paused.ok()) co_return paused;
  }
  if (!instead.ok()) co_return instead;
  co_return std::move(result);
}

// Task<void> cannot say that it failed, so this one is of a status.
inline Task<absl::Status> AnswerLateStatus(RuntimeToolbox* toolbox, Future<void> answer, absl::Duration delay,
                                           absl::Status instead) {
  const absl::Status result = co_await answer;
  if (delay > absl::ZeroDuration()) {
    Future<void> pause = ReadyAfter<void>(toolbox, delay, absl::OkStatus());
    const absl::Status paused = co_await pause;
    if (!paused.ok()) co_return paused;
  }
  co_return instead.ok() ? result : instead;
}

}  // namespace fraktor::inline v0::testing_internal

#endif  // FRAKTOR_PERSISTENCE_TESTING_LATE_ANSWER_H_
