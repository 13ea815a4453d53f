// Reads a path: `scheme://system@host:port/guardian/path#uid`, or without authority
// `scheme://system/guardian/path#uid`.
//
//   absl::StatusOr<ActorPath> path = ActorPathParser::Parse("pekko://shop@10.0.0.7:2552/user/cart#42");
//
// Below it is UriParser, whose errors arrive as ActorPathErrorKind::kInvalidUri with the UriErrorKind beside it; here
// are the rules of actor systems. Schemes are `pekko` and `pekko.tcp`, unless the options allow more. An authority has
// a host and a port. Doubled and trailing slashes vanish. A query is an error. `..` is a segment like others here:
// whoever resolves a path gives it its meaning. Any first segment will do; ActorSelectionResolver asks for a known one.
// On the root a uid is checked and dropped. Format(Parse(x)) is the canonical form of x.
//
// Thread safety: free functions over values. One allocation, the path's own text, for up to 8 segments.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARSER_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0 {

struct ActorPathParserOptions {
  // Schemes besides `pekko` and `pekko.tcp`, in exactly this case.
  std::vector<std::string> further_schemes = {};
};

class ActorPathParser {
 public:
  // Errors carry an ActorPathErrorKind.
  static absl::StatusOr<ActorPath> Parse(std::string_view text);
  static absl::StatusOr<ActorPath> Parse(std::string_view text, const ActorPathParserOptions& options);

 private:
  static absl::StatusOr<ActorPath> ParseWith(std::string_view text, const ActorPathParserOptions* options);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARSER_H_
