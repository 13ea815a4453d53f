// The half of the ids of writers (WriterId) that is the same for all of one system, and another one for each system.
//
//   const uint64_t writer_base = DrawWriterBase(system);
//
// Thread safety: a free function.
#ifndef FRAKTOR_PERSISTENCE_ACTOR_WRITER_BASE_H_
#define FRAKTOR_PERSISTENCE_ACTOR_WRITER_BASE_H_

#include <cstdint>

#include "fraktor/actor/system/actor_system.h"

namespace fraktor::inline v0 {

// Another one for each start of a process, also where the toolbox has the same seed; and for each system that has a name
// or an address of its own, also where many begin at one time, as the nodes of a simulation do.
uint64_t DrawWriterBase(ActorSystem& system);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_ACTOR_WRITER_BASE_H_
