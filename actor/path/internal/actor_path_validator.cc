#include "fraktor/actor/path/internal/actor_path_validator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::path_internal {

namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsIpv4Address(std::string_view text) {
  int numbers = 0;
  for (;;) {
    const std::string_view number = text.substr(0, text.find('.'));
    if (number.empty() || number.size() > 3 || !std::all_of(number.begin(), number.end(), IsDigit)) return false;
    int value = 0;
    for (char c : number) value = value * 10 + (c - '0');
    if (value > 255) return false;
    ++numbers;
    if (number.size() == text.size()) return numbers == 4;
    text.remove_prefix(number.size() + 1);
  }
}

// Returns the number of groups on one side of a `::`, or -1. An IPv4 address may end them if
// `may_end_in_ipv4`.
int CountIpv6Groups(std::string_view text, bool may_end_in_ipv4) {
  if (text.empty()) return 0;
  int groups = 0;
  for (;;) {
    const size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == kNone && may_end_in_ipv4 && IsIpv4Address(group)) return groups + 2;
    if (group.empty() || group.size() > 4) return -1;
    for (char c : group) {
      if (!HasClass(c, kHexDigit)) return -1;
    }
    if (++groups > 8) return -1;
    if (colon == kNone) return groups;
    text.remove_prefix(colon + 1);
  }
}

// Checks the zone: the text after the % in the brackets. `%25eth0` is the form of URIs; `%eth0` is
// the form that people write. A zone that begins with two hexadecimal digits reads as an escape and
// must be as harmless as one: index 10 is `%2510`, not `%10`.
bool IsZone(std::string_view zone) {
  if (zone.size() > 2 && zone.substr(0, 2) == "25") {
    zone.remove_prefix(2);
  } else if (zone.size() >= 2 && HasClass(zone[0], kHexDigit) && HasClass(zone[1], kHexDigit)) {
    if (!IsAllowedEscape(static_cast<unsigned char>(HexValue(zone[0]) * 16 + HexValue(zone[1])))) return false;
  }
  return !zone.empty() && std::all_of(zone.begin(), zone.end(), [](char c) {
    return HasClass(c, kAlnum) || c == '-' || c == '.' || c == '_' || c == '~';
  });
}

// Returns where a name that is no address breaks the rule.
size_t FindHostNameError(std::string_view host, HostRule rule) {
  const size_t last_dot = host.rfind('.');
  auto is_alnum = [&](size_t i) {
    return HasClass(host[i], kAlnum) ||
           (rule == HostRule::kBuilt && host[i] == '_' && last_dot != kNone && i < last_dot);
  };
  size_t begin = 0;
  while (begin < host.size()) {
    const size_t end = std::min(host.find('.', begin), host.size());
    if (end == begin) return begin;  // an empty label
    for (size_t i = begin; i < end; ++i) {
      const bool at_the_edge = i == begin || i + 1 == end;
      if (!is_alnum(i) && (at_the_edge || host[i] != '-')) return i;
    }
    const bool is_last = end + 1 >= host.size();
    if (is_last && begin > 0 && IsDigit(host[begin])) return begin;  // for example 256.0.0.1
    begin = end + 1;
  }
  return host.empty() ? 0 : kNone;
}

}  // namespace

bool IsIpv6Literal(std::string_view host) {
  if (host.size() < 4 || host.front() != '[' || host.back() != ']') return false;
  std::string_view address = host.substr(1, host.size() - 2);
  if (const size_t percent = address.find('%'); percent != kNone) {
    if (!IsZone(address.substr(percent + 1))) return false;
    address = address.substr(0, percent);
  }
  const size_t gap = address.find("::");
  if (gap == kNone) return CountIpv6Groups(address, true) == 8;
  const int before = CountIpv6Groups(address.substr(0, gap), false);
  const int after = CountIpv6Groups(address.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

size_t FindHostError(std::string_view host, HostRule rule) {
  if (!host.empty() && host.front() == '[') return IsIpv6Literal(host) ? kNone : 0;
  if (IsIpv4Address(host)) return kNone;
  return FindHostNameError(host, rule);
}

bool ParseUid(std::string_view text, uint64_t& uid) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  uid = 0;
  for (char c : text) {
    if (!IsDigit(c)) return false;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (uid > (kMax - digit) / 10) return false;
    uid = uid * 10 + digit;
  }
  return !text.empty();
}

bool IsScheme(std::string_view scheme) {
  return !scheme.empty() && IsLetter(scheme[0]) &&
         std::all_of(scheme.begin(), scheme.end(), [](char c) { return HasClass(c, kSchemeChar); });
}

bool IsSystemName(std::string_view name) {
  return !name.empty() && HasClass(name[0], kAlnum) &&
         std::all_of(name.begin(), name.end(), [](char c) { return HasClass(c, kSystemChar); });
}

namespace {

std::string CharacterForText(char c) {
  const std::string quoted = QuotedForText(std::string_view(&c, 1));
  return absl::StrCat("'", quoted.substr(1, quoted.size() - 2), "'");
}

std::string Named(std::string_view what, std::string_view text) {
  return absl::StrCat(ToAbsl(what), " ", QuotedForText(text));
}

}  // namespace

absl::Status ExplainSegment(std::string_view what, std::string_view text) {
  const std::string name(what);
  if (text.data() == nullptr) {
    return PathError(ActorPathErrorKind::kInvalidSegment, absl::StrCat(name, " is null; give it a text"), 0);
  }
  if (text.empty()) {
    return PathError(ActorPathErrorKind::kInvalidSegment,
                     absl::StrCat(name, " is empty; give it at least one character"), 0);
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (HasClass(text[i], kSegmentChar)) continue;
    if (text[i] != '%') {
      const bool ascii = static_cast<unsigned char>(text[i]) < 0x80;
      return PathError(ActorPathErrorKind::kInvalidSegment,
                       absl::StrCat(name, ": ", CharacterForText(text[i]), " at ", i, " is not ",
                                    ascii ? "allowed" : "ASCII", "; use ASCII letters, digits, -_.*$+:@&=,!~'; or %HH"),
                       i);
    }
    if (!IsEscape(text, i)) {
      return PathError(ActorPathErrorKind::kInvalidSegment,
                       absl::StrCat(name, ": '%' at ", i,
                                    " is not followed by two hexadecimal digits; write %25 for a percent sign"),
                       i);
    }
    if (!IsAllowedEscape(DecodeEscape(text, i))) {
      return PathError(
          ActorPathErrorKind::kPercentDecode,
          absl::StrCat(name, ": ", ToAbsl(text.substr(i, 3)), " at ", i,
                       " stands for a control character, a slash or a byte that is not ASCII; leave it out"),
          i);
    }
    i += 2;
  }
  return absl::OkStatus();
}

absl::Status ActorPathValidator::ValidateSegment(std::string_view segment) {
  if (IsSegmentText(segment)) return absl::OkStatus();
  return ExplainSegment(Named("segment", segment), segment);
}

absl::Status ActorPathValidator::ValidateUserName(std::string_view name) {
  if (!name.empty() && name[0] == '$') {
    return PathError(ActorPathErrorKind::kInvalidSegment,
                     absl::StrCat("name ", QuotedForText(name),
                                  ": a name must not start with $ (at 0), which is kept for "
                                  "names that the runtime makes; use another first character"),
                     0);
  }
  if (IsSegmentText(name)) return absl::OkStatus();
  return ExplainSegment(Named("name", name), name);
}

absl::Status ActorPathValidator::ValidateRelative(std::string_view path) {
  size_t begin = 0;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (!segment.empty() && !IsSegmentText(segment)) return ExplainSegment(Named("segment", segment), segment);
    begin = end + 1;
  }
  return absl::OkStatus();
}

absl::Status ActorPathValidator::ValidateSystemName(std::string_view name) {
  if (IsSystemName(name)) return absl::OkStatus();
  if (name.empty()) {
    return PathError(ActorPathErrorKind::kInvalidSystemName, "the system name is empty; give it at least one character",
                     0);
  }
  size_t index = 0;
  if (HasClass(name[0], kAlnum)) {
    while (HasClass(name[index], kSystemChar)) ++index;
  }
  return PathError(ActorPathErrorKind::kInvalidSystemName,
                   absl::StrCat("system name ", QuotedForText(name), ": ", CharacterForText(name[index]), " at ", index,
                                " is not allowed; use a letter or digit, then letters, digits, - and _"),
                   index);
}

absl::Status ActorPathValidator::ValidateScheme(std::string_view scheme) {
  if (IsScheme(scheme)) return absl::OkStatus();
  if (scheme.empty()) return PathError(ActorPathErrorKind::kInvalidScheme, "the scheme is empty; use pekko", 0);
  size_t index = 0;
  if (IsLetter(scheme[0])) {
    while (HasClass(scheme[index], kSchemeChar)) ++index;
  }
  return PathError(ActorPathErrorKind::kInvalidScheme,
                   absl::StrCat("scheme ", QuotedForText(scheme), ": ", CharacterForText(scheme[index]), " at ", index,
                                " is not allowed; use a letter, then letters, digits, +, - and ."),
                   index);
}

absl::Status ActorPathValidator::ValidateHost(std::string_view host) {
  if (host.size() > kMaxHostLength) {
    return PathError(ActorPathErrorKind::kUnsupportedAuthority,
                     absl::StrCat("host ", QuotedForText(host), " has ", host.size(), " bytes; at most ",
                                  kMaxHostLength, " are allowed; use a shorter name or the address"),
                     kMaxHostLength);
  }
  const size_t index = FindHostError(host, HostRule::kBuilt);
  if (index == std::string_view::npos) return absl::OkStatus();
  if (host.empty()) return PathError(ActorPathErrorKind::kUnsupportedAuthority, "the host is empty; name one", 0);
  return PathError(ActorPathErrorKind::kUnsupportedAuthority,
                   absl::StrCat("host ", QuotedForText(host), ": ", CharacterForText(host[index]), " at ", index,
                                " is not allowed; use a host name, an IPv4 address, or an IPv6 address in brackets, "
                                "its zone behind %25"),
                   index);
}

}  // namespace fraktor::inline v0::path_internal
