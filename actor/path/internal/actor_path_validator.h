// ActorPathValidator: checks the parts of a path: names of actors, names of systems, schemes and
// hosts.
//
//   FRAKTOR_RETURN_IF_ERROR(ActorPathValidator::ValidateUserName(name));  // name "a b": ' ' at 1 is not allowed; ...
//
// A segment consists of letters, digits, `-_.*$+:@&=,!~';` and `%HH`. The validator decodes %HH and
// refuses a control character, a slash or a byte that is not ASCII, so that a name cannot smuggle
// anything into a log line or another path. The text itself never changes: `%2d` and `-` are
// different names. Pekko lets every %HH pass. The difference shows where a whole address becomes a
// name: `pekko%3A%2F%2Fshop%40host%3A1` is refused because of its `%2F`. Apart from the slashes an
// address needs no encoding: `pekko:shop@host:1` is a name.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_VALIDATOR_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_VALIDATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace fraktor::inline v0::path_internal {

class ActorPathValidator {
 public:
  static constexpr size_t kMaxHostLength = 255;

  // Checks a segment of any origin: it is not empty and has only the characters above. It may begin
  // with `$`.
  static absl::Status ValidateSegment(std::string_view segment);

  // Checks a name that a user gives: a segment that does not begin with `$`. The runtime's own
  // names begin with `$`.
  static absl::Status ValidateUserName(std::string_view name);

  // Checks segments with `/` between them, as in a selection without wildcards. `..` is allowed;
  // empty segments vanish.
  static absl::Status ValidateRelative(std::string_view path);

  // A system name is a letter or digit, followed by letters, digits, `-` and `_`.
  static absl::Status ValidateSystemName(std::string_view name);

  // A scheme is a letter, followed by letters, digits, `+`, `-` and `.`.
  static absl::Status ValidateScheme(std::string_view scheme);

  // Checks the host of an authority that a program builds: a name, an IPv4 address, or an IPv6
  // address in brackets, of at most 255 bytes. As in Pekko, `_` is allowed if a dot follows later.
  // UriParser is stricter, also as in Pekko: a path with such a host can be built and compared, but
  // not parsed. So a system must not use such a host as its own name (RemotingConfig checks it).
  static absl::Status ValidateHost(std::string_view host);
};

// The parts of a path or URI that a byte may stand in; a set of bits.
enum CharacterClass : uint8_t {
  kSegmentChar = 1,   // in a segment; without %
  kUriPathChar = 2,   // in a path of RFC 2396; without % and /
  kUriQueryChar = 4,  // in a query or fragment of RFC 2396; without %
  kUriNameChar = 8,   // in a registry-based authority or a userinfo of RFC 2396; without % and @
  kHexDigit = 16,
  kAlnum = 32,
  kSchemeChar = 64,   // in a scheme, after its first letter
  kSystemChar = 128,  // in a system's name, after its first character
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

// Returns the value of a hexadecimal digit.
inline int HexValue(char c) { return IsDigit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

// Returns whether `%HH` stands at `index`.
inline bool IsEscape(std::string_view text, size_t index) {
  return text.size() - index >= 3 && HasClass(text[index + 1], kHexDigit) && HasClass(text[index + 2], kHexDigit);
}

// Returns the byte that the escape at `index` encodes.
inline unsigned char DecodeEscape(std::string_view text, size_t index) {
  return static_cast<unsigned char>(HexValue(text[index + 1]) * 16 + HexValue(text[index + 2]));
}

inline bool IsAllowedEscape(unsigned char decoded) { return decoded >= 0x20 && decoded < 0x7f && decoded != '/'; }

// Returns whether the text is a segment. Fast; ValidateSegment explains what is wrong.
inline bool IsSegmentText(std::string_view segment) {
  for (size_t i = 0; i < segment.size(); ++i) {
    if (HasClass(segment[i], kSegmentChar)) continue;
    if (segment[i] != '%' || !IsEscape(segment, i) || !IsAllowedEscape(DecodeEscape(segment, i))) return false;
    i += 2;
  }
  return !segment.empty();
}

// Explains why a text is no segment, with the offending byte as the detail "index". Returns OK if
// it is one. The error calls the text `what`.
absl::Status ExplainSegment(std::string_view what, std::string_view text);

// Parses an unsigned decimal number of 64 bits. Leading zeros are allowed; an empty text is not.
bool ParseUid(std::string_view text, uint64_t& uid);

bool IsScheme(std::string_view scheme);
bool IsSystemName(std::string_view name);

enum class HostRule {
  kUri,    // RFC 2396; a first label may begin with a digit if it is the only one
  kBuilt,  // as kUri, and also `_` if a dot follows later
};

// Returns the position at which a host (a name, an IPv4 address, or an IPv6 address in brackets)
// breaks the rule, or npos. Ignores the length.
size_t FindHostError(std::string_view host, HostRule rule);

// Returns whether the text is an IPv6 address in brackets, with or without a zone (`%25eth0` or
// `%eth0`).
bool IsIpv6Literal(std::string_view host);

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_VALIDATOR_H_
