// UriParser: splits a URI of RFC 2396 into its parts, without deciding what they mean.
//
//   absl::StatusOr<UriParts> uri = UriParser::Parse("pekko://shop@[2001:db8::1]:2552/user/cart?x=1#42");
//
// The parts are scheme "pekko", userinfo "shop", host "[2001:db8::1]", port 2552, path
// "/user/cart", query "x=1" and fragment "42".
//
// The parser decodes and changes nothing: all parts are views of the input and live as long as it.
// An authority that is not `[userinfo@]host[:port]` is no error, because RFC 2396 also knows
// registry-based authorities, which are names of any form. Then `authority` is the whole name and
// `host` is empty. A text that RFC 2396 does not allow, and every byte that is not printable ASCII,
// is an error (UriErrorKind) that names the position.
//
// Thread safety: a free function over values. Allocates only for an error.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_URI_PARSER_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_URI_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/path/path_error.h"

namespace fraktor::inline v0::path_internal {

// The parser refuses longer input without reading it.
inline constexpr size_t kMaxUriLength = 64 * 1024 - 1;

struct UriParts {
  std::string_view scheme;  // empty in a relative reference
  bool has_authority = false;
  bool is_server = false;      // the authority is [userinfo@]host[:port]; then userinfo, host and port are set
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

struct UriFailure {
  UriErrorKind kind = UriErrorKind::kInvalidCharacter;
  size_t index = 0;
};

// Does the work of UriParser::Parse without a Status, for callers that parse many URIs. Returns
// true and sets `parts`, or returns false and sets `failure`.
bool ParseUri(std::string_view input, UriParts& parts, UriFailure& failure);

absl::Status ExplainUriFailure(std::string_view input, const UriFailure& failure);

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_URI_PARSER_H_
