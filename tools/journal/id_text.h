// IdText: persistence ids as they are printed, and as they may be typed or pasted.
//
//   IdText("Grüße")                      // Grüße
//   IdText(std::string("gone\0", 5))     // gone\x00
//   ParseIdText("gone\\x00")             // the five bytes
//
// UTF-8 stays as it is; control characters and other bytes are escaped, and so is the backslash.
//
// Thread safety: free functions.
#ifndef FRAKTOR_TOOLS_JOURNAL_ID_TEXT_H_
#define FRAKTOR_TOOLS_JOURNAL_ID_TEXT_H_

#include <optional>
#include <string>
#include <string_view>

namespace fraktor::inline v0 {

std::string IdText(std::string_view id);

// The id that IdText prints so. Also knows \n, \t, \r, \" and \'. None for anything else behind a backslash.
std::optional<std::string> ParseIdText(std::string_view text);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_TOOLS_JOURNAL_ID_TEXT_H_
