#include "fraktor/actor/system/internal/system_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

std::string_view NameOf(GuardianKind kind) {
  switch (kind) {
    case GuardianKind::kRoot:
      return "root";
    case GuardianKind::kUser:
      return "user";
    case GuardianKind::kSystem:
      return "system";
  }
  return "unknown";
}

absl::Status SystemNotBootstrapped(std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, ActorErrorKind::kSystemNotBootstrapped,
                   absl::StrCat("the actor system is not up: ", ToAbsl(why)));
}

RunningSystemState::RunningSystemState(const std::array<ActorRef, kGuardianKinds>& guardians,
                                       UnknownGuardian on_unknown)
    : guardians_(guardians), on_unknown_(std::move(on_unknown)) {}

void RunningSystemState::MarkStopped(ActorRef actor) {
  const auto found = std::find(guardians_.begin(), guardians_.end(), actor);
  if (found == guardians_.end()) {
    if (on_unknown_ != nullptr) on_unknown_(actor);
    return;
  }
  alive_[static_cast<size_t>(found - guardians_.begin())].store(false, std::memory_order_release);
}

absl::StatusOr<std::unique_ptr<RunningSystemState>> BootingSystemState::IntoRunning() && {
  for (size_t i = 0; i < kGuardianKinds; ++i) {
    if (!guardians_[i].IsNoOne()) continue;
    const std::string_view name = NameOf(static_cast<GuardianKind>(i));
    return MakeError(absl::StatusCode::kFailedPrecondition, BootstrapErrorKind::kMissingGuardian,
                     absl::StrCat("the ", ToAbsl(name), " guardian has not been set"), {{"guardian", name}});
  }
  return std::make_unique<RunningSystemState>(guardians_, std::move(on_unknown_));
}

}  // namespace fraktor::inline v0::actor_internal
