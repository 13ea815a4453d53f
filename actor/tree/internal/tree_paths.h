// TreePaths: the paths of actors, promises and remote actors as texts, for errors, logs and users.
//
// Thread safety: any thread.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_TREE_PATHS_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_TREE_PATHS_H_

#include <string>

#include "fraktor/actor/cell/internal/actor_names.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor::inline v0::actor_internal {

class TreePaths {
 public:
  // `names` must outlive this object. Null: actors have no paths, and texts name their slots.
  explicit TreePaths(ActorNames* names) : names_(names) {}

  // The path, or a text with the slot and the generation if the path is not known.
  std::string PathOf(ActorRef actor) const;
  // See ActorSystem::CanonicalPathOf.
  std::string CanonicalPathOf(ActorRef actor) const;

 private:
  ActorNames* const names_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_TREE_PATHS_H_
