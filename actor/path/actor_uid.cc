#include "fraktor/actor/path/actor_uid.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fraktor/actor/path/pid.h"

namespace fraktor::inline v0 {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;  // correct in the lowest three bits; each step doubles their number
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

}  // namespace

ActorUidIssuer::ActorUidIssuer(uint64_t key) : keys_(), image_of_zero_(0) {
  for (size_t i = 0; i < keys_.size(); ++i) keys_[i] = Mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
  image_of_zero_ = Permute(0);
}

uint64_t ActorUidIssuer::Unpermute(uint64_t bits) const {
  static_assert(kFactor0 * Inverse(kFactor0) == 1 && kFactor1 * Inverse(kFactor1) == 1);
  bits = FoldHalf(bits ^ keys_[2]) * Inverse(kFactor1);
  bits = FoldHalf(bits) - keys_[1];
  return FoldHalf(bits * Inverse(kFactor0)) ^ keys_[0];
}

std::optional<Pid> ActorUidIssuer::PidOf(ActorUid uid) const {
  if (uid.IsNone()) return std::nullopt;
  const Pid pid = Pid::FromBits(Unpermute(uid.value() != image_of_zero_ ? uid.value() : 0));
  if (!pid.IsValid()) return std::nullopt;
  return pid;
}

}  // namespace fraktor::inline v0
