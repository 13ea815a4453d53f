// Random: a small generator that gives the same numbers on every machine, compiler and library.
//
//   Random random = toolbox.MakeRandom(/*stream=*/7);          // each purpose has a stream of its own
//   absl::Duration wait = random.UniformDuration(absl::ZeroDuration(), absl::Seconds(1));
//   if (random.Bernoulli(0.01)) DropTheMessage();
//
// For schedules, jitter, sampling and faults; not for secrets. std::*_distribution and std::shuffle
// differ between libraries, so a simulation that used them would not repeat. These methods use only
// integer arithmetic, comparisons and single operations with correct rounding. The generator is
// xoshiro256** (Blackman and Vigna), seeded by splitmix64.
//
// Thread safety: none; give every owner a generator of its own with Fork.
#ifndef FRAKTOR_UTILS_TOOLBOX_RANDOM_H_
#define FRAKTOR_UTILS_TOOLBOX_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/time/time.h"

namespace fraktor::inline v0 {

// A bijection of 64 bits in which every input bit changes about half of the output bits (the
// finalizer of splitmix64).
constexpr uint64_t MixBits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed);

  // 64 random bits.
  uint64_t Next();

  // From 0 to n - 1, each equally likely. 0 if n is 0.
  uint64_t Uniform(uint64_t n);

  // From low to high, both included, each equally likely. `low` if high < low.
  int64_t UniformIn(int64_t low, int64_t high);

  // From 0 to below 1: a multiple of 2^-53.
  double UniformDouble() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // True with probability p: never if p <= 0 or p is not a number, always if p >= 1. Draws exactly
  // one number.
  bool Bernoulli(double p) { return UniformDouble() < p; }

  // The waiting time until an event that happens once per `mean` on average. In practice it is
  // never more than 700 times the mean.
  double Exponential(double mean);

  // From low to high, both included, in whole nanoseconds. `low` if high < low. Both must be
  // shorter than 292 years.
  absl::Duration UniformDuration(absl::Duration low, absl::Duration high) {
    return absl::Nanoseconds(UniformIn(absl::ToInt64Nanoseconds(low), absl::ToInt64Nanoseconds(high)));
  }

  // Shuffles a range. Each order is equally likely.
  template <typename RandomAccessIterator>
  void Shuffle(RandomAccessIterator first, RandomAccessIterator last) {
    for (auto n = last - first; n > 1; --n) {
      using std::swap;
      swap(first[n - 1], first[static_cast<std::ptrdiff_t>(Uniform(static_cast<uint64_t>(n)))]);
    }
  }

  // Returns a generator that is independent of this one. It depends only on the seed of this one
  // and on `stream`, not on the numbers drawn so far, so a new stream does not change the others.
  Random Fork(uint64_t stream) const { return Random(MixBits(seed_ + MixBits(stream + 0x9e3779b97f4a7c15))); }

  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
  uint64_t state_[4];
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TOOLBOX_RANDOM_H_
