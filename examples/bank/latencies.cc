#include "fraktor/examples/bank/latencies.h"

#include <algorithm>
#include <cmath>

namespace bank {
namespace {

constexpr absl::Duration kShortest = absl::Microseconds(20);
constexpr double kGrowth = 1.05;

}  // namespace

void Latencies::Add(absl::Duration latency) {
  ++buckets_[BucketOf(latency)];
  ++count_;
}

void Latencies::Merge(const Latencies& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
}

absl::Duration Latencies::Percentile(double part) const {
  if (count_ == 0) return absl::ZeroDuration();
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return LimitOf(i);
  }
  return LimitOf(kBuckets - 1);
}

size_t Latencies::BucketOf(absl::Duration latency) {
  if (latency <= kShortest) return 0;
  const double steps = std::ceil(std::log(absl::FDivDuration(latency, kShortest)) / std::log(kGrowth));
  return std::min(static_cast<size_t>(steps), kBuckets - 1);
}

absl::Duration Latencies::LimitOf(size_t bucket) { return kShortest * std::pow(kGrowth, static_cast<double>(bucket)); }

}  // namespace bank
