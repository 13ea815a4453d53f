#include "fraktor/persistence/typed/effect.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::typed_internal {

absl::Status AnswersOtherwise(std::string_view actor, std::string_view command, std::string_view reply,
                              std::string_view given) {
  return absl::InternalError(absl::StrCat(
      ToAbsl(actor), " answers ", ToAbsl(command), " with a ", ToAbsl(given), ", but its Reply is ", ToAbsl(reply),
      ": nothing is stored. Let Handle return a ReplyEffect<", ToAbsl(reply), ">, and the compiler finds where"));
}

}  // namespace fraktor::inline v0::typed_internal
