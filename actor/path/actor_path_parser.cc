#include "fraktor/actor/path/actor_path_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_uid.h"
#include "fraktor/actor/path/internal/actor_path_validator.h"
#include "fraktor/actor/path/internal/uri_parser.h"
#include "fraktor/actor/path/path_authority.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

using path_internal::ActorPathValidator;
using path_internal::UriParts;

namespace {

using path_internal::PathError;

constexpr size_t kNone = std::string_view::npos;

bool Allows(const ActorPathParserOptions* options, std::string_view scheme) {
  if (options == nullptr) return false;
  return std::find(options->further_schemes.begin(), options->further_schemes.end(), scheme) !=
         options->further_schemes.end();
}

absl::Status SchemeError(std::string_view text, std::string_view scheme) {
  if (scheme.empty()) {
    return PathError(ActorPathErrorKind::kInvalidScheme,
                     absl::StrCat("path ", QuotedForText(text), " has no scheme; write pekko://system/..."), 0);
  }
  return PathError(ActorPathErrorKind::kInvalidScheme,
                   absl::StrCat("path ", QuotedForText(text), ": scheme ", QuotedForText(scheme),
                                " is not allowed; use pekko or pekko.tcp, or allow it in ActorPathParserOptions"),
                   0);
}

absl::Status AuthorityError(std::string_view text, std::string_view reason, size_t index) {
  return PathError(ActorPathErrorKind::kUnsupportedAuthority,
                   absl::StrCat("path ", QuotedForText(text), ": ", ToAbsl(reason),
                                "; write scheme://system or scheme://system@host:port"),
                   index);
}

// Explains why an authority with @ in it is not system@host:port.
absl::Status ExplainAuthority(std::string_view text, const UriParts& uri) {
  const auto offset = static_cast<size_t>(uri.authority.data() - text.data());
  const size_t at = uri.authority.find('@');
  if (uri.is_server) return AuthorityError(text, "the port is missing", offset + uri.authority.size());
  const std::string_view rest = uri.authority.substr(at + 1);
  const size_t colon = rest.find(':');
  const std::string_view host = rest.substr(0, colon);
  if (const size_t bad = path_internal::FindHostError(host, path_internal::HostRule::kUri); bad != kNone) {
    if (host.empty()) return AuthorityError(text, "the host is empty", offset + at + 1);
    return AuthorityError(text, absl::StrCat("host ", QuotedForText(host), " is no host name or address at ", bad),
                          offset + at + 1 + bad);
  }
  const size_t port = std::min(colon, rest.size() - 1) + 1;
  return AuthorityError(text, absl::StrCat("port ", QuotedForText(rest.substr(port)), " is no number from 0 to 65535"),
                        offset + at + 1 + port);
}

absl::Status SystemNameError(std::string_view text, std::string_view system) {
  const absl::Status status = ActorPathValidator::ValidateSystemName(system);
  return PathError(
      ActorPathErrorKind::kInvalidSystemName,
      absl::StrCat("path ", QuotedForText(text), ": ", status.message(), "; a host and port stand behind system@"),
      static_cast<size_t>(system.data() - text.data()));
}

absl::Status SegmentError(std::string_view text, size_t number, std::string_view segment) {
  return path_internal::ExplainSegment(absl::StrCat("segment ", number, " of ", QuotedForText(text)), segment);
}

}  // namespace

absl::StatusOr<ActorPath> ActorPathParser::Parse(std::string_view text) { return ParseWith(text, nullptr); }

absl::StatusOr<ActorPath> ActorPathParser::Parse(std::string_view text, const ActorPathParserOptions& options) {
  return ParseWith(text, &options);
}

absl::StatusOr<ActorPath> ActorPathParser::ParseWith(std::string_view text, const ActorPathParserOptions* options) {
  UriParts uri;
  path_internal::UriFailure failure;
  if (!path_internal::ParseUri(text, uri, failure)) {
    return path_internal::WrapUriError(path_internal::ExplainUriFailure(text, failure));
  }
  if (!IsKnownProtocol(uri.scheme) && !Allows(options, uri.scheme)) return SchemeError(text, uri.scheme);
  if (uri.authority.empty())
    return AuthorityError(text, "the system is missing", std::min(text.size(), uri.scheme.size() + 3));

  ActorPath::Address address{.scheme = uri.scheme, .system = uri.authority, .host = {}, .port = 0};
  if (uri.authority.find('@') != kNone) {
    if (!uri.is_server || !uri.port.has_value()) return ExplainAuthority(text, uri);
    if (uri.host.size() > ActorPathValidator::kMaxHostLength) {
      return AuthorityError(text,
                            absl::StrCat("the host has ", uri.host.size(), " bytes, at most ",
                                         ActorPathValidator::kMaxHostLength, " are allowed"),
                            static_cast<size_t>(uri.host.data() - text.data()));
    }
    address = {.scheme = uri.scheme, .system = *uri.userinfo, .host = uri.host, .port = *uri.port};
  }
  if (!path_internal::IsSystemName(address.system)) return SystemNameError(text, address.system);
  if (uri.query.has_value()) {
    const auto index = static_cast<size_t>(uri.query->data() - text.data()) - 1;
    return PathError(
        ActorPathErrorKind::kInvalidSegment,
        absl::StrCat("path ", QuotedForText(text), ": '?' at ", index, " is not allowed; a path has no query"), index);
  }

  ActorPath path = ActorPath::MakeRoot(address, uri.path.size());
  size_t begin = 0;
  while (begin < uri.path.size()) {
    const size_t end = std::min(uri.path.find('/', begin), uri.path.size());
    const std::string_view segment = uri.path.substr(begin, end - begin);
    if (!segment.empty()) {
      if (!path_internal::IsSegmentText(segment)) return SegmentError(text, path.segment_count(), segment);
      path.AppendInPlace(segment);
    }
    begin = end + 1;
  }
  if (uri.fragment.has_value()) {
    uint64_t uid = 0;
    const auto index = static_cast<size_t>(uri.fragment->data() - text.data());
    if (!path_internal::ParseUid(*uri.fragment, uid)) {
      return PathError(ActorPathErrorKind::kInvalidUid,
                       absl::StrCat("path ", QuotedForText(text), ": uid ", QuotedForText(*uri.fragment), " at ", index,
                                    " is no decimal number below 2^64; write #0 or leave it out for none"),
                       index);
    }
    if (!uri.path.empty() && uri.path.back() == '/') {
      return PathError(ActorPathErrorKind::kInvalidSegment,
                       absl::StrCat("path ", QuotedForText(text), ": the name before # at ", index - 1,
                                    " is empty; write the actor's name between / and #"),
                       index - 1);
    }
    if (!path.IsRoot()) path.uid_ = ActorUid(uid);
  }
  return path;
}

}  // namespace fraktor::inline v0
