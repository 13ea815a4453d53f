// WireErrorKind: what is wrong with a frame, for programs that decide by it.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_REMOTE_WIRE_WIRE_ERROR_H_
#define FRAKTOR_REMOTE_WIRE_WIRE_ERROR_H_

#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

enum class WireErrorKind {
  kMalformed = 0,        // not what the protocol says
  kTooLarge = 1,         // above a limit
  kUnknownFraming = 2,   // another way of framing altogether
  kNoCommonVersion = 3,  // the two sides have no version of the protocol in common
};

template <>
struct ErrorKindTraits<WireErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/wire";
  static constexpr WireErrorKind kLast = WireErrorKind::kNoCommonVersion;
};

inline absl::Status MalformedFrame(std::string_view text) {
  return MakeError(absl::StatusCode::kInvalidArgument, WireErrorKind::kMalformed, text);
}
inline absl::Status TooLargeFrame(std::string_view text) {
  return MakeError(absl::StatusCode::kOutOfRange, WireErrorKind::kTooLarge, text);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_WIRE_WIRE_ERROR_H_
