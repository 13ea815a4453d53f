// Machine: an actor of a storm that is a finite state machine (actor/pattern/fsm.h).
//
//   PropsPtr props = MakeMachine(std::make_shared<Life>(world), {});
//   ActorRef machine = system.TrySpawn(*props).value();
//
// Other actors subscribe to its transitions, and check that each one begins in the state in which
// the one before ended.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_MACHINE_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_MACHINE_H_

#include <cstdint>
#include <memory>

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/pattern/fsm.h"
#include "fraktor/actor/testkit/storm/world.h"

namespace fraktor::storm {

// kLost has no handler: a machine that goes there ends.
enum class Phase : uint8_t { kIdle, kBusy, kTired, kLost };

using MachineState = FsmCurrentState<Phase>;
using MachineMove = FsmTransition<Phase>;

PropsPtr MakeMachine(const std::shared_ptr<Life>& life, const PropsOptions& options);

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_MACHINE_H_
