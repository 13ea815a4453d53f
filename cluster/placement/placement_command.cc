#include "fraktor/cluster/placement/placement_command.h"

#include <array>
#include <string_view>
#include <variant>

namespace fraktor::inline v0 {

std::string_view CommandName(const PlacementCommand& command) {
  static constexpr std::array<std::string_view, std::variant_size_v<PlacementCommand>> kNames = {
      "TryAcquireLock", "LoadActivation",   "EnsureActivation", "StoreActivation",
      "StopActivation", "RemoveActivation", "ReleaseLock"};
  return kNames[command.index()];
}

std::string_view ResultName(const PlacementCommandResult& result) {
  static constexpr std::array<std::string_view, std::variant_size_v<PlacementCommandResult>> kNames = {
      "LockAcquired",      "ActivationLoaded",  "ActivationEnsured", "ActivationStored",
      "ActivationStopped", "ActivationRemoved", "LockReleased"};
  return kNames[result.index()];
}

}  // namespace fraktor::inline v0
