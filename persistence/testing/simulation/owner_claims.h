// OwnerClaims: which epochs of one persistence id a store has heard of, as far as its clients know.
//
// Requests have orders: the place in which they were submitted to the store, which is the place in
// which they take effect.
//
// Thread safety: none.
#ifndef FRAKTOR_PERSISTENCE_TESTING_SIMULATION_OWNER_CLAIMS_H_
#define FRAKTOR_PERSISTENCE_TESTING_SIMULATION_OWNER_CLAIMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace fraktor::inline v0 {

class OwnerClaims {
 public:
  // An epoch that a new opening without a token may get: any.
  static constexpr uint64_t kAnyEpoch = std::numeric_limits<uint64_t>::max();

  // The request is submitted; nobody knows yet what becomes of it.
  void Submit(uint64_t order, uint64_t epoch) { claims_.push_back({order, epoch, /*is_known=*/false}); }
  // It was carried out, with this epoch. So an earlier request without an answer has not claimed
  // more.
  void Confirm(uint64_t order, uint64_t epoch) {
    for (Claim& claim : claims_) {
      if (claim.order == order) claim = {order, epoch, /*is_known=*/true};
      if (claim.order < order) claim.epoch = std::min(claim.epoch, epoch);
    }
    Forget();
  }
  // It had no effect.
  void Withdraw(uint64_t order) {
    claims_.erase(
        std::remove_if(claims_.begin(), claims_.end(), [order](const Claim& claim) { return claim.order == order; }),
        claims_.end());
  }

  // The highest epoch that the store must know when it judges request `order`.
  uint64_t KnownBefore(uint64_t order) const {
    uint64_t known = 0;
    for (const Claim& claim : claims_) {
      if (claim.is_known && claim.order < order) known = std::max(known, claim.epoch);
    }
    return known;
  }
  uint64_t known() const { return KnownBefore(kAnyEpoch); }
  // The highest one that it may know then.
  uint64_t PossibleBefore(uint64_t order) const {
    uint64_t possible = 0;
    for (const Claim& claim : claims_) {
      if (claim.order < order) possible = std::max(possible, claim.epoch);
    }
    return possible;
  }

 private:
  struct Claim {
    uint64_t order = 0;
    uint64_t epoch = 0;
    bool is_known = false;
  };

  // Drops old claims below the highest epoch that is known: no request that is under way is judged
  // by them.
  void Forget() {
    if (claims_.size() <= kMaxClaims) return;
    const uint64_t highest = known();
    const auto middle = claims_.begin() + kMaxClaims / 2;
    claims_.erase(
        std::remove_if(claims_.begin(), middle, [highest](const Claim& claim) { return claim.epoch < highest; }),
        middle);
  }

  static constexpr size_t kMaxClaims = 512;

  std::vector<Claim> claims_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_TESTING_SIMULATION_OWNER_CLAIMS_H_
