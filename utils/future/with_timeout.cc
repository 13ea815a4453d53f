#include "fraktor/utils/future/with_timeout.h"

#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

Future<void> SleepFor(RuntimeToolbox& toolbox, absl::Duration duration) {
  auto [promise, future] = MakePromise<void>();
  const absl::StatusOr<TimerId> timer =
      toolbox.ScheduleAfter(duration, [promise = std::move(promise)]() mutable { promise.Set(); });
  if (!timer.ok()) return MakeReadyFuture<void>(timer.status());
  return std::move(future);
}

absl::Status with_timeout_internal::NotInTime(absl::Duration timeout) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, FutureTimeoutKind::kNotInTime,
                   absl::StrCat("a future was not ready within ", absl::FormatDuration(timeout)));
}

}  // namespace fraktor::inline v0
