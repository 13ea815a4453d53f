// The actors of a storm, and how they are spawned: as children in a turn of their parent, or at the
// top of a system from any thread.
//
// The dispatcher, the mailbox, the class and the name follow from `random`. The world meets every
// new actor.
#ifndef FRAKTOR_ACTOR_TESTKIT_STORM_CITIZENS_H_
#define FRAKTOR_ACTOR_TESTKIT_STORM_CITIZENS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/testkit/storm/world.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::storm {

// The named dispatchers of every system of a storm. Handlers may block on the second one.
inline constexpr std::string_view kFewWorkers = "few";
inline constexpr std::string_view kBlockingWorkers = "blocking";

// A recipe for one actor. A typed one, or one without types.
PropsPtr MakeCitizen(World& world, Random& random);
// A recipe for many: the routees of a pool.
PropsPtr MakeRoutee(World& world, Random& random);

// A recipe for the child of a BackoffSupervisor. It gets messages from its supervisor and directly,
// so they have no order.
PropsPtr MakeSupervised(World& world, Random& random);

// A recipe for the actor that watches others for threads (World::guard).
PropsPtr MakeGuard(World& world);

// A recipe for a child of /system: it supervises one actor of the storm, and lets no failure
// through, which would end the system.
PropsPtr MakeSteward(World& world, Random& random);

// ResourceExhausted if enough actors live already; otherwise what the spawn says.
absl::StatusOr<ActorRef> SpawnCitizen(World& world, Random& random, ActorContext& parent);
absl::StatusOr<ActorRef> SpawnCitizen(World& world, Random& random, ActorSystem& system);

// A name that siblings may have already, or none.
std::string RandomName(Random& random);
// Checks that a spawn failed for a reason that a storm brings about.
void CheckSpawned(World& world, const absl::Status& status);

}  // namespace fraktor::storm

#endif  // FRAKTOR_ACTOR_TESTKIT_STORM_CITIZENS_H_
