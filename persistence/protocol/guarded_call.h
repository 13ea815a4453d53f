// A call of a store through a circuit breaker, which costs little when the answer is there at once.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_GUARDED_CALL_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_GUARDED_CALL_H_

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0::protocol_internal {

// Whether the storage is to blame, and not the request.
inline bool IsStorageFailure(const absl::Status& error) {
  if (error.ok()) return false;
  const std::optional<JournalErrorKind> kind = ErrorKindOf<JournalErrorKind>(error);
  if (!kind.has_value()) return true;
  switch (*kind) {
    case JournalErrorKind::kSequenceMismatch:
    case JournalErrorKind::kFenced:
    case JournalErrorKind::kNotOpen:
    case JournalErrorKind::kTooLarge:
    case JournalErrorKind::kInvalid:
    case JournalErrorKind::kCorrupt:
    case JournalErrorKind::kNewerSchema:
    case JournalErrorKind::kUnknownManifest:
      return false;
    case JournalErrorKind::kLocked:
    case JournalErrorKind::kReadOnly:
    case JournalErrorKind::kDiskFull:
    case JournalErrorKind::kIo:
    case JournalErrorKind::kOverloaded:
    case JournalErrorKind::kClosed:
      return true;
  }
  return true;
}

inline CircuitBreakerOptions WithStorageFailures(CircuitBreakerOptions options) {
  if (options.is_failure == nullptr && options.harmless_codes.empty()) options.is_failure = &IsStorageFailure;
  return options;
}

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// What the call throws is the result.
template <class Call>
std::invoke_result_t<Call&> CheckedCall(Call& call) {
  using T = typename std::invoke_result_t<Call&>::value_type;
  try {
    return call();
  } catch (...) {
    return MakeReadyFuture<T>(StatusFromException(CaptureException()));
  }
}

template <class Call>
std::invoke_result_t<Call> GuardedCall(CircuitBreaker& breaker, Call call) {
  using T = typename std::invoke_result_t<Call>::value_type;
  if (breaker.state() != CircuitState::kClosed) return breaker.Call(std::move(call));
  Future<T> future = CheckedCall(call);
  if (!future.IsReady()) return breaker.Call([&future] { return std::move(future); });
  FutureResult<T> result = future.Take();
  if (IsStorageFailure(StatusOf(result))) {
    breaker.Fail();
  } else {
    breaker.Succeed();
  }
  return MakeReadyFuture<T>(std::move(result));
}

}  // namespace fraktor::inline v0::protocol_internal

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_GUARDED_CALL_H_
