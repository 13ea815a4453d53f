// ActorSelectionResolver: turns a selection, and the path that it is made from, into a path.
//
//   absl::StatusOr<ActorPath> till = ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../till"));
//   absl::StatusOr<ActorPath> none = ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../../.."));
//
// With `cart` at `pekko://shop/user/cart`, `till` is `pekko://shop/user/till` and `none` is an
// error of kind kRelativeEscape. `..` goes up one step at a time and never above the guardian:
// `/user/..` is an error even if a later element leads down again. The first segment must be a
// known guardian (guardian_segments.h). The resolver looks up no actor; the registry knows which
// ones are alive.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_SELECTION_INTERNAL_ACTOR_SELECTION_RESOLVER_H_
#define FRAKTOR_ACTOR_SELECTION_INTERNAL_ACTOR_SELECTION_RESOLVER_H_

#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/selection/actor_selection.h"

namespace fraktor::inline v0::actor_internal {

// How far the names of a selection lead, and which elements have to be matched against live actors.
struct ResolvedSelection {
  ActorPath prefix;
  // Empty; or the first pattern and all elements after it; or the elements after a name with a uid.
  // In the last case the prefix has that uid and means that incarnation. A `..` in it never leads
  // above the guardian of the prefix.
  std::vector<SelectionElement> rest;
};

class ActorSelectionResolver {
 public:
  // Returns the one path that a selection without wildcards means, with the uid of its last name.
  // Returns kInvalidSegment for a selection with wildcards, or with a uid before its last name,
  // which no path can express.
  static absl::StatusOr<ActorPath> Resolve(const ActorPath& base, const ActorSelection& selection);

  // Returns the path with every `..` segment resolved by the same rules. The parser leaves `..` as
  // it is.
  static absl::StatusOr<ActorPath> Normalize(const ActorPath& path);

  static absl::StatusOr<ResolvedSelection> ResolvePrefix(const ActorPath& base, const ActorSelection& selection);
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SELECTION_INTERNAL_ACTOR_SELECTION_RESOLVER_H_
