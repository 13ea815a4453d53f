// Takes a URI of RFC 2396 apart, without deciding what it means.
//
//   absl::StatusOr<UriParts> uri = UriParser::Parse("pekko://shop@[2001:db8::1]:2552/user/cart?x=1#42");
//   uri->scheme    // "pekko"
//   uri->userinfo  // "shop"
//   uri->host      // "[2001:db8::1]"
//   uri->port      // 2552
//   uri->path      // "/user/cart"
//   uri->query     // "x=1"
//   uri->fragment  // "42"
//
// Nothing is decoded or changed: all parts are views of the input and live as long as it. An authority that has no
// [userinfo@]host[:port] in it is not an error: RFC 2396 also knows registry-based authorities, in which a name has any
// form. Then `authority` is the whole, and `host` is empty. What does not stand in RFC 2396, and every byte that is not
// printable ASCII, is an error (UriErrorKind) that names the position.
//
// Thread safety: a free function over values. No allocation unless there is an error.
#ifndef FRAKTOR_ACTOR_PATH_URI_PARSER_H_
#define FRAKTOR_ACTOR_PATH_URI_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/path/path_error.h"

namespace fraktor::inline v0 {

// Longer input is refused before it is looked at.
inline constexpr size_t kMaxUriLength = 64 * 1024 - 1;

struct UriParts {
  std::string_view scheme;  // empty in a relative reference
  bool has_authority = false;
  bool is_server = false;      // the authority is [userinfo@]host[:port] and the three fields below are set
  std::string_view authority;  // as a whole
  std::optional<std::string_view> userinfo;
  std::string_view host;  // with brackets, if it has them
  std::optional<uint16_t> port;
  std::string_view path;  // with its leading slash, if it has one
  std::optional<std::string_view> query;
  std::optional<std::string_view> fragment;
};

class UriParser {
 public:
  // A URI with a scheme, or a relative reference without one.
  static absl::StatusOr<UriParts> Parse(std::string_view input);
};

namespace path_internal {

struct UriFailure {
  UriErrorKind kind = UriErrorKind::kInvalidCharacter;
  size_t index = 0;
};

// What UriParser::Parse does, without a Status: for callers that look at many URIs. `parts` holds if the answer is
// true, `failure` if it is false.
bool ParseUri(std::string_view input, UriParts& parts, UriFailure& failure);

absl::Status ExplainUriFailure(std::string_view input, const UriFailure& failure);

}  // namespace path_internal

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_URI_PARSER_H_
