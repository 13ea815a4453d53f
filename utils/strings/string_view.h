// Converts between std::string_view and absl::string_view.
//
//   absl::Status Refuse(std::string_view name) { return absl::NotFoundError(absl::StrCat("no actor ", ToAbsl(name))); }
//
//   std::string_view text = ToStd(status.message());
//
// In current versions of Abseil the two are one type. In the version of Debian 12 they are two
// types, and neither converts to the other. Our API uses std::string_view everywhere and converts
// where it calls Abseil. Never overload a function on both.
#ifndef FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_
#define FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace fraktor::inline v0 {

inline absl::string_view ToAbsl(std::string_view text) { return absl::string_view(text.data(), text.size()); }
inline std::string_view ToStd(absl::string_view text) { return std::string_view(text.data(), text.size()); }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_STRINGS_STRING_VIEW_H_
