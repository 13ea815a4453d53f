// LifecycleState: the base of the state that the ActorLifecycle keeps for an actor (CellState). The
// slot extension owns it. Belongs to the turn of the actor.
#ifndef FRAKTOR_ACTOR_SLOT_INTERNAL_LIFECYCLE_STATE_H_
#define FRAKTOR_ACTOR_SLOT_INTERNAL_LIFECYCLE_STATE_H_

namespace fraktor::inline v0::actor_internal {

class LifecycleState {
 public:
  virtual ~LifecycleState() = default;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_SLOT_INTERNAL_LIFECYCLE_STATE_H_
