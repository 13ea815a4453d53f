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

uint32_t Round(uint32_t half, uint64_t key) { return static_cast<uint32_t>(Mix(half ^ key) >> 32); }

}  // namespace

ActorUidIssuer::ActorUidIssuer(uint64_t key) : round_keys_(), image_of_zero_(0) {
  for (size_t i = 0; i < round_keys_.size(); ++i) round_keys_[i] = Mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
  image_of_zero_ = Permute(0);
}

// A Feistel network of four rounds over the halves: invertible whatever the round function is.
uint64_t ActorUidIssuer::Permute(uint64_t bits) const {
  auto left = static_cast<uint32_t>(bits >> 32);
  auto right = static_cast<uint32_t>(bits);
  for (uint64_t key : round_keys_) {
    const uint32_t next = left ^ Round(right, key);
    left = right;
    right = next;
  }
  return uint64_t{left} << 32 | right;
}

uint64_t ActorUidIssuer::Unpermute(uint64_t bits) const {
  auto left = static_cast<uint32_t>(bits >> 32);
  auto right = static_cast<uint32_t>(bits);
  for (size_t i = round_keys_.size(); i-- > 0;) {
    const uint32_t previous = right ^ Round(left, round_keys_[i]);
    right = left;
    left = previous;
  }
  return uint64_t{left} << 32 | right;
}

// The pid of all zeros is nobody's and the uid 0 means none. So whoever is mapped to 0 takes the image of the former:
// what is left is a permutation of everything but zero.
ActorUid ActorUidIssuer::UidOf(Pid pid) const {
  const uint64_t image = Permute(pid.ToBits());
  return ActorUid(image != 0 ? image : image_of_zero_);
}

std::optional<Pid> ActorUidIssuer::PidOf(ActorUid uid) const {
  if (uid.IsNone()) return std::nullopt;
  const Pid pid = Pid::FromBits(Unpermute(uid.value() != image_of_zero_ ? uid.value() : 0));
  if (!pid.IsValid()) return std::nullopt;
  return pid;
}

}  // namespace fraktor::inline v0
