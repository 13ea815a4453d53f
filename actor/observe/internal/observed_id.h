// ObservedId: the number of a counter: one for each actor type, and one for each actor that is
// observed alone.
#ifndef FRAKTOR_ACTOR_OBSERVE_INTERNAL_OBSERVED_ID_H_
#define FRAKTOR_ACTOR_OBSERVE_INTERNAL_OBSERVED_ID_H_

#include <cstddef>
#include <cstdint>

namespace fraktor::inline v0::actor_internal {

// ObservabilityHub issues the ids; only that hub knows their meaning.
using ObservedId = uint16_t;

// The id of types without counters of their own: those beyond the limit.
inline constexpr ObservedId kOtherTypes = 0;

// Ids below are types; ids from here on are actors.
inline constexpr size_t kObservedTypes = 1024;
inline constexpr size_t kObservedActors = 1024;
inline constexpr size_t kObservedIds = kObservedTypes + kObservedActors;
static_assert((kObservedIds & (kObservedIds - 1)) == 0, "so that a mask keeps any id inside the tables");

constexpr bool IsObservedActor(ObservedId id) { return id >= kObservedTypes; }

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_OBSERVE_INTERNAL_OBSERVED_ID_H_
