// How long things took, in logarithmic buckets: four for each power of two.
//
//   DurationHistogram histogram;     // one thread records
//   histogram.Record(1'500);         // nanoseconds
//   DurationTotals totals;           // anybody reads, at any time
//   histogram.AddTo(totals);
//   totals.QuantileNs(0.99)
//
// A quantile is the middle of the bucket that it falls into: within 12.5 % of the true one (and 0 reads as 1 ns).
// Counts and sums are exact. From 2^42 ns (73 minutes) on everything is in the last bucket. 1.3 KiB each.
//
// Thread safety: one thread calls Record, any thread calls AddTo meanwhile. A sample that is being recorded may be in
// the sum and not yet in its bucket, or the other way round.
#ifndef FRAKTOR_ACTOR_OBSERVE_DURATION_HISTOGRAM_H_
#define FRAKTOR_ACTOR_OBSERVE_DURATION_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fraktor::inline v0 {

// Bucket i holds the durations in (BucketLowNs(i), BucketLowNs(i + 1)]: closed above, so that powers of two are exact
// upper bounds. The first one also holds 0.
struct DurationBuckets {
  static constexpr int kSubBucketBits = 2;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBucketBits;
  static constexpr int kMaxBits = 42;
  static constexpr size_t kCount = kSubBuckets * (kMaxBits - kSubBucketBits + 1);

  static constexpr size_t IndexOf(int64_t ns) {
    const uint64_t below = ns > 0 ? static_cast<uint64_t>(ns) - 1 : 0;
    if (below < kSubBuckets) return static_cast<size_t>(below);
    if (below >= uint64_t{1} << kMaxBits) return kCount - 1;
    const int shift = static_cast<int>(std::bit_width(below)) - 1 - kSubBucketBits;
    return static_cast<size_t>(shift) * kSubBuckets + static_cast<size_t>(below >> shift);
  }

  static constexpr uint64_t LowNs(size_t index) {
    if (index < kSubBuckets) return index;
    const size_t shift = index / kSubBuckets - 1;
    return (kSubBuckets + index % kSubBuckets) << shift;
  }

  // So many buckets from the first on hold exactly the durations up to 2^bits ns.
  static constexpr size_t CountUpTo(int bits) { return kSubBuckets * static_cast<size_t>(bits - kSubBucketBits + 1); }
};
static_assert(DurationBuckets::kCount == 164);
static_assert(DurationBuckets::LowNs(DurationBuckets::kCount) == uint64_t{1} << DurationBuckets::kMaxBits);

// A sum of histograms: a plain value.
struct DurationTotals {
  std::array<uint64_t, DurationBuckets::kCount> buckets = {};
  uint64_t sum_ns = 0;

  uint64_t count() const;
  // 0 if there are none. `quantile` is from 0 to 1.
  double QuantileNs(double quantile) const;

  DurationTotals& operator+=(const DurationTotals& other);
  // Modulo 2^64, like what it works on: a difference that is below zero for a while is made good by a later sum.
  DurationTotals& operator-=(const DurationTotals& other);
};

class DurationHistogram {
 public:
  // A negative duration, of a clock that is none, counts as 0.
  void Record(int64_t ns) {
    Increase(buckets_[DurationBuckets::IndexOf(ns)], 1);
    if (ns > 0) Increase(sum_ns_, static_cast<uint64_t>(ns));
  }

  void AddTo(DurationTotals& totals) const;

 private:
  static void Increase(std::atomic<uint64_t>& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  // Statistics with one writer; they pair with nothing.
  std::array<std::atomic<uint64_t>, DurationBuckets::kCount> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_DURATION_HISTOGRAM_H_
