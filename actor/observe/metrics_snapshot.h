// MetricsSnapshot: the values of all metrics at one moment; a plain value to keep, compare, or
// write as PrometheusText.
//
//   const MetricsSnapshot snapshot = hub.Snapshot(toolbox.Now());
//   const Metric* depth = snapshot.Find(kMailboxDepth, {{"type", "Greeter"}});
//
// | name                         | kind      | labels              | what                                               |
// |------------------------------|-----------|---------------------|----------------------------------------------------|
// | actor.mailbox.enqueued_total | counter   | type, perhaps actor | messages sent to actors of that type               |
// | actor.mailbox.depth          | gauge     | type, perhaps actor | of those, the ones that have not left the mailbox  |
// | scheduler.ready_queue.depth  | gauge     | as registered       | actors that wait for a worker                      |
// | scheduler.worker.busy_ratio  | gauge     | worker              | not parked, since the snapshot before: from 0 to 1 |
// | scheduler.invoke.duration_ms | histogram | type, perhaps actor | how long handlers of sampled messages ran          |
// | scheduler.latency_ms         | histogram |                     | from sending to the handler, of sampled messages   |
// | dead_letters_total           | counter   | reason              | messages that reached nobody                       |
//
// ObservabilityHub::AddGauge and AddMetric add further metrics; a node of a cluster does so
// (fraktor/cluster/grain/cluster_metrics.h).
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
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

inline constexpr std::string_view kMailboxEnqueued = "actor.mailbox.enqueued_total";
inline constexpr std::string_view kMailboxDepth = "actor.mailbox.depth";
inline constexpr std::string_view kReadyQueueDepth = "scheduler.ready_queue.depth";
inline constexpr std::string_view kWorkerBusyRatio = "scheduler.worker.busy_ratio";
inline constexpr std::string_view kInvokeDuration = "scheduler.invoke.duration_ms";
inline constexpr std::string_view kLatency = "scheduler.latency_ms";
inline constexpr std::string_view kDeadLettersTotal = "dead_letters_total";

// The type name for all types beyond the limit.
inline constexpr std::string_view kOtherTypesName = "other";

enum class MetricKind : uint8_t {
  kCounter,    // only goes up
  kGauge,      //
  kHistogram,  // has a summary and no value
};

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
  // A text for people. Empty for the metrics above, and for added metrics without one.
  std::string help = {};
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
