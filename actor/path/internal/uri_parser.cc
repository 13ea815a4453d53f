#include "fraktor/actor/path/internal/uri_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::path_internal {

namespace {

constexpr size_t kNone = std::string_view::npos;

// A value for `also` below that allows nothing else: each class has letters anyway.
constexpr char kNothingElse = 'a';

bool Fail(UriFailure& failure, UriErrorKind kind, size_t index) {
  failure = {kind, index};
  return false;
}

// Advances `index` while bytes are in `classes`, are `also`, or are escapes. Stops at the first
// other byte. Returns false at a malformed escape.
bool SkipCharacters(std::string_view input, uint8_t classes, char also, size_t& index, UriFailure& failure) {
  while (index < input.size()) {
    const char c = input[index];
    if (HasClass(c, classes) || c == also) {
      ++index;
    } else if (c == '%') {
      if (!IsEscape(input, index)) return Fail(failure, UriErrorKind::kInvalidEscape, index);
      index += 3;
    } else {
      break;
    }
  }
  return true;
}

// Parses digits up to 65535. As in RFC 2396, an empty text means that there is no port.
bool ParsePort(std::string_view text, std::optional<uint16_t>& port) {
  uint32_t value = 0;
  for (char c : text) {
    if (!IsDigit(c)) return false;
    value = value * 10 + static_cast<uint32_t>(c - '0');
    if (value > 65535) return false;
  }
  if (!text.empty()) port = static_cast<uint16_t>(value);
  return true;
}

// Returns whether the authority is [userinfo@]host[:port]. Sets the fields of `parts` only then.
bool ParseServer(std::string_view authority, UriParts& parts) {
  std::optional<std::string_view> userinfo;
  std::string_view rest = authority;
  if (const size_t at = authority.find('@'); at != kNone) {
    userinfo = authority.substr(0, at);
    rest = authority.substr(at + 1);
    UriFailure ignored;
    size_t end = 0;
    if (!SkipCharacters(*userinfo, kUriNameChar, kNothingElse, end, ignored) || end != userinfo->size()) return false;
  }
  size_t host_end = 0;
  if (!rest.empty() && rest.front() == '[') {
    host_end = rest.find(']');
    if (host_end == kNone) return false;
    ++host_end;
  } else {
    host_end = std::min(rest.find(':'), rest.size());
  }
  const std::string_view host = rest.substr(0, host_end);
  std::optional<uint16_t> port;
  if (host_end < rest.size() && (rest[host_end] != ':' || !ParsePort(rest.substr(host_end + 1), port))) return false;
  if (FindHostError(host, HostRule::kUri) != kNone) return false;
  parts.userinfo = userinfo;
  parts.host = host;
  parts.port = port;
  parts.is_server = true;
  return true;
}

bool ParseAuthority(std::string_view input, size_t begin, size_t end, UriParts& parts, UriFailure& failure) {
  parts.has_authority = true;
  parts.authority = input.substr(begin, end - begin);
  if (parts.authority.empty() || ParseServer(parts.authority, parts)) return true;
  if (const size_t bracket = parts.authority.find('['); bracket != kNone) {
    return Fail(failure, UriErrorKind::kInvalidHost, begin + bracket);
  }
  size_t index = 0;
  const bool escapes_hold = SkipCharacters(parts.authority, kUriNameChar, '@', index, failure);
  if (!escapes_hold) return Fail(failure, failure.kind, begin + failure.index);
  if (index < parts.authority.size()) return Fail(failure, UriErrorKind::kInvalidCharacter, begin + index);
  return true;
}

}  // namespace

bool ParseUri(std::string_view input, UriParts& parts, UriFailure& failure) {
  if (input.size() > kMaxUriLength) return Fail(failure, UriErrorKind::kTooLong, kMaxUriLength);
  size_t index = 0;
  while (index < input.size() && HasClass(input[index], kSchemeChar)) ++index;
  const size_t delimiter = index < input.size() && input[index] == ':' ? index : input.find_first_of(":/?#", index);
  if (delimiter != kNone && input[delimiter] == ':') {
    if (index != delimiter) return Fail(failure, UriErrorKind::kInvalidScheme, index);
    if (index == 0 || !IsLetter(input[0])) return Fail(failure, UriErrorKind::kInvalidScheme, 0);
    parts.scheme = input.substr(0, index);
    ++index;
  } else {
    index = 0;
  }
  if (input.substr(index, 2) == "//") {
    const size_t begin = index + 2;
    size_t end = begin;
    while (end < input.size() && input[end] != '/' && input[end] != '?' && input[end] != '#') ++end;
    if (!ParseAuthority(input, begin, end, parts, failure)) return false;
    index = end;
  }
  size_t begin = index;
  if (!SkipCharacters(input, kUriPathChar, '/', index, failure)) return false;
  parts.path = input.substr(begin, index - begin);
  if (index < input.size() && input[index] == '?') {
    begin = ++index;
    if (!SkipCharacters(input, kUriQueryChar, '?', index, failure)) return false;
    parts.query = input.substr(begin, index - begin);
  }
  if (index < input.size() && input[index] == '#') {
    begin = ++index;
    if (!SkipCharacters(input, kUriQueryChar, '?', index, failure)) return false;
    parts.fragment = input.substr(begin, index - begin);
  }
  if (index < input.size()) return Fail(failure, UriErrorKind::kInvalidCharacter, index);
  return true;
}

absl::Status ExplainUriFailure(std::string_view input, const UriFailure& failure) {
  const std::string what = absl::StrCat("uri ", QuotedForText(input), ": ");
  std::string character = "the end";
  if (failure.index < input.size()) {
    const std::string quoted = QuotedForText(input.substr(failure.index, 1));
    character = absl::StrCat("'", quoted.substr(1, quoted.size() - 2), "'");
  }
  const std::string at = absl::StrCat(character, " at ", failure.index);
  switch (failure.kind) {
    case UriErrorKind::kInvalidScheme:
      return UriError(
          failure.kind,
          absl::StrCat(what, at,
                       " cannot stand in a scheme; write scheme:// with a letter and then letters, digits, +, - and ."),
          failure.index);
    case UriErrorKind::kInvalidCharacter: {
      // Escapes of control characters and of bytes that are not ASCII are refused too, so the text
      // does not advise them.
      const bool may_be_escaped =
          failure.index < input.size() && IsAllowedEscape(static_cast<unsigned char>(input[failure.index]));
      return UriError(failure.kind,
                      absl::StrCat(what, at, " is not allowed there; ", may_be_escaped ? "write it as %HH or " : "",
                                   "leave it out"),
                      failure.index);
    }
    case UriErrorKind::kInvalidEscape:
      return UriError(
          failure.kind,
          absl::StrCat(what, at, " is not followed by two hexadecimal digits; write %25 for a percent sign"),
          failure.index);
    case UriErrorKind::kInvalidHost:
      return UriError(failure.kind,
                      absl::StrCat(what, "no IPv6 address stands in the brackets at ", failure.index,
                                   "; write it like [2001:db8::1] or [fe80::1%25eth0]"),
                      failure.index);
    case UriErrorKind::kTooLong:
      return UriError(
          failure.kind,
          absl::StrCat(what, "has ", input.size(), " bytes; at most ", kMaxUriLength, " are read: shorten it"),
          failure.index);
  }
  return UriError(failure.kind, what, failure.index);
}

absl::StatusOr<UriParts> UriParser::Parse(std::string_view input) {
  UriParts parts;
  UriFailure failure;
  if (!ParseUri(input, parts, failure)) return ExplainUriFailure(input, failure);
  return parts;
}

}  // namespace fraktor::inline v0::path_internal
