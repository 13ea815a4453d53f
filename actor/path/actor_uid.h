// ActorUid: tells one life of a path from the next. Two actors that had the same path one after the other differ in it.
//
//   ActorUidIssuer issuer(key);                    // the key belongs to one start of one system
//   ActorUid uid = issuer.UidOf(pid);              // never 0, never the same for two pids
//   std::optional<Pid> again = issuer.PidOf(uid);  // O(1), no table
//
// A uid is a permutation of (slot, generation) under the system's key. A pid is never given twice, so neither is a
// uid; and two systems with random keys, such as a node before and after its restart, are as unlikely to give the
// same uid as two random numbers of 64 bits are to be equal.
//
// Thread safety: immutable values.
#ifndef FRAKTOR_ACTOR_PATH_ACTOR_UID_H_
#define FRAKTOR_ACTOR_PATH_ACTOR_UID_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <utility>

#include "fraktor/actor/path/pid.h"

namespace fraktor::inline v0 {

class ActorUid {
 public:
  // No uid: paths that do not say which life they mean have it.
  constexpr ActorUid() = default;
  explicit constexpr ActorUid(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr bool IsNone() const { return value_ == 0; }

  friend constexpr auto operator<=>(ActorUid, ActorUid) = default;

  template <class H>
  friend H AbslHashValue(H h, ActorUid uid) {
    return H::combine(std::move(h), uid.value_);
  }

 private:
  uint64_t value_ = 0;
};

class ActorUidIssuer {
 public:
  explicit ActorUidIssuer(uint64_t key);

  // The uid of a valid pid. The pid of all zeros is nobody's and the uid 0 means none. So whoever is mapped to 0
  // takes the image of the former: what is left is a permutation of everything but zero.
  ActorUid UidOf(Pid pid) const {
    const uint64_t image = Permute(pid.ToBits());
    return ActorUid(image != 0 ? image : image_of_zero_);
  }

  // The pid whose uid this is, though perhaps of an actor that never was: whoever asks checks slot and generation. None
  // for a uid that no valid pid has.
  std::optional<Pid> PidOf(ActorUid uid) const;

 private:
  // Odd numbers have an inverse modulo 2^64, so multiplying by them loses nothing.
  static constexpr uint64_t kFactor0 = 0xbf58476d1ce4e5b9u;
  static constexpr uint64_t kFactor1 = 0x94d049bb133111ebu;

  // A shift by half of the bits undoes itself.
  static constexpr uint64_t FoldHalf(uint64_t x) { return x ^ (x >> 32); }

  uint64_t Permute(uint64_t bits) const {
    bits = FoldHalf(bits ^ keys_[0]) * kFactor0;
    bits = FoldHalf(bits + keys_[1]) * kFactor1;
    return FoldHalf(bits) ^ keys_[2];
  }
  uint64_t Unpermute(uint64_t bits) const;

  std::array<uint64_t, 3> keys_;
  uint64_t image_of_zero_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_PATH_ACTOR_UID_H_
