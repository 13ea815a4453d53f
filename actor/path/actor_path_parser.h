// ActorPathParser: reads a path, `scheme://system@host:port/guardian/path#uid`, or without an
// authority `scheme://system/guardian/path#uid`.
//
//   absl::StatusOr<ActorPath> path = ActorPathParser::Parse("pekko://shop@10.0.0.7:2552/user/cart#42");
//
// UriParser reads the text first. Its errors arrive as ActorPathErrorKind::kInvalidUri, and the
// status carries the UriErrorKind too. Then the rules of actor systems apply:
// - The scheme is `pekko` or `pekko.tcp`, unless the options allow more.
// - An authority has a host and a port.
// - Doubled and trailing slashes vanish.
// - A query is an error.
// - `..` is a segment like others. ActorSelectionResolver gives it its meaning.
// - The first segment may be any name. ActorSelectionResolver demands a known guardian.
// - The uid of a root is checked and dropped.
//
// Format(Parse(x)) is the canonical form of x.
//
// Thread safety: free functions over values. A path of up to 8 segments takes one allocation, for
// its text.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARSER_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0 {

struct ActorPathParserOptions {
  // Schemes that are allowed besides `pekko` and `pekko.tcp`. Letter case counts.
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
