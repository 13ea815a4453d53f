// LookupError: why it is not known where a grain is, for programs that decide by it.
//
//   absl::StatusOr<PlacementResolutionPtr> where = lookup.Resolve(key, now);
//   if (ErrorKindOf<LookupError>(where.status()) == LookupError::kPending) TryAgainSoon();
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_CLUSTER_IDENTITY_LOOKUP_ERROR_H_
#define FRAKTOR_CLUSTER_IDENTITY_LOOKUP_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

class GrainKey;

// Sent between nodes: a number is never used for something else.
enum class LookupError {
  // The key makes no sense: its kind is empty, too long or has a '/', or its identity is empty or too long (GrainKey::Check).
  kInvalidKey = 0,
  // No member hosts the kind.
  kUnknownKind = 1,
  // Neither set up as a member nor as a client, or stopped.
  kNotStarted = 2,
  // Set up, but what has to be known first (members, or the latest of them) is not known yet.
  kNotReady = 3,
  // It is being found out: ask again.
  kPending = 4,
  // Somebody else is about it, or the lock could not be asked.
  kLockDenied = 5,
  // The record of the activation could not be read or written.
  kStorageFailed = 6,
  // No answer in time.
  kTimeout = 7,
};

template <>
struct ErrorKindTraits<LookupError> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/lookup";
  static constexpr LookupError kLast = LookupError::kTimeout;
};

// "lock denied" for kLockDenied.
std::string_view LookupErrorName(LookupError error);

// `grain "account/alice": <what>`; long keys are cut.
absl::Status MakeLookupError(LookupError error, absl::StatusCode code, const GrainKey& key, std::string_view what);

// Whether asking again may help without anybody doing anything: kNotReady, kPending, kLockDenied, kStorageFailed.
bool IsRetryableLookup(const absl::Status& status);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_LOOKUP_ERROR_H_
