// FutureResult<T>: the result type of a Future<T> or Task<T>. It is absl::StatusOr<T>; for void,
// and for a Task<absl::Status>, it is absl::Status.
#ifndef FRAKTOR_UTILS_FUTURE_FUTURE_RESULT_H_
#define FRAKTOR_UTILS_FUTURE_FUTURE_RESULT_H_

#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

namespace future_internal {

template <class T>
struct ResultTraits {
  static_assert(!std::is_reference_v<T>, "a future holds a value; use a pointer or std::reference_wrapper");
  using Result = absl::StatusOr<T>;
  using Value = T;
};
template <>
struct ResultTraits<void> {
  using Result = absl::Status;
  using Value = void;
};
template <>
struct ResultTraits<absl::Status> : ResultTraits<void> {};
template <class T>
struct ResultTraits<absl::StatusOr<T>> : ResultTraits<T> {};

}  // namespace future_internal

// absl::StatusOr<T>; absl::Status for void and absl::Status; a StatusOr stays as it is.
template <class T>
using FutureResult = typename future_internal::ResultTraits<T>::Result;

// The T of the Future<T> that a function with the return type `R` gives: int for int and for
// absl::StatusOr<int>, void for void and absl::Status.
template <class R>
using FutureValue = typename future_internal::ResultTraits<R>::Value;

// Converts an exception to an error: kUnknown, with the text of a std::exception.
absl::Status StatusFromException(const std::exception_ptr& exception);

// Called in a handler that catches everything. Returns the current exception. Rethrows the
// unwinding of a cancelled thread.
std::exception_ptr CaptureException();

namespace future_internal {

// Calls `fn(args...)` and makes a result of its return value or exception.
template <class Fn, class... Args>
auto InvokeForResult(Fn&& fn, Args&&... args) -> FutureResult<std::invoke_result_t<Fn, Args...>> {
  using Returned = std::invoke_result_t<Fn, Args...>;
  try {
    if constexpr (std::is_void_v<Returned>) {
      std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...);
      return absl::OkStatus();
    } else {
      return std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...);
    }
  } catch (...) {
    return StatusFromException(CaptureException());
  }
}

}  // namespace future_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_FUTURE_FUTURE_RESULT_H_
