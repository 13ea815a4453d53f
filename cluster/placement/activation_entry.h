// What is stored about the one activation of a grain.
//
//   storage.Store(key, {.owner = self.id(), .record = {.pid = "pekko://shop@10.0.0.7:2552/system/grains/cart:alice#7"},
//                       .observed_at = now, .token = lease.token, .epoch = topology->epoch()}, expected_token);
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_ENTRY_H_
#define FRAKTOR_CLUSTER_PLACEMENT_ACTIVATION_ENTRY_H_

#include <cstdint>
#include <string>

#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct ActivationRecord {
  std::string pid = {};
  // What the kind wants to keep of it; may be empty.
  std::string snapshot = {};
  // Of the snapshot.
  uint64_t version = 0;

  friend bool operator==(const ActivationRecord&, const ActivationRecord&) = default;
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
