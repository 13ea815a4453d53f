#include "fraktor/actor/observe/duration_histogram.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace fraktor::inline v0 {

uint64_t DurationTotals::count() const {
  uint64_t sum = 0;
  for (const uint64_t bucket : buckets) sum += bucket;
  return sum;
}

double DurationTotals::QuantileNs(double quantile) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  const double wanted = std::ceil(std::clamp(quantile, 0.0, 1.0) * static_cast<double>(all));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, all);
  uint64_t seen = 0;
  size_t index = 0;
  for (; index < buckets.size(); ++index) {
    seen += buckets[index];
    if (seen >= rank) break;
  }
  return static_cast<double>(DurationBuckets::LowNs(index) + 1 + DurationBuckets::LowNs(index + 1)) / 2;
}

DurationTotals& DurationTotals::operator+=(const DurationTotals& other) {
  for (size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
  sum_ns += other.sum_ns;
  return *this;
}

DurationTotals& DurationTotals::operator-=(const DurationTotals& other) {
  for (size_t i = 0; i < buckets.size(); ++i) buckets[i] -= other.buckets[i];
  sum_ns -= other.sum_ns;
  return *this;
}

void DurationHistogram::AddTo(DurationTotals& totals) const {
  for (size_t i = 0; i < buckets_.size(); ++i) totals.buckets[i] += buckets_[i].load(std::memory_order_relaxed);
  totals.sum_ns += sum_ns_.load(std::memory_order_relaxed);
}

}  // namespace fraktor::inline v0
