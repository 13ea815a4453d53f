#include "fraktor/actor/tree/internal/instance_making.h"

#include <exception>

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

absl::Status ErrorOfConstructor(const ActorProps& props) {
  try {
    throw;
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw: ", e.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("the constructor of ", ToAbsl(props.type_name()), " threw"));
  }
}

}  // namespace fraktor::inline v0::actor_internal
