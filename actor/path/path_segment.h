// PathSegment: a checked name in a path. The type proves that the name needs no second check.
//
//   FRAKTOR_ASSIGN_OR_RETURN(PathSegment cart, PathSegment::Create("cart"));  // a user's name: not empty, no leading $
//   ActorPath path = user.Child(cart);
//
// Two segments are equal if their texts are equal: `%2d` is not `-`.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_PATH_PATH_SEGMENT_H_
#define FRAKTOR_ACTOR_PATH_PATH_SEGMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

class PathSegment {
 public:
  // A name that a user gives.
  static absl::StatusOr<PathSegment> Create(std::string_view name);

  // A name out of a path. It may begin with `$`, as the names of the runtime do.
  static absl::StatusOr<PathSegment> Parse(std::string_view text);

  // The automatic name of a number: `$a`, `$b`, ...
  static PathSegment Auto(uint64_t number);

  // The text as it stands in the path.
  std::string_view raw() const { return raw_; }

  // The text with each %HH decoded.
  std::string Decoded() const;

  friend bool operator==(const PathSegment& a, const PathSegment& b) { return a.raw_ == b.raw_; }

 private:
  explicit PathSegment(std::string raw) : raw_(std::move(raw)) {}

  std::string raw_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_PATH_SEGMENT_H_
