// ActorPathComparator: equality, hash and order of paths, and of references by their paths.
//
//   bool same_place = ActorPathComparator::Equals(a, b);    // system, authority and segments; not the uid
//   bool same_actor = ActorPathComparator::RefEquals(a, b); // the uid too: the same incarnation
//   std::sort(paths.begin(), paths.end(), ActorPathComparator::Less);
//
// The order is that of Pekko: the last names are compared first, then their parents, up to the
// roots. If one path ends before the other, the shorter path is greater. Roots compare by their
// text.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_COMPARATOR_H_
#define FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_COMPARATOR_H_

#include <compare>
#include <cstdint>

#include "fraktor/actor/path/actor_path.h"

namespace fraktor::inline v0::path_internal {

class ActorPathComparator {
 public:
  static bool Equals(const ActorPath& a, const ActorPath& b) { return a == b; }
  static uint64_t Hash(const ActorPath& path) { return path.hash(); }

  // Returns `equal` exactly where Equals returns true.
  static std::strong_ordering Compare(const ActorPath& a, const ActorPath& b);
  static bool Less(const ActorPath& a, const ActorPath& b) { return std::is_lt(Compare(a, b)); }

  // References: the path first, then the uid.
  static bool RefEquals(const ActorPath& a, const ActorPath& b) { return a.uid() == b.uid() && a == b; }
  static std::strong_ordering RefCompare(const ActorPath& a, const ActorPath& b);
  static uint64_t RefHash(const ActorPath& path) { return path.uid().IsNone() ? path.hash() : path.uid().value(); }
};

}  // namespace fraktor::inline v0::path_internal

#endif  // FRAKTOR_ACTOR_PATH_INTERNAL_ACTOR_PATH_COMPARATOR_H_
