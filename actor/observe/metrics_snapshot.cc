#include "fraktor/actor/observe/metrics_snapshot.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fraktor/actor/observe/duration_histogram.h"

namespace fraktor::inline v0 {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr int kFirstBoundBits = 10;  // 1.024 us
constexpr int kLastBoundBits = 34;   // 17.2 s
constexpr int kBoundStepBits = 2;

}  // namespace

MetricSummary MetricSummary::Of(const DurationTotals& totals) {
  MetricSummary summary{.count = totals.count(),
                        .sum_ms = static_cast<double>(totals.sum_ns) / kNsPerMs,
                        .p50_ms = totals.QuantileNs(0.50) / kNsPerMs,
                        .p95_ms = totals.QuantileNs(0.95) / kNsPerMs,
                        .p99_ms = totals.QuantileNs(0.99) / kNsPerMs};
  uint64_t below = 0;
  size_t index = 0;
  for (int bits = kFirstBoundBits; bits <= kLastBoundBits; bits += kBoundStepBits) {
    for (; index < DurationBuckets::CountUpTo(bits); ++index) below += totals.buckets[index];
    summary.buckets.push_back({.upper_ms = static_cast<double>(uint64_t{1} << bits) / kNsPerMs, .count = below});
  }
  return summary;
}

const Metric* MetricsSnapshot::Find(std::string_view name, const MetricLabels& labels) const {
  for (const Metric& metric : metrics) {
    if (metric.name == name && metric.labels == labels) return &metric;
  }
  return nullptr;
}

}  // namespace fraktor::inline v0
