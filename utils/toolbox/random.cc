#include "fraktor/utils/toolbox/random.h"

#include <bit>
#include <cstdint>

#include "absl/numeric/int128.h"

namespace fraktor::inline v0 {

Random::Random(uint64_t seed) : seed_(seed) {
  uint64_t counter = seed;
  for (uint64_t& word : state_) word = MixBits(counter += 0x9e3779b97f4a7c15);
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Uniform(uint64_t n) {
  if (n == 0) return 0;
  // Takes the high half of a 128-bit product (Lemire). 2^64 mod n of the 2^64 draws would make the
  // result uneven: those with the smallest low half. They are drawn again.
  const uint64_t excess = (0 - n) % n;
  while (true) {
    const absl::uint128 product = absl::uint128(Next()) * n;
    if (absl::Uint128Low64(product) >= excess) return absl::Uint128High64(product);
  }
}

int64_t Random::UniformIn(int64_t low, int64_t high) {
  if (high <= low) return low;
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t offset = span == ~uint64_t{0} ? Next() : Uniform(span + 1);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

double Random::Exponential(double mean) {
  // Von Neumann's method only compares uniform numbers. A logarithm may differ in its last bit
  // between libraries.
  for (double whole = 0;; whole += 1) {
    const uint64_t first = Next() >> 11;
    uint64_t least = first;
    int run = 1;
    for (uint64_t next = Next() >> 11; next < least; next = Next() >> 11) {
      least = next;
      ++run;
    }
    if (run % 2 == 1) return (whole + static_cast<double>(first) * 0x1p-53) * mean;
  }
}

}  // namespace fraktor::inline v0
