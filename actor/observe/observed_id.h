// The small numbers that counters are kept by: one for each actor type, one for each actor that is observed alone.
#ifndef FRAKTOR_ACTOR_OBSERVE_OBSERVED_ID_H_
#define FRAKTOR_ACTOR_OBSERVE_OBSERVED_ID_H_

#include <cstddef>
#include <cstdint>

namespace fraktor::inline v0 {

// Given out by ObservabilityHub, which is the only one that it means anything to.
using ObservedId = uint16_t;

// What has no counters of its own: the types beyond the limit.
inline constexpr ObservedId kOtherTypes = 0;

// Types are below, actors are from here on.
inline constexpr size_t kObservedTypes = 1024;
inline constexpr size_t kObservedActors = 1024;
inline constexpr size_t kObservedIds = kObservedTypes + kObservedActors;
static_assert((kObservedIds & (kObservedIds - 1)) == 0, "so that a mask keeps any id inside the tables");

constexpr bool IsObservedActor(ObservedId id) { return id >= kObservedTypes; }

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_OBSERVED_ID_H_
