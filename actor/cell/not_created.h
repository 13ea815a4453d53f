// Stands for the instance of an actor that could not be made, or not yet.
#ifndef FRAKTOR_ACTOR_CELL_NOT_CREATED_H_
#define FRAKTOR_ACTOR_CELL_NOT_CREATED_H_

#include "fraktor/actor/context/actor_instance.h"

namespace fraktor::inline v0 {

ActorInstance& NotCreated();

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_NOT_CREATED_H_
