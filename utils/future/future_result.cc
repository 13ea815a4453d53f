#include "fraktor/utils/future/future_result.h"

#include <cxxabi.h>

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fraktor::inline v0 {

absl::Status StatusFromException(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return absl::UnknownError(absl::StrCat("exception: ", e.what()));
  } catch (...) {
    return absl::UnknownError("exception of a type that is not derived from std::exception");
  }
}

std::exception_ptr CaptureException() {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace fraktor::inline v0
