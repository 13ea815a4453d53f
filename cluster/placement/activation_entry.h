// What is stored about the one activation of a grain.
//
//   ActivationEntry entry{.owner = self.id(), .record = {.pid = pid}, .token = lease.token, .epoch = topology.epoch()};
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_ENTRY_H_
#define FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_ENTRY_H_

#include <cstdint>
#include <string>

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct ActivationRecord {
  std::string pid = {};
  // What the kind wants to keep of it; may be empty.
  std::string snapshot = {};
  // Of the snapshot.
  uint64_t version = 0;
  // For the node that runs it, and for nobody else: it is not stored, and makes no difference between two records.
  ActorRef actor = {};

  friend bool operator==(const ActivationRecord& a, const ActivationRecord& b) {
    return a.pid == b.pid && a.snapshot == b.snapshot && a.version == b.version;
  }
};

struct ActivationEntry {
  // The id of the member that runs it.
  std::string owner = {};
  ActivationRecord record = {};
  // On the clock of the node that stored it.
  Instant observed_at = {};
  // The fencing token under which it was activated. Who has it is the one that may write.
  uint64_t token = 0;
  // The epoch of a topology that had the owner in it. Who knows a later one, without the owner, knows that it has left;
  // who knows an earlier one only cannot say.
  uint64_t epoch = 0;

  friend bool operator==(const ActivationEntry&, const ActivationEntry&) = default;
};

// What a storage answers; without an entry if there is none.
struct LoadedActivation {
  bool exists = false;
  ActivationEntry entry = {};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_ENTRY_H_
