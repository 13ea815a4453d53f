// The rules for what stands in a path: names of actors, of systems, and hosts.
//
//   FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateUserName(name));  // name "a b": ' ' at 1 is not allowed; ...
//
// A segment has letters, digits, `-_.*$+:@&=,!~';` and `%HH`. %HH is decoded and the result checked: a control
// character, a slash or a byte that is not ASCII is refused, so that nothing can be smuggled into a log line or another
// path. The text itself is never changed: `%2d` and `-` are different names. Pekko lets every %HH pass. The difference is
// seen where a whole address is made a name: `pekko%3A%2F%2Fshop%40host%3A1` is refused because of its `%2F`; but for the
// slashes it needs no encoding at all: `pekko:shop@host:1` is a name.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_VALIDATOR_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_VALIDATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0 {

class ActorPathValidator {
 public:
  static constexpr size_t kMaxHostLength = 255;

  // A segment of any origin: not empty, and only the characters above. It may begin with `$`.
  static absl::Status ValidateSegment(std::string_view segment);

  // A name that a user gives: a segment that does not begin with `$`, which is kept for names that the runtime makes.
  static absl::Status ValidateUserName(std::string_view name);

  // Segments with `/` between them, as of a selection without wildcards; `..` is allowed, empty segments vanish.
  static absl::Status ValidateRelative(std::string_view path);

  // A letter or digit, then letters, digits, `-` and `_`.
  static absl::Status ValidateSystemName(std::string_view name);

  // A letter, then letters, digits, `+`, `-` and `.`.
  static absl::Status ValidateScheme(std::string_view scheme);

  // A host for an authority that a program builds: a name, an IPv4 address, or an IPv6 address in brackets, at most 255
  // bytes. A `_` is allowed where a dot follows later, as in Pekko. UriParser is stricter, also as in Pekko: a path with
  // such a host can be built and compared, but not parsed. So a system does not call itself by one (RemotingConfig).
  static absl::Status ValidateHost(std::string_view host);
};

namespace path_internal {

// What a byte may be part of.
enum CharacterClass : uint8_t {
  kSegmentChar = 1,   // of a segment, without %
  kUriPathChar = 2,   // of a path of RFC 2396, without % and /
  kUriQueryChar = 4,  // of a query or fragment of RFC 2396, without %
  kUriNameChar = 8,   // of a registry-based authority or a userinfo of RFC 2396, without % and @
  kHexDigit = 16,
  kAlnum = 32,
  kSchemeChar = 64,   // of a scheme, behind its first letter
  kSystemChar = 128,  // of a system's name, behind its first character
};

constexpr std::array<uint8_t, 256> MakeCharacterTable() {
  std::array<uint8_t, 256> table{};
  auto add = [&table](std::string_view characters, uint8_t classes) {
    for (char c : characters) table[static_cast<unsigned char>(c)] |= classes;
  };
  add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
      kSegmentChar | kUriPathChar | kUriQueryChar | kUriNameChar | kAlnum | kSchemeChar | kSystemChar);
  add("0123456789abcdefABCDEF", kHexDigit);
  add("-_.*$+:@&=,!~';", kSegmentChar);
  add("-_.!~*'()", kUriPathChar | kUriQueryChar | kUriNameChar);  // the marks of RFC 2396
  add(":@&=+$,;", kUriPathChar | kUriQueryChar);
  add("/?", kUriQueryChar);
  add("$,;:&=+", kUriNameChar);
  add("+-.", kSchemeChar);
  add("-_", kSystemChar);
  return table;
}

inline constexpr std::array<uint8_t, 256> kCharacterTable = MakeCharacterTable();

inline bool HasClass(char c, uint8_t classes) {
  return (kCharacterTable[static_cast<unsigned char>(c)] & classes) != 0;
}

inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The value of a hexadecimal digit.
inline int HexValue(char c) { return IsDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

// Whether `%HH` stands at `index`.
inline bool IsEscape(std::string_view text, size_t index) {
  return text.size() - index >= 3 && HasClass(text[index + 1], kHexDigit) && HasClass(text[index + 2], kHexDigit);
}

// The byte that the escape at `index` stands for.
inline unsigned char DecodeEscape(std::string_view text, size_t index) {
  return static_cast<unsigned char>(HexValue(text[index + 1]) * 16 + HexValue(text[index + 2]));
}

inline bool IsAllowedEscape(unsigned char decoded) { return decoded >= 0x20 && decoded < 0x7f && decoded != '/'; }

// Whether every byte may stand in a segment. The quick way; ValidateSegment says what is wrong.
inline bool IsSegmentText(std::string_view segment) {
  for (size_t i = 0; i < segment.size(); ++i) {
    if (HasClass(segment[i], kSegmentChar)) continue;
    if (segment[i] != '%' || !IsEscape(segment, i) || !IsAllowedEscape(DecodeEscape(segment, i))) return false;
    i += 2;
  }
  return !segment.empty();
}

// Why a text is no segment, with the offending byte as "index"; OK if it is one. `what` is how the error calls it.
absl::Status ExplainSegment(std::string_view what, std::string_view text);

// A decimal number of 64 bits without sign; leading zeros are allowed, nothing at all is not.
bool ParseUid(std::string_view text, uint64_t& uid);

bool IsScheme(std::string_view scheme);
bool IsSystemName(std::string_view name);

enum class HostRule {
  kUri,    // RFC 2396, of which a first label may begin with a digit if it is the only one
  kBuilt,  // also `_`, where a dot follows later
};

// Where a host (a name, an IPv4 address, or an IPv6 address in brackets) breaks the rule, or npos. Length is not looked
// at.
size_t FindHostError(std::string_view host, HostRule rule);

// Whether it is an IPv6 address with its brackets, with or without a zone (`%25eth0` or `%eth0`).
bool IsIpv6Literal(std::string_view host);

}  // namespace path_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_VALIDATOR_H_
