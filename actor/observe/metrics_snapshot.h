// MetricsSnapshot: the values of all metrics at one moment; a plain value to keep, compare, or
// write as PrometheusText.
//
//   const MetricsSnapshot snapshot = hub.Snapshot(toolbox.Now());
//   const Metric* depth = snapshot.Find(kMailboxDepth, {{"type", "Greeter"}});
//
// The metrics are the rows of kMetricTable (metric_table.h, docs/metrics.md), and those that others
// have added.
//
// The series of a type includes all of its actors, also those that are observed alone. So a sum
// over types must leave out the series with a label `actor`.
#ifndef FRAKTOR_ACTOR_OBSERVE_METRICS_SNAPSHOT_H_
#define FRAKTOR_ACTOR_OBSERVE_METRICS_SNAPSHOT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

// The type that stands for all beyond the limit.
inline constexpr std::string_view kOtherTypesName = "other";

struct MetricLabel {
  std::string name = {};
  std::string value = {};

  friend bool operator==(const MetricLabel&, const MetricLabel&) = default;
};
using MetricLabels = std::vector<MetricLabel>;

// All samples since the hub was made. Quantiles are within 12.5 %; see DurationHistogram.
struct MetricSummary {
  // The number of samples of at most `upper_ms`.
  struct Bucket {
    double upper_ms = 0;
    uint64_t count = 0;
  };

  uint64_t count = 0;
  double sum_ms = 0;
  double p50_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  // From 1 us to 17 s; each bound is four times the one before. Exact.
  std::vector<Bucket> buckets = {};

  static MetricSummary Of(const DurationTotals& totals);
};

struct Metric {
  std::string name = {};
  MetricLabels labels = {};  // sorted by name
  MetricKind kind = MetricKind::kGauge;
  double value = 0;
  MetricSummary summary = {};
  // A description and a unit, for people. Either may be empty if an application has added the
  // metric.
  std::string help = {};
  std::string unit = {};
};

struct MetricsSnapshot {
  Instant at = {};
  // Sorted by name, then by labels.
  std::vector<Metric> metrics = {};

  // Returns null if there is none. `labels` are sorted by name.
  const Metric* Find(std::string_view name, const MetricLabels& labels = {}) const;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_METRICS_SNAPSHOT_H_
