#include "fraktor/actor/path/internal/actor_path_formatter.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::path_internal {

void ActorPathFormatter::AppendTo(const ActorPath& path, std::string& out) {
  if (path.uid().IsNone()) {
    absl::StrAppend(&out, ToAbsl(path.text()));
  } else {
    absl::StrAppend(&out, ToAbsl(path.text()), "#", path.uid().value());
  }
}

std::string ActorPathFormatter::FormatRef(const ActorPath& path) {
  if (path.uid().IsNone()) return absl::StrCat("Actor[", ToAbsl(path.text()), "]");
  return absl::StrCat("Actor[", ToAbsl(path.text()), "#", path.uid().value(), "]");
}

}  // namespace fraktor::inline v0::path_internal
