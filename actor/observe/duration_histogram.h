// DurationHistogram: counts durations in logarithmic buckets, four for each power of two.
//
//   DurationHistogram histogram;                     // one thread records
//   histogram.Record(1'500);                         // nanoseconds
//   DurationTotals totals;                           // any thread reads, at any time
//   histogram.AddTo(totals);
//   const double slowest = totals.QuantileNs(0.99);
//
// A quantile is the middle of its bucket: within 12.5 % of the true one (and 0 reads as 1 ns).
// Counts and sums are exact. All durations from 2^42 ns (73 minutes) on are in the last bucket. A
// histogram takes 1.3 KiB.
//
// Thread safety: one thread calls Record; any thread may call AddTo meanwhile. A sample that is
// being recorded may be in the sum and not yet in its bucket, or the other way round.
#ifndef FRAKTOR_ACTOR_OBSERVE_DURATION_HISTOGRAM_H_
#define FRAKTOR_ACTOR_OBSERVE_DURATION_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fraktor::inline v0 {

// Bucket i holds the durations in (LowNs(i), LowNs(i + 1)]: closed above, so that powers of two are
// exact upper bounds. The first bucket also holds 0.
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

  // The number of buckets, from the first on, that hold exactly the durations up to 2^bits ns.
  static constexpr size_t CountUpTo(int bits) { return kSubBuckets * static_cast<size_t>(bits - kSubBucketBits + 1); }
};
static_assert(DurationBuckets::kCount == 164);
static_assert(DurationBuckets::LowNs(DurationBuckets::kCount) == uint64_t{1} << DurationBuckets::kMaxBits);

// A sum of histograms; a plain value.
struct DurationTotals {
  std::array<uint64_t, DurationBuckets::kCount> buckets = {};
  uint64_t sum_ns = 0;

  uint64_t count() const;
  // Returns 0 if there are no samples. `quantile` is from 0 to 1.
  double QuantileNs(double quantile) const;

  DurationTotals& operator+=(const DurationTotals& other);
  // Modulo 2^64: a difference may be below zero until a later sum corrects it.
  DurationTotals& operator-=(const DurationTotals& other);
};

class DurationHistogram {
 public:
  // A negative duration, which a clock that was set back causes, counts as 0.
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
