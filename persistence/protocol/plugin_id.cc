#include "fraktor/persistence/protocol/plugin_id.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;

absl::Status CheckPluginId(std::string_view what, std::string_view plugin_id) {
  const absl::Status valid = ActorPathValidator::ValidateUserName(plugin_id);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(
      absl::StrCat("the id of a ", ToAbsl(what), " becomes part of the name of an actor: ", valid.message()));
}

}  // namespace fraktor::inline v0
