// ActivationExecutor: starts and stops the actors of grains on this node. An extension point; cluster/grain has the one
// for actor systems.
//
//   Future<ActivationRecord> starting = executor.EnsureActivation(GrainKey("cart", "alice"), self.id(), lease.token);
//   Future<void> stopped = executor.StopActivation(GrainKey("cart", "alice"), lease.token);
//
// Thread safety: any thread. Every call returns at once and answers by a future. The executor must outlive its calls,
// not its futures.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_EXECUTOR_H_
#define FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_EXECUTOR_H_

#include <cstdint>
#include <string>

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/utils/future/future.h"

namespace fraktor::inline v0 {

class ActivationExecutor {
 public:
  virtual ~ActivationExecutor() = default;

  // Starts the actor of a grain, which gets the token as its writer's epoch. Never two of one key: if one with this
  // token runs, that is the answer; one with an older token has ended before the new one begins.
  virtual Future<ActivationRecord> EnsureActivation(GrainKey key, std::string owner, uint64_t token) = 0;

  // Ends the one with this token; the answer comes when it has ended. OK if there is none. One that is still being
  // started ends too, whatever becomes of its EnsureActivation.
  virtual Future<void> StopActivation(GrainKey key, uint64_t token) = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_EXECUTOR_H_
