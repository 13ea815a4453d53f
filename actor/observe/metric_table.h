// The metrics of an actor system: one row for each. The snapshot, the text for Prometheus and
// docs/metrics.md come from these rows.
//
//   const MetricRow* row = FindMetricRow(kMailboxDepth);  // name, kind, unit, labels, help
//
// To add a counter of the runtime: write its name and its row here, with the values of its label,
// and call Count(CounterOf(name) + value) of WorkerMetrics or ForeignMetrics in the place that
// counts. //docs:metrics_page_test prints the line for the page. Metrics of other kinds need their
// row, and a function of ObservabilityHub that reads their values.
//
// An application adds metrics of its own by ObservabilityHub::AddCounter, AddGauge and AddMetric. A
// node of a cluster does (fraktor/cluster/grain/cluster_metrics.h).
#ifndef FRAKTOR_ACTOR_OBSERVE_METRIC_TABLE_H_
#define FRAKTOR_ACTOR_OBSERVE_METRIC_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fraktor/actor/event/dead_letter_reason.h"
#include "fraktor/actor/mailbox/overflow/overflow_answer.h"

namespace fraktor::inline v0 {

enum class MetricKind : uint8_t {
  kCounter,    // only goes up
  kGauge,      // goes up and down
  kHistogram,  // has a summary, and no value
};

struct MetricRow {
  std::string_view name = {};
  MetricKind kind = MetricKind::kGauge;
  std::string_view unit = {};
  // The names of its labels, for documentation.
  std::string_view labels = {};
  // One line of text.
  std::string_view help = {};
  // Whether the hub writes it. Others register the rest by AddGauge or AddMetric.
  bool is_of_hub = true;
  // A counter of the runtime: how many values its only label has, and their names. 0 for all
  // others.
  size_t label_values = 0;
  std::string_view (*label_value)(size_t index) = nullptr;
};

inline constexpr std::string_view kMailboxEnqueued = "actor.mailbox.enqueued_total";
inline constexpr std::string_view kMailboxDepth = "actor.mailbox.depth";
inline constexpr std::string_view kMailboxOverflow = "actor.mailbox.overflow_total";
inline constexpr std::string_view kReadyQueueDepth = "scheduler.ready_queue.depth";
inline constexpr std::string_view kWorkerBusyRatio = "scheduler.worker.busy_ratio";
inline constexpr std::string_view kInvokeDuration = "scheduler.invoke.duration_ms";
inline constexpr std::string_view kLatency = "scheduler.latency_ms";
inline constexpr std::string_view kDeadLettersTotal = "dead_letters_total";
inline constexpr std::string_view kLateDeadLettersTotal = "late_dead_letters_total";

inline constexpr auto kMetricTable = std::to_array<MetricRow>({
    {.name = kMailboxDepth,
     .kind = MetricKind::kGauge,
     .unit = "messages",
     .labels = "type, actor if it is observed alone",
     .help = "Messages that wait in the mailboxes of actors of a type."},
    {.name = kMailboxEnqueued,
     .kind = MetricKind::kCounter,
     .unit = "messages",
     .labels = "type, actor if it is observed alone",
     .help = "Messages sent to actors of a type."},
    {.name = kMailboxOverflow,
     .kind = MetricKind::kCounter,
     .unit = "messages",
     .labels = "answer",
     .help = "Messages that found a full mailbox, by what the overflow policy answered.",
     .label_values = kOverflowAnswerCount,
     .label_value = [](size_t index) { return NameOf(static_cast<OverflowAnswer>(index)); }},
    {.name = kDeadLettersTotal,
     .kind = MetricKind::kCounter,
     .unit = "messages",
     .labels = "reason",
     .help = "Messages that reached nobody, by reason.",
     .label_values = kDeadLetterReasonCount,
     .label_value = [](size_t index) { return NameOf(static_cast<DeadLetterReason>(index)); }},
    {.name = kLateDeadLettersTotal,
     .kind = MetricKind::kCounter,
     .unit = "messages",
     .help = "Messages that were sent to actor systems that had ended, in the whole process.",
     .is_of_hub = false},
    {.name = kInvokeDuration,
     .kind = MetricKind::kHistogram,
     .unit = "ms",
     .labels = "type, actor if it is observed alone",
     .help = "Milliseconds that handlers ran, of sampled messages."},
    {.name = kLatency,
     .kind = MetricKind::kHistogram,
     .unit = "ms",
     .help = "Milliseconds from sending to the handler, of sampled messages."},
    {.name = kReadyQueueDepth,
     .kind = MetricKind::kGauge,
     .unit = "actors",
     .labels = "dispatcher",
     .help = "Actors that wait for a worker.",
     .is_of_hub = false},
    {.name = kWorkerBusyRatio,
     .kind = MetricKind::kGauge,
     .unit = "from 0 to 1",
     .labels = "worker",
     .help = "Part of the time since the previous snapshot in which the worker was not parked."},
});

// The row of that name; null if the table has none.
constexpr const MetricRow* FindMetricRow(std::string_view name) {
  for (const MetricRow& row : kMetricTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// The counters of the runtime are numbered, one number for each value of a label. The number is an
// offset in the memory of each worker.
inline constexpr size_t kRuntimeCounters = [] {
  size_t counters = 0;
  for (const MetricRow& row : kMetricTable) counters += row.label_values;
  return counters;
}();

// The number of a counter's first label value; the others follow. Does not compile for a name that
// is no counter of the runtime.
consteval size_t CounterOf(std::string_view name) {
  size_t counters = 0;
  for (const MetricRow& row : kMetricTable) {
    if (row.name == name && row.label_values > 0) return counters;
    counters += row.label_values;
  }
  throw "the metric table has no counter of that name";
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_METRIC_TABLE_H_
