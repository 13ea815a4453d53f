#include "fraktor/actor/path/actor_path_parts.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;

absl::StatusOr<ActorPathParts> ActorPathParts::Local(std::string_view system, std::string_view scheme) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateScheme(scheme));
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateSystemName(system));
  return ActorPathParts(scheme, system, std::nullopt);
}

absl::StatusOr<ActorPathParts> ActorPathParts::Remote(std::string_view system, PathAuthority authority) {
  FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateSystemName(system));
  const std::string scheme(authority.protocol());
  return ActorPathParts(scheme, system, std::move(authority));
}

std::string ActorPathParts::ToString() const {
  if (!authority_.has_value()) return absl::StrCat(scheme_, "://", system_);
  return absl::StrCat(scheme_, "://", system_, "@", ToAbsl(authority_->host()), ":", authority_->port());
}

}  // namespace fraktor::inline v0
