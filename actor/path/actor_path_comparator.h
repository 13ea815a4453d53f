// Equality, hash and order of paths and of refs, by name.
//
//   ActorPathComparator::Equals(a, b)         // system, authority, segments; not the uid
//   ActorPathComparator::RefEquals(a, b)      // also the uid: the same life of the same actor
//   std::sort(paths.begin(), paths.end(), ActorPathComparator::Less);
//
// Order is that of Pekko: the last names first, and then up to the roots; when one path ends before the other, the
// shorter one is greater. Roots compare by their text.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_PATH_COMPARATOR_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_PATH_COMPARATOR_H_

#include <compare>
#include <cstdint>

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0 {

class ActorPathComparator {
 public:
  static bool Equals(const ActorPath& a, const ActorPath& b) { return a == b; }
  static uint64_t Hash(const ActorPath& path) { return path.hash(); }

  // Equal exactly where Equals is true.
  static std::strong_ordering Compare(const ActorPath& a, const ActorPath& b);
  static bool Less(const ActorPath& a, const ActorPath& b) { return std::is_lt(Compare(a, b)); }

  // Refs: the path and then the uid.
  static bool RefEquals(const ActorPath& a, const ActorPath& b) { return a.uid() == b.uid() && a == b; }
  static std::strong_ordering RefCompare(const ActorPath& a, const ActorPath& b);
  static uint64_t RefHash(const ActorPath& path) { return path.uid().IsNone() ? path.hash() : path.uid().value(); }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_PATH_COMPARATOR_H_
