#include "fraktor/actor/path/path_segment.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/auto_name.h"
#include "fraktor/utils/status/status_macros.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;
using path_internal::AutoName;

absl::StatusOr<PathSegment> PathSegment::Create(std::string_view name) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateUserName(name));
  return PathSegment(std::string(name));
}

absl::StatusOr<PathSegment> PathSegment::Parse(std::string_view text) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateSegment(text));
  return PathSegment(std::string(text));
}

PathSegment PathSegment::Auto(uint64_t number) { return PathSegment(AutoName(number)); }

std::string PathSegment::Decoded() const {
  std::string decoded;
  decoded.reserve(raw_.size());
  for (size_t i = 0; i < raw_.size(); ++i) {
    if (raw_[i] != '%') {
      decoded.push_back(raw_[i]);
    } else {
      decoded.push_back(static_cast<char>(path_internal::DecodeEscape(raw_, i)));
      i += 2;
    }
  }
  return decoded;
}

}  // namespace fraktor::inline v0
