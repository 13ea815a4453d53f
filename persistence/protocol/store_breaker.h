// StoreBreaker: calls of a store through a circuit breaker, which cost little when the answer is
// there at once. It logs when the store begins to fail, and when it works again.
#ifndef FRAKTOR_PERSISTENCE_PROTOCOL_STORE_BREAKER_H_
#define FRAKTOR_PERSISTENCE_PROTOCOL_STORE_BREAKER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/pattern/circuit_breaker.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/protocol/pending_operations.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

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
    case JournalErrorKind::kDeleted:
    case JournalErrorKind::kEventsLost:
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

// An exception of the call becomes its result.
template <class Call>
std::invoke_result_t<Call&> CheckedCall(Call& call) {
  using T = typename std::invoke_result_t<Call&>::value_type;
  try {
    return call();
  } catch (...) {
    return MakeReadyFuture<T>(StatusFromException(CaptureException()));
  }
}

// The breaker of one store.
class StoreBreaker {
 public:
  absl::Status Start(RuntimeToolbox& toolbox, const CircuitBreakerOptions& options) {
    options_ = WithStorageFailures(options);
    FRAKTOR_ASSIGN_OR_RETURN(breaker_, CircuitBreaker::Make(toolbox, options_));
    return absl::OkStatus();
  }

  // Makes the call unless the breaker is open, and gives `done` the result, now or in a later turn.
  template <class Call, class Done>
  void Run(ActorContext& context, PendingOperations& operations, Call&& call, Done&& done) {
    using T = typename std::invoke_result_t<Call&>::value_type;
    if (!is_clean_ && breaker_->state() != CircuitState::kClosed) {
      // The store may fail with the kOpen of another breaker, so the error does not tell which
      // breaker has rejected a call.
      bool is_called = false;
      Future<T> calling = breaker_->Call([&] {
        is_called = true;
        return call();
      });
      Await(context, operations, std::move(calling), is_called, std::forward<Done>(done));
      return;
    }
    Future<T> future = CheckedCall(call);
    if (!future.IsReady()) {
      is_clean_ = false;
      Await(context, operations, breaker_->Call([&future] { return std::move(future); }), /*is_called=*/true,
            std::forward<Done>(done));
      return;
    }
    FutureResult<T> result = future.Take();
    LogChange(context, StatusOf(result));
    if (IsFailure(StatusOf(result))) {
      is_clean_ = false;
      breaker_->Fail();
    } else if (!is_clean_) {
      breaker_->Succeed();
      is_clean_ = waiting_ == 0;
    }
    done(std::move(result));
  }

  // The same for a call that answers at once, into `result`, or returns false and has done nothing.
  // Also returns false if the breaker has to be asked: then the caller uses Run.
  template <class Call, class Result>
  bool RunAtOnce(ActorContext& context, Call&& call, Result& result) {
    if (!is_clean_) return false;
    try {
      if (!call()) return false;
    } catch (...) {
      result = StatusFromException(CaptureException());
    }
    if (IsFailure(StatusOf(result))) {
      LogChange(context, StatusOf(result));
      is_clean_ = false;
      breaker_->Fail();
    }
    return true;
  }

 private:
  // As the breaker judges.
  bool IsFailure(const absl::Status& status) const {
    if (status.ok()) return false;
    if (options_.is_failure != nullptr) return options_.is_failure(status);
    const auto& harmless = options_.harmless_codes;
    return std::find(harmless.begin(), harmless.end(), status.code()) == harmless.end();
  }

  // Logs when the store begins to fail, or to fail for another reason, and when it works again.
  void LogChange(ActorContext& context, const absl::Status& status) {
    if (status.ok()) {
      if (!failure_.has_value()) return;
      failure_.reset();
      Log(context, LogLevel::kInfo, absl::StrCat("the ", options_.name, " works again"));
      return;
    }
    // Too much waits, or the actor ends: that is no failure of the store.
    const std::optional<JournalErrorKind> kind = ErrorKindOf<JournalErrorKind>(status);
    if (kind == JournalErrorKind::kOverloaded || kind == JournalErrorKind::kClosed || !IsFailure(status)) return;
    const Failure failure{.code = status.code(), .kind = kind};
    if (failure_ == failure) return;
    failure_ = failure;
    Log(context, LogLevel::kError, absl::StrCat("the ", options_.name, " fails: ", status.message()));
  }
  static void Log(ActorContext& context, LogLevel level, const std::string& text) {
    const std::string path = context.Path();
    context.system().log().Log(level, {.at = context.system().toolbox().WallNow(), .path = path, .text = text});
  }

  struct Failure {
    absl::StatusCode code = absl::StatusCode::kUnknown;
    std::optional<JournalErrorKind> kind = {};

    friend bool operator==(const Failure&, const Failure&) = default;
  };

  // `is_called` is false if the breaker has rejected the call.
  template <class T, class Done>
  void Await(ActorContext& context, PendingOperations& operations, Future<T> future, bool is_called, Done&& done) {
    ++waiting_;
    operations.Await(context, std::move(future),
                     [this, &context, is_called, done = std::forward<Done>(done)](FutureResult<T> result) mutable {
                       --waiting_;
                       if (is_called) LogChange(context, StatusOf(result));
                       done(std::move(result));
                     });
  }

  CircuitBreakerOptions options_;
  std::unique_ptr<CircuitBreaker> breaker_;
  // Calls without an answer: each of them may open the breaker yet.
  size_t waiting_ = 0;
  // The breaker is closed, has seen no failure, and waits for nothing: it need not be asked.
  bool is_clean_ = true;
  // The failure that was logged last, if the store has not worked since.
  std::optional<Failure> failure_;
};

}  // namespace fraktor::inline v0::protocol_internal

#endif  // FRAKTOR_PERSISTENCE_PROTOCOL_STORE_BREAKER_H_
