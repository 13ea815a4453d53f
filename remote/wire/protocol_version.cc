#include "fraktor/remote/wire/protocol_version.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "fraktor/remote/wire/wire_error.h"

namespace fraktor::inline v0 {

absl::StatusOr<uint32_t> ChooseVersion(VersionRange ours, VersionRange theirs) {
  if (theirs.min == 0 || theirs.min > theirs.max) {
    return MalformedFrame(absl::StrCat("a peer that speaks the versions ", theirs.min, " to ", theirs.max));
  }
  const uint32_t chosen = std::min(ours.max, theirs.max);
  if (chosen >= std::max(ours.min, theirs.min)) return chosen;
  return MakeError(
      absl::StatusCode::kFailedPrecondition, WireErrorKind::kNoCommonVersion,
      absl::StrCat("no common version of the protocol: this node speaks ", ours.min, " to ", ours.max, ", the peer ",
                   theirs.min, " to ", theirs.max, "; update ", theirs.max < ours.min ? "the peer" : "this node"));
}

}  // namespace fraktor::inline v0
