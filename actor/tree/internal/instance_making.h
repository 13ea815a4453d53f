// Makes and destroys the instances of actors. Called by the spawner of an actor and in the actor's
// own turn.
#ifndef FRAKTOR_ACTOR_TREE_INTERNAL_INSTANCE_MAKING_H_
#define FRAKTOR_ACTOR_TREE_INTERNAL_INSTANCE_MAKING_H_

#include <cxxabi.h>

#include <utility>

#include "absl/status/status.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/slot/internal/actor_slot.h"
#include "fraktor/actor/tree/internal/not_created.h"

namespace fraktor::inline v0::actor_internal {

// `instance` is NotCreated() if the constructor threw; `error` says what.
struct MadeInstance {
  ActorInstance* instance;
  absl::Status error;
};

// The exception that is being handled, as the error of a constructor.
absl::Status ErrorOfConstructor(const ActorProps& props);

// Calls the constructor. An exception is an error of the actor, not of the caller.
inline MadeInstance MakeInstance(NodeCache& cache, const ActorProps& props) {
  try {
    return {props.Make(cache), absl::OkStatus()};
  } catch (abi::__forced_unwind&) {
    throw;  // Thread cancellation goes on.
  } catch (...) {
    return {&NotCreated(), ErrorOfConstructor(props)};
  }
}

// Destroys the instance of a slot and leaves NotCreated() in its place.
inline void UnmakeInstance(NodeCache& cache, ActorSlot& slot) {
  ActorInstance* const instance = std::exchange(slot.instance, &NotCreated());
  if (instance != &NotCreated()) slot.kin.props->Unmake(cache, instance);
}

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_TREE_INTERNAL_INSTANCE_MAKING_H_
