// Writes a path in the one form that every log line, dead letter and peer uses.
//
//   ActorPathFormatter::Format(path)  // "pekko://shop@10.0.0.7:2552/user/cart#42"
//
// Everything in a path has been checked, so what is written has no control character, encoded or not, and no space.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_FORMATTER_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_FORMATTER_H_

#include <string>
#include <string_view>

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0 {

class ActorPathFormatter {
 public:
  // The canonical form, uid and all. One allocation.
  static std::string Format(const ActorPath& path) { return path.ToCanonical(); }

  // The same at the end of `out`, for callers that reuse a buffer.
  static void AppendTo(const ActorPath& path, std::string& out);

  // What a ref of that path prints: "Actor[pekko://shop/user/cart#42]".
  static std::string FormatRef(const ActorPath& path);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_FORMATTER_H_
