// PlacementResolution: where a grain is.
//
//   PlacementResolutionPtr where = *lookup.Resolve(key, now);
//   if (where->locality == PlacementLocality::kLocal) Deliver(where->pid);
//   else Forward(where->decision.authority, key);
//
// Shared and immutable: an answer that is cached costs a reference count.
//
// Thread safety: immutable; any thread.
#ifndef FRAKTOR_CLUSTER_IDENTITY_PLACEMENT_RESOLUTION_H_
#define FRAKTOR_CLUSTER_IDENTITY_PLACEMENT_RESOLUTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

enum class PlacementLocality { kLocal, kRemote };

// Who is responsible for a grain.
struct PlacementDecision {
  GrainKey key = {};
  std::string authority = {};
  // The id of the member: which life of the node at the authority.
  std::string owner = {};
  Instant observed_at = {};
};

struct PlacementResolution {
  PlacementDecision decision = {};
  PlacementLocality locality = PlacementLocality::kRemote;
  // Of the running activation. Empty if only the owner knows it: ask the member at the authority.
  std::string pid = {};
  // The fencing token of the activation; 0 without a pid.
  uint64_t token = 0;
  // If it runs here: the actor itself, if whoever has started it said so. If not: who passes messages on to it there,
  // if whoever has found it said so.
  ActorRef actor = {};
};

using PlacementResolutionPtr = std::shared_ptr<const PlacementResolution>;

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_PLACEMENT_RESOLUTION_H_
