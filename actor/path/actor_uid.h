// ActorUid: tells apart the actors that have the same path one after the other.
//
//   ActorUidIssuer issuer(key);                    // the key belongs to one start of one system
//   ActorUid uid = issuer.UidOf(pid);              // never 0, and never the same for two pids
//   std::optional<Pid> again = issuer.PidOf(uid);  // O(1), without a table
//
// A uid is a permutation of (slot, generation) under the system's key. No pid is issued twice, so
// no uid is either. Two systems with random keys, such as a node before and after its restart, are
// as unlikely to issue the same uid as two random numbers of 64 bits are to be equal.
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
  // No uid. The uid of a path that does not say which incarnation it means.
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

  // Returns the uid of a valid pid. The pid of all zeros is never issued, and the uid 0 means none.
  // The pid whose image is 0 therefore gets the image of the zero pid. The result is a permutation
  // of all numbers except 0.
  ActorUid UidOf(Pid pid) const {
    const uint64_t image = Permute(pid.ToBits());
    return ActorUid(image != 0 ? image : image_of_zero_);
  }

  // Returns the pid of this uid. The pid may belong to no actor, so the caller must check slot and
  // generation. Returns none for a uid that no valid pid has.
  std::optional<Pid> PidOf(ActorUid uid) const;

 private:
  // Odd numbers have an inverse modulo 2^64, so that a multiplication by them can be undone.
  static constexpr uint64_t kFactor0 = 0xbf58476d1ce4e5b9u;
  static constexpr uint64_t kFactor1 = 0x94d049bb133111ebu;

  // FoldHalf is its own inverse, because it shifts by half of the bits.
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
