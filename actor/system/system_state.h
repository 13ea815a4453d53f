// The guardians of a system, while it boots and while it runs.
//
//   BootingSystemState booting;
//   booting.SetGuardian(GuardianKind::kRoot, root);
//   ...
//   FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<RunningSystemState> running, std::move(booting).IntoRunning());
//   running->guardian(GuardianKind::kUser)          // there is one: the type says so
//   running->MarkStopped(user)                      // its flag goes down, its reference stays
//
// A guardian is a reference and a flag, and nothing else: cells are reached through the registry only, so nothing here
// keeps one alive.
//
// Thread safety: a booting state belongs to one thread; a running one to any.
#ifndef FRAKTOR_ACTOR_SYSTEM_SYSTEM_STATE_H_
#define FRAKTOR_ACTOR_SYSTEM_SYSTEM_STATE_H_

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

enum class GuardianKind : uint8_t { kRoot, kUser, kSystem };
inline constexpr size_t kGuardianKinds = 3;
std::string_view NameOf(GuardianKind kind);

// Why a system did not come up.
enum class BootstrapErrorKind : uint8_t {
  kMissingGuardian = 0,  // Detail "guardian".
};
template <>
struct ErrorKindTraits<BootstrapErrorKind> {
  static constexpr std::string_view kTypeUrl = "fraktor.dev/error/bootstrap";
  static constexpr BootstrapErrorKind kLast = BootstrapErrorKind::kMissingGuardian;
};

// What a system answers that is still booting, or has failed to: ActorErrorKind::kSystemNotBootstrapped.
absl::Status SystemNotBootstrapped(std::string_view why);

// Called with a reference that was marked as stopped and is no guardian's.
using UnknownGuardian = std::function<void(ActorRef actor)>;

class RunningSystemState {
 public:
  RunningSystemState(const std::array<ActorRef, kGuardianKinds>& guardians, UnknownGuardian on_unknown);

  ActorRef guardian(GuardianKind kind) const { return guardians_[static_cast<size_t>(kind)]; }
  bool IsAlive(GuardianKind kind) const {
    // Pairs with the release in MarkStopped.
    return alive_[static_cast<size_t>(kind)].load(std::memory_order_acquire);
  }
  // Nothing happens if it is no guardian, but that UnknownGuardian is called.
  void MarkStopped(ActorRef actor);

 private:
  const std::array<ActorRef, kGuardianKinds> guardians_;
  // Released when one goes down, acquired by IsAlive.
  std::array<std::atomic<bool>, kGuardianKinds> alive_{true, true, true};
  const UnknownGuardian on_unknown_;
};

class BootingSystemState {
 public:
  explicit BootingSystemState(UnknownGuardian on_unknown = nullptr) : on_unknown_(std::move(on_unknown)) {}

  void SetGuardian(GuardianKind kind, ActorRef guardian) { guardians_[static_cast<size_t>(kind)] = guardian; }
  // No one if it has not been set.
  ActorRef guardian(GuardianKind kind) const { return guardians_[static_cast<size_t>(kind)]; }

  // BootstrapErrorKind::kMissingGuardian for the first that is missing.
  absl::StatusOr<std::unique_ptr<RunningSystemState>> IntoRunning() &&;

 private:
  std::array<ActorRef, kGuardianKinds> guardians_;
  UnknownGuardian on_unknown_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_SYSTEM_STATE_H_
