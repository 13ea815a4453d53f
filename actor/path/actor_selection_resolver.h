// Turns a selection and the path that it is made from into the path that is meant.
//
//   ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../till"))   // pekko://shop/user/till
//   ActorSelectionResolver::Resolve(cart, *ActorSelection::Parse("../../.."))  // kRelativeEscape
//
// `..` goes up one step at a time and never above the guardian: /user/.. is an error, also where a later element would
// lead down again. The first segment must be a known guardian (guardian_segments.h). Nothing is looked up: whether an
// actor of the path lives is the registry's question.
//
// Thread safety: free functions over values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_RESOLVER_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_RESOLVER_H_

#include <vector>

#include "absl/status/statusor.h"

#include "fraktor/actor/path/actor_path.h"
#include "fraktor/actor/path/actor_selection.h"

namespace fraktor::inline v0 {

// How far names lead, and what has to be matched against live actors from there on.
struct ResolvedSelection {
  ActorPath prefix;
  // Empty, or a pattern and what follows it, or what follows a name with a uid: then the prefix has that uid and means
  // that life of the actor. A `..` in it never leads above the prefix's guardian.
  std::vector<SelectionElement> rest;
};

class ActorSelectionResolver {
 public:
  // The one path that a selection without wildcards means, with the uid of its last name. With wildcards, or with a uid
  // at an earlier name, which a path cannot say, it is an error, kInvalidSegment.
  static absl::StatusOr<ActorPath> Resolve(const ActorPath& base, const ActorSelection& selection);

  // The same path with every `..` segment resolved, by the same rules. Paths come out of the parser as they were
  // written.
  static absl::StatusOr<ActorPath> Normalize(const ActorPath& path);

  static absl::StatusOr<ResolvedSelection> ResolvePrefix(const ActorPath& base, const ActorSelection& selection);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_SELECTION_RESOLVER_H_
