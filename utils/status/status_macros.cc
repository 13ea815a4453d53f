#include "fraktor/utils/status/status_macros.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status Annotate(absl::Status status, std::string_view context) {
  if (status.ok() || context.empty()) return status;
  absl::Status annotated(status.code(), absl::StrCat(ToAbsl(context), ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type_url, const absl::Cord& payload) { annotated.SetPayload(type_url, payload); });
  return annotated;
}

}  // namespace fraktor::inline v0
