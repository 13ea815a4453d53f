// CircuitBreaker: stops calling a service that keeps failing, and tries again later.
//
//   std::unique_ptr<CircuitBreaker> breaker = CircuitBreaker::Make(toolbox, {.max_failures = 5}).value();
//   auto calling = breaker->Call([&] { return context.Ask<Quote>(exchange, GetQuote{}, absl::Seconds(1)); });
//   absl::StatusOr<Quote> quote = co_await calling;                  // Unavailable, at once, while it is open
//   absl::StatusOr<int> n = breaker->CallNow([&] { return ReadSensor(); });
//
// Closed: calls go through. `max_failures` failures in a row open the breaker. A call that takes
// longer than `call_timeout` is a failure.
// Open: the breaker rejects calls with kOpen, and the text says how long it stays open. After
// `reset_timeout` it becomes half-open.
// Half-open: one call goes through as a trial, and others are rejected. If the trial succeeds, the
// breaker closes. Otherwise it opens again, for `backoff_factor` times as long, up to
// `max_reset_timeout`.
//
// A call that began before the last change of state has no effect on the state. The call of a
// future counts when its result is taken. A dropped future does not count; if it was the trial, the
// next call becomes the trial.
//
// Thread safety: any thread. Listeners run without a lock, on the thread that caused the event:
// that of a caller or of a timer. The toolbox must outlive the breaker and the futures of its
// calls.
#ifndef FRAKTOR_ACTOR_PATTERN_CIRCUIT_BREAKER_H_
#define FRAKTOR_ACTOR_PATTERN_CIRCUIT_BREAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/future_result.h"
#include "fraktor/utils/future/with_timeout.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"

namespace fraktor::inline v0 {

enum class CircuitState : uint8_t { kClosed, kOpen, kHalfOpen };
std::string_view NameOf(CircuitState state);

// The result of a call.
enum class CallOutcome : uint8_t { kSuccess, kFailure, kTimeout, kRejected };

enum class CircuitBreakerErrorKind : uint8_t {
  kOpen = 0,  // The breaker rejected the call. Detail "remaining_ns".
};
template <>
struct ErrorKindTraits<CircuitBreakerErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/circuit_breaker";
  static constexpr CircuitBreakerErrorKind kLast = CircuitBreakerErrorKind::kOpen;
};

struct CircuitBreakerOptions {
  // The name of the breaker in error texts.
  std::string name = "unnamed";
  int max_failures = 10;
  absl::Duration call_timeout = absl::Seconds(10);
  absl::Duration reset_timeout = absl::Seconds(15);
  double backoff_factor = 1.0;
  absl::Duration max_reset_timeout = absl::Hours(24);
  // Errors with these codes are not the fault of the service: they count as successes.
  std::vector<absl::StatusCode> harmless_codes = {};
  // Decides which errors are failures, in place of the codes.
  std::function<bool(const absl::Status& error)> is_failure = nullptr;

  // InvalidArgument that names the option.
  absl::Status Validate() const;
};

class CircuitBreakerListener {
 public:
  virtual ~CircuitBreakerListener() = default;
  virtual void OnTransition(CircuitState /*from*/, CircuitState /*to*/) {}
  // `took` is zero for a rejected call.
  virtual void OnCall(CallOutcome /*outcome*/, absl::Duration /*took*/) {}
};

class CircuitBreaker {
 public:
  static absl::StatusOr<std::unique_ptr<CircuitBreaker>> Make(RuntimeToolbox& toolbox, CircuitBreakerOptions options);
  ~CircuitBreaker();

  // `fn` returns a Future<T>. It is not called while the breaker is open. An exception counts as an
  // error.
  template <class Fn>
  auto Call(Fn&& fn) {
    return Call(std::forward<Fn>(fn), nullptr);
  }
  // `is_failure(const absl::StatusOr<T>&)` decides in place of the options: it sees values too.
  template <class Fn, class IsFailure>
  auto Call(Fn&& fn, IsFailure is_failure) -> std::invoke_result_t<Fn>;

  // `fn` returns T, absl::StatusOr<T>, absl::Status or void, and the call ends when it returns. A
  // call that took longer than call_timeout counts as a failure, but its result is returned. An
  // exception counts as a failure, and is thrown on.
  template <class Fn>
  auto CallNow(Fn&& fn) -> FutureResult<std::invoke_result_t<Fn>>;

  // Reports a call that was made without the breaker. Does nothing while the breaker is open.
  void Succeed();
  void Fail();

  CircuitState state() const;
  // The failures in a row since the breaker closed.
  int failures() const;
  // The time until the breaker becomes half-open; zero unless it is open.
  absl::Duration remaining() const;
  void AddListener(std::shared_ptr<CircuitBreakerListener> listener);

 private:
  class Core;

  // The permission for one call, with the ways to report its result.
  class Permit {
   public:
    Permit(std::shared_ptr<Core> core, uint64_t epoch, bool is_trial, Instant begin);
    Permit(Permit&&) noexcept = default;
    Permit& operator=(Permit&&) = delete;
    // The call was dropped.
    ~Permit();

    // Ends the call now. It is a failure if it took too long.
    void End(const absl::Status& status);
    void EndAs(CallOutcome outcome);
    // Decides by the options.
    CallOutcome OutcomeOf(const absl::Status& status) const;
    // The error of a call that took longer than call_timeout.
    absl::Status LateError() const;

   private:
    std::shared_ptr<Core> core_;
    uint64_t epoch_;
    bool is_trial_;
    Instant begin_;
  };

  explicit CircuitBreaker(std::shared_ptr<Core> core);

  absl::StatusOr<Permit> Enter();
  RuntimeToolbox& toolbox() const;
  absl::Duration call_timeout() const;

  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <class T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  const std::shared_ptr<Core> core_;
};

template <class Fn, class IsFailure>
auto CircuitBreaker::Call(Fn&& fn, IsFailure is_failure) -> std::invoke_result_t<Fn> {
  using T = typename std::invoke_result_t<Fn>::value_type;
  absl::StatusOr<Permit> permit = Enter();
  if (!permit.ok()) return MakeReadyFuture<T>(permit.status());
  Future<T> inner;
  try {
    inner = std::forward<Fn>(fn)();
  } catch (...) {
    inner = MakeReadyFuture<T>(StatusFromException(CaptureException()));
  }
  return TimedResultOf(toolbox(), std::move(inner), call_timeout())
      .MapResult([ending = *std::move(permit),
                  decide = std::move(is_failure)](absl::StatusOr<TimedResult<T>> timed) mutable -> FutureResult<T> {
        // A caller that takes the result late has not made the call slow. Neither has a call that
        // fails with the timeout of another service.
        if (timed.ok() && timed->is_late) {
          absl::Status late = ending.LateError();
          ending.EndAs(CallOutcome::kTimeout);
          return late;
        }
        FutureResult<T> result = timed.ok() ? std::move(timed->result) : FutureResult<T>(timed.status());
        if constexpr (std::is_null_pointer_v<IsFailure>) {
          ending.EndAs(ending.OutcomeOf(StatusOf(result)));
        } else {
          ending.EndAs(decide(result) ? CallOutcome::kFailure : CallOutcome::kSuccess);
        }
        return result;
      });
}

template <class Fn>
auto CircuitBreaker::CallNow(Fn&& fn) -> FutureResult<std::invoke_result_t<Fn>> {
  using Returned = std::invoke_result_t<Fn>;
  absl::StatusOr<Permit> permit = Enter();
  if (!permit.ok()) return permit.status();
  try {
    if constexpr (std::is_void_v<Returned>) {
      std::forward<Fn>(fn)();
      permit->End(absl::OkStatus());
      return absl::OkStatus();
    } else {
      FutureResult<Returned> result = std::forward<Fn>(fn)();
      permit->End(StatusOf(result));
      return result;
    }
  } catch (...) {
    permit->EndAs(CallOutcome::kFailure);
    throw;
  }
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATTERN_CIRCUIT_BREAKER_H_
