// BootingSystemState and RunningSystemState: the guardians of a system while it boots, and while it
// runs. ActorSystem sets the guardians of a booting state one by one. IntoRunning makes a running
// state of it, which has all three.
//
//   BootingSystemState booting;
//   booting.SetGuardian(GuardianKind::kRoot, root);
//   booting.SetGuardian(GuardianKind::kUser, user);
//   booting.SetGuardian(GuardianKind::kSystem, system);
//   FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<RunningSystemState> running, std::move(booting).IntoRunning());
//
// A guardian is a reference and a flag. The state does not own the actors.
//
// Thread safety: a booting state belongs to one thread; any thread may use a running state.
#ifndef FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_STATE_H_
#define FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_STATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/utils/status/typed_error.h"

namespace fraktor::inline v0 {

namespace actor_internal {

enum class GuardianKind : uint8_t { kRoot, kUser, kSystem };
inline constexpr size_t kGuardianKinds = 3;
std::string_view NameOf(GuardianKind kind);

// Why the boot of a system failed.
enum class BootstrapErrorKind : uint8_t {
  kMissingGuardian = 0,  // Detail "guardian".
};

}  // namespace actor_internal

template <>
struct ErrorKindTraits<actor_internal::BootstrapErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/bootstrap";
  static constexpr auto kLast = actor_internal::BootstrapErrorKind::kMissingGuardian;
};

namespace actor_internal {

// The error of a system that boots, or whose boot failed: ActorErrorKind::kSystemNotBootstrapped.
absl::Status SystemNotBootstrapped(std::string_view why);

// Called if MarkStopped gets a reference that is no guardian.
using UnknownGuardian = std::function<void(ActorRef actor)>;

class RunningSystemState {
 public:
  RunningSystemState(const std::array<ActorRef, kGuardianKinds>& guardians, UnknownGuardian on_unknown);

  ActorRef guardian(GuardianKind kind) const { return guardians_[static_cast<size_t>(kind)]; }
  bool IsAlive(GuardianKind kind) const {
    // Pairs with the release in MarkStopped.
    return alive_[static_cast<size_t>(kind)].load(std::memory_order_acquire);
  }
  // Clears the flag of a guardian. Calls UnknownGuardian for any other reference.
  void MarkStopped(ActorRef actor);

 private:
  const std::array<ActorRef, kGuardianKinds> guardians_;
  // Release in MarkStopped: pairs with the acquire in IsAlive.
  std::array<std::atomic<bool>, kGuardianKinds> alive_{true, true, true};
  const UnknownGuardian on_unknown_;
};

class BootingSystemState {
 public:
  explicit BootingSystemState(UnknownGuardian on_unknown = nullptr) : on_unknown_(std::move(on_unknown)) {}

  void SetGuardian(GuardianKind kind, ActorRef guardian) { guardians_[static_cast<size_t>(kind)] = guardian; }
  // No one before SetGuardian.
  ActorRef guardian(GuardianKind kind) const { return guardians_[static_cast<size_t>(kind)]; }

  // Error: BootstrapErrorKind::kMissingGuardian for the first guardian that is missing.
  absl::StatusOr<std::unique_ptr<RunningSystemState>> IntoRunning() &&;

 private:
  std::array<ActorRef, kGuardianKinds> guardians_;
  UnknownGuardian on_unknown_;
};

}  // namespace actor_internal
}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_STATE_H_
