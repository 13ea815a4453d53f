// ReadyAfter: a result that somebody hears of later, for stores in memory that play a slow disk.
//
//   return ReadyAfter<uint64_t>(toolbox, absl::Milliseconds(3), highest);
//
// Thread safety: as the toolbox.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_DELAYED_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_DELAYED_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/time/timer_id.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

// A future that completes with `result` after `delay`; at once if there is no toolbox or no delay,
// or if the toolbox has no timer left. If the toolbox ends before, the result is kCancelled.
template <class T>
Future<T> ReadyAfter(RuntimeToolbox* toolbox, absl::Duration delay, FutureResult<T> result) {
  if (toolbox == nullptr || delay <= absl::ZeroDuration()) return MakeReadyFuture<T>(std::move(result));
  struct Late {
    Promise<T> promise;
    FutureResult<T> result;
  };
  auto [promise, future] = MakePromise<T>();
  auto late = std::make_shared<Late>(Late{std::move(promise), std::move(result)});
  const absl::StatusOr<TimerId> armed =
      toolbox->ScheduleAfter(delay, [late] { late->promise.Set(std::move(late->result)); });
  if (!armed.ok()) late->promise.Set(std::move(late->result));
  return std::move(future);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_DELAYED_H_
