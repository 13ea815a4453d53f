// NotCreated: the instance of an actor whose constructor or start failed, until its supervisor has
// decided, and of an actor that is being spawned. All actors share the one object.
//
// Thread safety: any thread; the object has no state.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_NOT_CREATED_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_NOT_CREATED_H_

#include "fraktor/actor/context/actor_instance.h"

namespace fraktor::inline v0::actor_internal {

ActorInstance& NotCreated();

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_NOT_CREATED_H_
