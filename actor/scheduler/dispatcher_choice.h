// Which of a system's pools an actor runs on: see dispatchers.h.
#ifndef FRAKTOR_ACTOR_SCHEDULER_DISPATCHER_CHOICE_H_
#define FRAKTOR_ACTOR_SCHEDULER_DISPATCHER_CHOICE_H_

#include <cstdint>

namespace fraktor::inline v0 {

// Where an actor runs.
enum class DispatcherChoice : uint8_t {
  kAutomatic,  // As kDefault; for ActorSystem::TrySpawnSystemActor as kSystem.
  kSystem,     // On the workers that are kept free for the runtime's own actors.
  kPinned,     // On a thread of its own, where it may block.
  kDefault,    // On the default pool: also parts of a runtime that do much, or do what users want.
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SCHEDULER_DISPATCHER_CHOICE_H_
