#include "fraktor/cluster/placement/placement_error.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status MakeLockError(absl::StatusCode code, PlacementLockError error, const GrainKey& key,
                           std::string_view what) {
  return MakeError(code, error, absl::StrCat("lock of \"", key.ToString(), "\": ", ToAbsl(what)));
}

absl::Status MakeStorageError(absl::StatusCode code, ActivationStorageError error, const GrainKey& key,
                              std::string_view what) {
  return MakeError(code, error, absl::StrCat("activation of \"", key.ToString(), "\": ", ToAbsl(what)));
}

}  // namespace fraktor::inline v0
