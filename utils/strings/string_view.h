// std::string_view to absl::string_view and back.
//
//   absl::Status Refuse(std::string_view name) { return absl::NotFoundError(absl::StrCat("no actor ", ToAbsl(name))); }
//   std::string_view text = ToStd(status.message());
//
// In today's Abseil the two are one type; in the one that Debian 12 ships they are not, and neither converts to the
// other. Our API has std::string_view everywhere and calls these at the border. Never overload on both.
#ifndef FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_
#define FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace fraktor::inline v0 {

inline absl::string_view ToAbsl(std::string_view text) { return absl::string_view(text.data(), text.size()); }
inline std::string_view ToStd(absl::string_view text) { return std::string_view(text.data(), text.size()); }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_
