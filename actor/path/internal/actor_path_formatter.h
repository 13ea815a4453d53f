// ActorPathFormatter: writes a path in the one form that log lines, dead letters and peers use.
//
//   std::string text = ActorPathFormatter::Format(path);  // "pekko://shop@10.0.0.7:2552/user/cart#42"
//
// Every part of a path has been checked. So the text has no space and no control character, not
// even an encoded one.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_FORMATTER_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_FORMATTER_H_

#include <string>
#include <string_view>

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0::path_internal {

class ActorPathFormatter {
 public:
  // Returns the canonical form, with the uid. Allocates once.
  static std::string Format(const ActorPath& path) { return path.ToCanonical(); }

  // Appends the canonical form to `out`, for callers that reuse a buffer.
  static void AppendTo(const ActorPath& path, std::string& out);

  // Returns the text of a reference with this path: "Actor[pekko://shop/user/cart#42]".
  static std::string FormatRef(const ActorPath& path);
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_FORMATTER_H_
