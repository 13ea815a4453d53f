#include "fraktor/cluster/identity/lookup_error.h"

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

std::string_view LookupErrorName(LookupError error) {
  switch (error) {
    case LookupError::kInvalidKey:
      return "invalid key";
    case LookupError::kUnknownKind:
      return "unknown kind";
    case LookupError::kNotStarted:
      return "not started";
    case LookupError::kNotReady:
      return "not ready";
    case LookupError::kPending:
      return "pending";
    case LookupError::kLockDenied:
      return "lock denied";
    case LookupError::kStorageFailed:
      return "storage failed";
    case LookupError::kTimeout:
      return "timeout";
  }
  return "unknown";
}

absl::Status MakeLookupError(LookupError error, absl::StatusCode code, const GrainKey& key, std::string_view what) {
  constexpr size_t kShown = 200;
  std::string name = key.ToString();
  if (name.size() > kShown) name = absl::StrCat(name.substr(0, kShown), "...");
  return MakeError(code, error, absl::StrCat("grain \"", name, "\": ", ToAbsl(what)));
}

bool IsRetryableLookup(const absl::Status& status) {
  const std::optional<LookupError> error = ErrorKindOf<LookupError>(status);
  return error == LookupError::kNotReady || error == LookupError::kPending || error == LookupError::kLockDenied ||
         error == LookupError::kStorageFailed;
}

}  // namespace fraktor::inline v0
