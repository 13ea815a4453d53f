#include "fraktor/actor/path/path_error.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

std::string QuotedForText(std::string_view input, size_t limit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < input.size(); ++i) {
    if (i == limit) {
      out += "...";
      break;
    }
    const auto byte = static_cast<unsigned char>(input[i]);
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(input[i]);
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x";
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    } else {
      out.push_back(input[i]);
    }
  }
  out.push_back('"');
  return out;
}

namespace path_internal {

absl::Status UriError(UriErrorKind kind, std::string_view text, size_t index) {
  return MakeError(absl::StatusCode::kInvalidArgument, kind, text, {{"index", index}});
}

absl::Status PathError(ActorPathErrorKind kind, std::string_view text, size_t index) {
  return MakeError(absl::StatusCode::kInvalidArgument, kind, text, {{"index", index}});
}

absl::Status PathError(ActorPathErrorKind kind, std::string_view text) {
  return MakeError(absl::StatusCode::kInvalidArgument, kind, text);
}

absl::Status WrapUriError(const absl::Status& uri_error) {
  const auto index = ErrorDetailNumberOf<UriErrorKind>(uri_error, "index").value_or(0);
  absl::Status wrapped =
      PathError(ActorPathErrorKind::kInvalidUri, ToStd(uri_error.message()), static_cast<size_t>(index));
  const absl::string_view url = ToAbsl(ErrorKindTraits<UriErrorKind>::kTypeUrl);
  if (const auto payload = uri_error.GetPayload(url); payload.has_value()) wrapped.SetPayload(url, *payload);
  return wrapped;
}

}  // namespace path_internal

}  // namespace fraktor::inline v0
