// Latencies: how long things took, within a twentieth, in memory that does not grow.
//
//   Latencies latencies;
//   latencies.Add(absl::Milliseconds(12));
//   absl::Duration p99 = latencies.Percentile(0.99);
//
// Thread safety: a value.
#ifndef FRAKTOR_EXAMPLES_BANK_LATENCIES_H_
#define FRAKTOR_EXAMPLES_BANK_LATENCIES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace bank {

class Latencies {
 public:
  void Add(absl::Duration latency);
  void Merge(const Latencies& other);

  uint64_t count() const { return count_; }
  // Such that this part of them took no longer, rounded up. Zero if there are none.
  absl::Duration Percentile(double part) const;

 private:
  // Each is 1.05 times as long as the one before; the last is more than an hour.
  static constexpr size_t kBuckets = 400;
  static size_t BucketOf(absl::Duration latency);
  static absl::Duration LimitOf(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_ = {};
  uint64_t count_ = 0;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_LATENCIES_H_
