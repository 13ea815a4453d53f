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

GrainKey::Name::Name(std::string_view its_kind, std::string_view its_identity)
    : kind(its_kind),
      identity(its_identity),
      // The kind's hash is the seed, so ("ab", "c") and ("a", "bc") have nothing in common.
      hash(StableHash64(identity, StableHash64(kind))) {}

const GrainKey::Name& GrainKey::NoName() {
  static const Shared<Name>& none = *new Shared<Name>(MakeShared<Name>());
  return *none;
}

GrainKey::GrainKey(std::string_view kind, std::string_view identity)
    : name_(MakeShared<Name>(kind, identity)), table_hash_(absl::HashOf(name_->kind, name_->identity)) {}

absl::Status GrainKey::Check() const {
  if (kind().empty() || kind().size() > kMaxKindBytes || kind().find('/') != std::string::npos) {
    return MakeLookupError(LookupError::kInvalidKey, absl::StatusCode::kInvalidArgument, *this,
                           "a kind has 1 to 255 bytes and no '/'");
  }
  if (identity().empty() || identity().size() > kMaxIdentityBytes) {
    return MakeLookupError(LookupError::kInvalidKey, absl::StatusCode::kInvalidArgument, *this,
                           absl::StrCat("an identity has 1 to 1024 bytes, not ", identity().size()));
  }
  return absl::OkStatus();
}

std::string GrainKey::ToString() const { return absl::StrCat(kind(), "/", identity()); }

}  // namespace fraktor::inline v0
