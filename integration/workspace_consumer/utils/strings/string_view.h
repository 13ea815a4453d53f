#ifndef CONSUMER_UTILS_STRINGS_STRING_VIEW_H_
#define CONSUMER_UTILS_STRINGS_STRING_VIEW_H_

#include <string_view>

// The path of this header is also the path of one of fraktor's, below fraktor/.
inline std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find(' ')); }

#endif  // CONSUMER_UTILS_STRINGS_STRING_VIEW_H_
