#include "fraktor/cluster/identity/grain_key.h"

#include <string>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/cluster/identity/lookup_error.h"
#include "fraktor/cluster/identity/stable_hash.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

GrainKey::GrainKey(std::string_view kind, std::string_view identity)
    : kind_(kind),
      identity_(identity),
      // The kind's hash is the seed, so ("ab", "c") and ("a", "bc") have nothing in common.
      hash_(StableHash64(identity, StableHash64(kind))),
      table_hash_(absl::HashOf(kind_, identity_)) {}

absl::Status GrainKey::Check() const {
  if (kind_.empty() || kind_.size() > kMaxKindBytes || kind_.find('/') != std::string::npos) {
    return MakeLookupError(LookupError::kInvalidKey, absl::StatusCode::kInvalidArgument, *this,
                           "a kind has 1 to 255 bytes and no '/'");
  }
  if (identity_.empty() || identity_.size() > kMaxIdentityBytes) {
    return MakeLookupError(LookupError::kInvalidKey, absl::StatusCode::kInvalidArgument, *this,
                           absl::StrCat("an identity has 1 to 1024 bytes, not ", identity_.size()));
  }
  return absl::OkStatus();
}

std::string GrainKey::ToString() const { return absl::StrCat(kind_, "/", identity_); }

}  // namespace fraktor::inline v0
