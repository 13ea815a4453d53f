// What the lifecycle keeps of an actor: who watches it, what is attached to it. It says what.
#ifndef FRAKTOR_ACTOR_SLOT_LIFECYCLE_STATE_H_
#define FRAKTOR_ACTOR_SLOT_LIFECYCLE_STATE_H_

namespace fraktor::inline v0 {

class LifecycleState {
 public:
  virtual ~LifecycleState() = default;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SLOT_LIFECYCLE_STATE_H_
