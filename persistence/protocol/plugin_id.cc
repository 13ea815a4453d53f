#include "fraktor/persistence/protocol/plugin_id.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
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

std::string JournalActorName(std::string_view plugin_id, size_t index) {
  const std::string first = absl::StrCat("journal-", ToAbsl(plugin_id));
  return index == 0 ? first : absl::StrCat(first, "-", index);
}

std::string SnapshotActorName(std::string_view plugin_id) { return absl::StrCat("snapshots-", ToAbsl(plugin_id)); }

std::string StateActorName(std::string_view plugin_id) { return absl::StrCat("states-", ToAbsl(plugin_id)); }

}  // namespace fraktor::inline v0
