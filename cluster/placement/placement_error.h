// PlacementLockError and ActivationStorageError: what a lock and a storage refuse, for programs that decide by it. What
// merely went wrong (no connection, no answer) has none of these kinds: then nobody knows whether it was done.
//
//   if (ErrorKindOf<PlacementLockError>(status) == PlacementLockError::kHeld) TryAgainLater();
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_ERROR_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

// Sent between nodes: a number is never used for something else.
enum class PlacementLockError {
  // Somebody else holds it.
  kHeld = 0,
  // The lease that was to be released is not the one that holds: it is over, or was released before.
  kLost = 1,
};

template <>
struct ErrorKindTraits<PlacementLockError> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/placement_lock";
  static constexpr PlacementLockError kLast = PlacementLockError::kLost;
};

// Each says that nothing was changed.
enum class ActivationStorageError {
  // What is stored is not what the caller has seen.
  kConflict = 0,
  // The token is not the current one any more.
  kFenced = 1,
};

template <>
struct ErrorKindTraits<ActivationStorageError> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/activation_storage";
  static constexpr ActivationStorageError kLast = ActivationStorageError::kFenced;
};

// `lock of "account/alice": <what>`
absl::Status MakeLockError(absl::StatusCode code, PlacementLockError error, const GrainKey& key, std::string_view what);
// `activation of "account/alice": <what>`
absl::Status MakeStorageError(absl::StatusCode code, ActivationStorageError error, const GrainKey& key,
                              std::string_view what);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_ERROR_H_
