// Macros that return an error to the caller, without a test in each place.
//
//   absl::StatusOr<Snapshot> Load(const Store& store, std::string_view id) {
//     FRAKTOR_RETURN_IF_ERROR(store.CheckOpen());
//     FRAKTOR_ASSIGN_OR_RETURN(std::string bytes, store.Read(id));
//     FRAKTOR_ASSIGN_OR_RETURN((auto [header, body]), Split(bytes));  // parentheses: the left side has a comma
//     FRAKTOR_RETURN_IF_ERROR(Annotate(Check(header), id));           // "id: message", with the same code and payloads
//     return Decode(body);
//   }
//
// Both macros work in functions and lambdas that return absl::Status or absl::StatusOr<T>. A
// coroutine needs co_return, so it uses FRAKTOR_CO_RETURN_IF_ERROR and FRAKTOR_CO_ASSIGN_OR_RETURN.
// The expression is evaluated once, and may contain commas.
#ifndef FRAKTOR_UTILS_STATUS_STATUS_MACROS_H_
#define FRAKTOR_UTILS_STATUS_STATUS_MACROS_H_

#include <string_view>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates an expression of type absl::Status and returns it from the function if it is an error.
// It is one statement, so it may follow an `if` without braces.
#define FRAKTOR_RETURN_IF_ERROR(...) \
  FRAKTOR_STATUS_RETURN_IF_ERROR_(return, FRAKTOR_STATUS_NAME_(fraktor_status_, __COUNTER__), (__VA_ARGS__))

// Evaluates an expression of type absl::StatusOr<T>. Returns its status from the function if it is
// an error. Otherwise moves the value to `lhs`: a declaration, a variable, or anything else that
// may stand left of `=`. It is more than one statement, so it needs braces after an `if`.
#define FRAKTOR_ASSIGN_OR_RETURN(lhs, ...) \
  FRAKTOR_STATUS_ASSIGN_OR_RETURN_(return, FRAKTOR_STATUS_NAME_(fraktor_status_or_, __COUNTER__), lhs, (__VA_ARGS__))

// The same for coroutines. `FRAKTOR_CO_ASSIGN_OR_RETURN(int n, co_await counting);` works if
// `counting` is a named future or task; utils/future/task.h says why it needs a name. A Task<void>
// cannot co_return a status: make it a Task<absl::Status>.
#define FRAKTOR_CO_RETURN_IF_ERROR(...) \
  FRAKTOR_STATUS_RETURN_IF_ERROR_(co_return, FRAKTOR_STATUS_NAME_(fraktor_status_, __COUNTER__), (__VA_ARGS__))
#define FRAKTOR_CO_ASSIGN_OR_RETURN(lhs, ...) \
  FRAKTOR_STATUS_ASSIGN_OR_RETURN_(co_return, FRAKTOR_STATUS_NAME_(fraktor_status_or_, __COUNTER__), lhs, (__VA_ARGS__))

namespace fraktor::inline v0 {

// Returns the error with "context: " before its message, and with the same code and payloads. OK
// stays OK. An empty context changes nothing.
absl::Status Annotate(absl::Status status, std::string_view context);

// The same for a StatusOr. A value stays as it is.
template <class T>
absl::StatusOr<T> Annotate(absl::StatusOr<T> value, std::string_view context) {
  if (ABSL_PREDICT_TRUE(value.ok())) return value;
  return Annotate(std::move(value).status(), context);
}

}  // namespace fraktor::inline v0

// The parts of the macros. Their variable names contain a counter, so that a lambda inside the
// expression may use the macros too.
#define FRAKTOR_STATUS_NAME_(prefix, number) FRAKTOR_STATUS_CONCAT_(prefix, number)
#define FRAKTOR_STATUS_CONCAT_(a, b) a##b

#define FRAKTOR_STATUS_RETURN_IF_ERROR_(return_keyword, name, expression)                      \
  do {                                                                                         \
    if (::absl::Status name = expression; ABSL_PREDICT_FALSE(!name.ok())) return_keyword name; \
  } while (false)

#define FRAKTOR_STATUS_ASSIGN_OR_RETURN_(return_keyword, name, lhs, expression)  \
  auto name = expression;                                                        \
  if (ABSL_PREDICT_FALSE(!name.ok())) return_keyword ::std::move(name).status(); \
  FRAKTOR_STATUS_WITHOUT_PARENTHESES_(lhs) = *::std::move(name)

// Removes parentheses, if there are any: `(auto [a, b])` becomes `auto [a, b]`, and `int x` stays
// `int x`.
#define FRAKTOR_STATUS_WITHOUT_PARENTHESES_(x) FRAKTOR_STATUS_DROP_(FRAKTOR_STATUS_MARK_ x)
#define FRAKTOR_STATUS_MARK_(...) FRAKTOR_STATUS_MARK_ __VA_ARGS__
#define FRAKTOR_STATUS_DROP_(...) FRAKTOR_STATUS_DROP_MARK_(__VA_ARGS__)
#define FRAKTOR_STATUS_DROP_MARK_(...) FRAKTOR_STATUS_NO_##__VA_ARGS__
#define FRAKTOR_STATUS_NO_FRAKTOR_STATUS_MARK_

#endif  // FRAKTOR_UTILS_STATUS_STATUS_MACROS_H_
