// Retry: repeats an attempt until it succeeds.
//
//   auto fetching = Retry(toolbox, {.max_retries = 3, .delay = absl::Milliseconds(100)}, [&] { return Fetch(url); });
//   absl::StatusOr<Page> page = co_await fetching;                             // in a handler
//   Future<Page> later = StartTask(system, Retry(toolbox, {}, [url] { return Fetch(url); }));   // from elsewhere
//
// Retry makes one attempt, and then up to `max_retries` more. The result is that of the last
// attempt. An exception is an error like others. Between two attempts is a pause, which grows by
// `factor` up to `max_delay`.
//
// The attempts run where the task runs: in a handler, in turns of its actor.
//
// Thread safety: a task is a value. The toolbox must outlive it.
#ifndef FRAKTOR_ACTOR_PATTERN_RETRY_H_
#define FRAKTOR_ACTOR_PATTERN_RETRY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/with_stop.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

struct RetryOptions {
  // The attempts after the first one. 0 or more.
  int max_retries = 3;
  // The pause before the first retry.
  absl::Duration delay = absl::ZeroDuration();
  double factor = 1.0;
  absl::Duration max_delay = absl::InfiniteDuration();
  // A random part of the pause, up to this one, is added to it: 0 to 1.
  double jitter = 0.0;
  // Whether an error is worth another attempt. Null means that every error is.
  std::function<bool(const absl::Status& error)> is_worth_it = nullptr;
  // A request to stop cancels the attempt or the pause that is under way, and prevents further
  // attempts: the result is Cancelled.
  std::stop_token stop = {};
  // The stream of the toolbox's random generator.
  uint64_t random_stream = 0x7265747279;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
  // The pause before the n-th retry, from 1 on. `chance` is from 0 to 1.
  absl::Duration DelayBefore(int retry, double chance) const;
};

namespace retry_internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <class Fn>
auto Attempt(Fn& fn) -> decltype(fn()) {
  using T = typename decltype(fn())::value_type;
  try {
    return fn();
  } catch (...) {
    return MakeReadyFuture<T>(StatusFromException(CaptureException()));
  }
}

// The future itself if nobody can request a stop.
template <class T>
Future<T> Stoppable(Future<T> future, const std::stop_token& stop) {
  return stop.stop_possible() ? WithStop(std::move(future), stop) : std::move(future);
}

// The result type of a task: absl::Status for void.
template <class T>
using TaskValue = std::conditional_t<std::is_void_v<T>, absl::Status, T>;

}  // namespace retry_internal

// `attempt` returns a Future<T>. The result is an absl::StatusOr<T>, or absl::Status for void.
template <class Fn>
auto Retry(RuntimeToolbox& toolbox, RetryOptions options, Fn attempt)
    -> Task<retry_internal::TaskValue<typename std::invoke_result_t<Fn&>::value_type>> {
  using T = typename std::invoke_result_t<Fn&>::value_type;
  const absl::Status valid = options.Validate();
  if (!valid.ok()) co_return valid;
  Random random = toolbox.MakeRandom(options.random_stream);
  for (int retry = 1;; ++retry) {
    if (options.stop.stop_requested()) co_return future_internal::FutureCancelledError();
    Future<T> trying = retry_internal::Stoppable(retry_internal::Attempt(attempt), options.stop);
    FutureResult<T> result = co_await trying;
    const absl::Status& status = retry_internal::StatusOf(result);
    if (status.ok() || retry > options.max_retries) co_return result;
    if (options.is_worth_it != nullptr && !options.is_worth_it(status)) co_return result;
    const absl::Duration delay = options.DelayBefore(retry, random.UniformDouble());
    if (delay <= absl::ZeroDuration()) continue;
    Future<void> pausing = retry_internal::Stoppable(SleepFor(toolbox, delay), options.stop);
    const absl::Status paused = co_await pausing;
    if (!paused.ok()) co_return paused;
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_RETRY_H_
