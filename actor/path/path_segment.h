// PathSegment: a name in a path that has been checked, so that nobody has to check it again.
//
//   FRAKTOR_ASSIGN_OR_RETURN(PathSegment cart, PathSegment::Create("cart"));  // a user's name: not empty, no leading $
//   ActorPath path = user.Child(cart);
//
// Two segments are equal if their texts are: `%2d` is not `-`.
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

  // A name out of a path: it may also be one that the runtime has made, and begin with `$`.
  static absl::StatusOr<PathSegment> Parse(std::string_view text);

  // `$a`, `$b`, ...
  static PathSegment Auto(uint64_t number);

  // As it stands in the path.
  std::string_view raw() const { return raw_; }

  // With %HH replaced by the characters that they stand for.
  std::string Decoded() const;

  friend bool operator==(const PathSegment& a, const PathSegment& b) { return a.raw_ == b.raw_; }

 private:
  explicit PathSegment(std::string raw) : raw_(std::move(raw)) {}

  std::string raw_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_PATH_SEGMENT_H_
