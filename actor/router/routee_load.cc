#include "fraktor/actor/router/routee_load.h"

#include <cstdint>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/router/internal/inline_routee_load.h"

namespace fraktor::inline v0 {

uint64_t RouteeLoad(ActorRef actor) { return actor_internal::InlineRouteeLoad(actor); }

}  // namespace fraktor::inline v0
