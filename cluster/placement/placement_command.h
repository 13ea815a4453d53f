// PlacementCommand: what the coordinator wants to have done. PlacementCommandResult: what became of it. Each result has
// the request id of its command.
//
//   if (const auto* load = std::get_if<LoadActivation>(&command)) {
//     result = ActivationLoaded{.request_id = load->request_id, .result = LoadedActivation()};      // there is none
//   }
//
// Thread safety: values.
#ifndef FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COMMAND_H_
#define FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COMMAND_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/cluster/identity/grain_key.h"
#include "fraktor/cluster/placement/activation_entry.h"
#include "fraktor/cluster/placement/placement_lease.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct TryAcquireLock {
  PlacementRequestId request_id = {};
  GrainKey key = {};
  std::string owner = {};
  Instant now = {};
};
struct LoadActivation {
  PlacementRequestId request_id = {};
  GrainKey key = {};
};
struct EnsureActivation {
  PlacementRequestId request_id = {};
  GrainKey key = {};
  std::string owner = {};
  uint64_t token = 0;
};
struct StoreActivation {
  PlacementRequestId request_id = {};
  GrainKey key = {};
  ActivationEntry entry = {};
  uint64_t expected_token = 0;
};
struct StopActivation {
  PlacementRequestId request_id = {};
  GrainKey key = {};
  uint64_t token = 0;
};
struct RemoveActivation {
  PlacementRequestId request_id = {};
  GrainKey key = {};
  uint64_t token = 0;
};
struct ReleaseLock {
  PlacementRequestId request_id = {};
  PlacementLease lease = {};
};

using PlacementCommand = std::variant<TryAcquireLock, LoadActivation, EnsureActivation, StoreActivation, StopActivation,
                                      RemoveActivation, ReleaseLock>;

struct LockAcquired {
  PlacementRequestId request_id = {};
  absl::StatusOr<PlacementLease> result = PlacementLease();
};
struct ActivationLoaded {
  PlacementRequestId request_id = {};
  absl::StatusOr<LoadedActivation> result = LoadedActivation();
};
struct ActivationEnsured {
  PlacementRequestId request_id = {};
  absl::StatusOr<ActivationRecord> result = ActivationRecord();
};
struct ActivationStored {
  PlacementRequestId request_id = {};
  absl::Status result = absl::OkStatus();
};
struct ActivationStopped {
  PlacementRequestId request_id = {};
  absl::Status result = absl::OkStatus();
};
struct ActivationRemoved {
  PlacementRequestId request_id = {};
  absl::Status result = absl::OkStatus();
};
struct LockReleased {
  PlacementRequestId request_id = {};
  absl::Status result = absl::OkStatus();
};

using PlacementCommandResult = std::variant<LockAcquired, ActivationLoaded, ActivationEnsured, ActivationStored,
                                            ActivationStopped, ActivationRemoved, LockReleased>;

inline PlacementRequestId RequestIdOf(const PlacementCommand& command) {
  return std::visit([](const auto& each) { return each.request_id; }, command);
}
inline PlacementRequestId RequestIdOf(const PlacementCommandResult& result) {
  return std::visit([](const auto& each) { return each.request_id; }, result);
}

// "TryAcquireLock" and so on.
std::string_view CommandName(const PlacementCommand& command);
std::string_view ResultName(const PlacementCommandResult& result);

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_PLACEMENT_PLACEMENT_COMMAND_H_
