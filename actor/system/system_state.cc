#include "fraktor/actor/system/system_state.h"

#include "absl/strings/str_cat.h"

#include "fraktor/actor/supervision/failure.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

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
                                       const std::array<bool, kGuardianKinds>& alive, UnknownGuardian on_unknown)
    : guardians_(guardians), on_unknown_(std::move(on_unknown)) {
  for (size_t i = 0; i < kGuardianKinds; ++i) alive_[i].store(alive[i], std::memory_order_relaxed);
}

GuardianStopped RunningSystemState::MarkStopped(ActorRef actor) {
  for (size_t i = 0; i < kGuardianKinds; ++i) {
    if (guardians_[i] != actor) continue;
    return alive_[i].exchange(false, std::memory_order_acq_rel) ? GuardianStopped::kNow : GuardianStopped::kAgain;
  }
  if (on_unknown_ != nullptr) on_unknown_(actor);
  return GuardianStopped::kUnknown;
}

GuardianStopped BootingSystemState::MarkStopped(ActorRef actor) {
  for (size_t i = 0; i < kGuardianKinds; ++i) {
    if (guardians_[i].IsNoOne() || guardians_[i] != actor) continue;
    return std::exchange(alive_[i], false) ? GuardianStopped::kNow : GuardianStopped::kAgain;
  }
  if (on_unknown_ != nullptr) on_unknown_(actor);
  return GuardianStopped::kUnknown;
}

bool BootingSystemState::IsTerminated() const {
  const auto has_stopped = [this](GuardianKind kind) { return !guardian(kind).IsNoOne() && !IsAlive(kind); };
  if (!guardian(GuardianKind::kRoot).IsNoOne()) return has_stopped(GuardianKind::kRoot);
  return has_stopped(GuardianKind::kUser) || has_stopped(GuardianKind::kSystem);
}

absl::StatusOr<std::unique_ptr<RunningSystemState>> BootingSystemState::IntoRunning() && {
  for (size_t i = 0; i < kGuardianKinds; ++i) {
    if (!guardians_[i].IsNoOne()) continue;
    const std::string_view name = NameOf(static_cast<GuardianKind>(i));
    return MakeError(absl::StatusCode::kFailedPrecondition, BootstrapErrorKind::kMissingGuardian,
                     absl::StrCat("the ", ToAbsl(name), " guardian has not been set"), {{"guardian", name}});
  }
  return std::make_unique<RunningSystemState>(guardians_, alive_, std::move(on_unknown_));
}

}  // namespace fraktor::inline v0
