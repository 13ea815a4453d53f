#include "fraktor/actor/observe/observability_hub.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/observe/internal/foreign_metrics.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

using actor_internal::ForeignMetrics;
using actor_internal::IsObservedActor;
using actor_internal::kObservedActors;
using actor_internal::kObservedIds;
using actor_internal::kObservedTypes;
using actor_internal::kOtherTypes;
using actor_internal::ObservedId;
using actor_internal::WorkerMetrics;

namespace {

absl::Status CheckRange(const char* option, size_t value, size_t least, size_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ObservabilityOptions.", option, " is ", value, "; it must be from ", least, " to ", most));
}

// A value that is read while others count may be slightly too low.
double Depth(uint64_t enqueued, uint64_t handled) {
  return enqueued > handled ? static_cast<double>(enqueued - handled) : 0;
}

// A metric of kMetricTable, without a value yet.
Metric OfTable(const MetricRow& row, MetricLabels labels) {
  return {.name = std::string(row.name),
          .labels = std::move(labels),
          .kind = row.kind,
          .help = std::string(row.help),
          .unit = std::string(row.unit)};
}
Metric OfTable(std::string_view name, MetricLabels labels, double value) {
  Metric metric = OfTable(*FindMetricRow(name), std::move(labels));
  metric.value = value;
  return metric;
}
Metric OfTable(std::string_view name, MetricLabels labels, const DurationTotals& totals) {
  Metric metric = OfTable(*FindMetricRow(name), std::move(labels));
  metric.summary = MetricSummary::Of(totals);
  return metric;
}

bool ComesBefore(const Metric& a, const Metric& b) {
  if (a.name != b.name) return a.name < b.name;
  return std::lexicographical_compare(a.labels.begin(), a.labels.end(), b.labels.begin(), b.labels.end(),
                                      [](const MetricLabel& x, const MetricLabel& y) {
                                        return x.name != y.name ? x.name < y.name : x.value < y.value;
                                      });
}

}  // namespace

absl::Status ObservabilityOptions::Validate() const {
  FRAKTOR_RETURN_IF_ERROR(CheckRange("sample_every", sample_every, 0, kMaxSampleEvery));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_workers", max_workers, 1, 4096));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_types", max_types, 1, kObservedTypes));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_timed_types", max_timed_types, 1, kObservedTypes));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_actors", max_actors, 0, kObservedActors));
  FRAKTOR_RETURN_IF_ERROR(CheckRange("max_gauges", max_gauges, 0, 65'536));
  return CheckRange("max_label_sets", max_label_sets, 1, 65'536);
}

absl::StatusOr<std::unique_ptr<ObservabilityHub>> ObservabilityHub::Make(const ObservabilityOptions& options) {
  FRAKTOR_RETURN_IF_ERROR(options.Validate());
  return std::unique_ptr<ObservabilityHub>(new ObservabilityHub(options));
}

ObservabilityHub::ObservabilityHub(const ObservabilityOptions& options)
    : options_(options),
      sample_every_(options.sample_every),
      foreign_(options.enabled ? ForeignMetrics::Acquire(options.sample_every) : nullptr),
      gauges_(options.enabled ? std::make_shared<GaugeTable>(options.max_gauges, options.max_label_sets) : nullptr) {
  if (!options.enabled) return;
  carried_.resize(kObservedIds);
  type_names_.emplace_back(kOtherTypesName);
  type_ids_.emplace(std::string(kOtherTypesName), kOtherTypes);
}

ObservabilityHub::~ObservabilityHub() {
  if (foreign_ != nullptr) ForeignMetrics::Release(foreign_);
}

ObservedId ObservabilityHub::TypeId(std::string_view type_name) {
  if (!enabled()) return kOtherTypes;
  MutexLock lock(mutex_);
  return TypeIdLocked(type_name);
}

ObservedId ObservabilityHub::TypeIdLocked(std::string_view type_name) {
  const auto found = type_ids_.find(std::string(type_name));
  if (found != type_ids_.end()) return found->second;
  if (type_names_.size() >= options_.max_types) return kOtherTypes;
  const auto id = static_cast<ObservedId>(type_names_.size());
  type_names_.emplace_back(type_name);
  type_ids_.emplace(std::string(type_name), id);
  return id;
}

absl::StatusOr<ObservedId> ObservabilityHub::RegisterActor(std::string_view type_name, std::string_view actor_name) {
  if (!enabled()) return kOtherTypes;
  MutexLock lock(mutex_);
  const ObservedId type = TypeIdLocked(type_name);
  ActorKey key(type, actor_name);
  if (actor_ids_.count(key) != 0) {
    return absl::AlreadyExistsError(absl::StrCat("actor ", QuotedForText(actor_name), " of type ",
                                                 QuotedForText(type_name), " is observed already; release it first"));
  }
  if (actor_ids_.size() >= options_.max_actors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "actor ", QuotedForText(actor_name), " of type ", QuotedForText(type_name), ": ", options_.max_actors,
        " actors are observed already; release some, or raise ObservabilityOptions.max_actors"));
  }
  ObservedId id;
  // Uses up all ids before it reuses one, so that each id rests as long as possible.
  if (actors_.size() < kObservedActors) {
    id = static_cast<ObservedId>(kObservedTypes + actors_.size());
    actors_.emplace_back();
  } else {
    id = released_.front();
    released_.pop_front();
    FoldLocked(id);
  }
  actors_[id - kObservedTypes] = {.name = std::string(actor_name), .type = type, .observed = true};
  actor_ids_.emplace(std::move(key), id);
  return id;
}

bool ObservabilityHub::Release(ObservedId id) {
  if (!enabled() || !IsObservedActor(id)) return false;
  MutexLock lock(mutex_);
  const size_t index = id - kObservedTypes;
  if (index >= actors_.size() || !actors_[index].observed) return false;
  ActorRecord& actor = actors_[index];
  FoldLocked(id);
  actor_ids_.erase(ActorKey(actor.type, actor.name));
  actor.observed = false;
  actor.name.clear();
  released_.push_back(id);
  return true;
}

std::string ObservabilityHub::TypeNameOf(ObservedId id) {
  MutexLock lock(mutex_);
  const bool is_known = IsObservedActor(id) ? id - kObservedTypes < actors_.size() : id < type_names_.size();
  return is_known ? type_names_[TypeOfLocked(id)] : std::string(kOtherTypesName);
}

absl::StatusOr<WorkerMetrics*> ObservabilityHub::AddWorker(std::string_view name, Instant now) {
  if (!enabled()) return static_cast<WorkerMetrics*>(nullptr);
  MutexLock lock(mutex_);
  if (workers_.find(name) != workers_.end()) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker ", QuotedForText(name), " exists already; give each worker a name of its own"));
  }
  if (workers_.size() >= options_.max_workers) {
    return absl::ResourceExhaustedError(absl::StrCat("worker ", QuotedForText(name), ": there are ",
                                                     options_.max_workers,
                                                     " already; raise ObservabilityOptions.max_workers"));
  }
  auto metrics = std::make_unique<WorkerMetrics>(sample_every_, options_.max_timed_types);
  WorkerMetrics* const worker = metrics.get();
  workers_.emplace(std::string(name), WorkerRecord{.metrics = std::move(metrics), .since = now});
  return worker;
}

void ObservabilityHub::RemoveWorker(const WorkerMetrics* metrics) {
  if (metrics == nullptr) return;
  MutexLock lock(mutex_);
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [&](const auto& entry) { return entry.second.metrics.get() == metrics; });
  if (found == workers_.end()) return;
  for (size_t i = 0; i < kObservedIds; ++i) {
    const auto id = static_cast<ObservedId>(i);
    carried_[i].enqueued += metrics->enqueued(id);
    carried_[i].handled += metrics->handled(id);
    carried_[i].passed += metrics->passed(id);
    const DurationHistogram* const durations = metrics->durations(id);
    if (durations != nullptr) durations->AddTo(CarriedDurationsLocked(id));
  }
  metrics->latency().AddTo(carried_latency_);
  for (size_t i = 0; i < kRuntimeCounters; ++i) carried_counters_[i] += metrics->count(i);
  workers_.erase(found);
}

absl::StatusOr<GaugeRegistration> ObservabilityHub::AddGauge(std::string_view name, MetricLabels labels,
                                                             std::function<double()> read) {
  return AddMetric({.name = std::string(name), .labels = std::move(labels), .read = std::move(read)});
}

absl::StatusOr<MetricCounter> ObservabilityHub::AddCounter(std::string_view name, MetricLabels labels,
                                                           std::string_view help) {
  MetricCounter counter;
  FRAKTOR_ASSIGN_OR_RETURN(counter.registration_, AddMetric({.name = std::string(name),
                                                             .labels = std::move(labels),
                                                             .read = counter.Reader(),
                                                             .kind = MetricKind::kCounter,
                                                             .help = std::string(help)}));
  return counter;
}

absl::StatusOr<GaugeRegistration> ObservabilityHub::AddMetric(ReadMetric metric) {
  if (!enabled()) return GaugeRegistration();
  return gauges_->Add(std::move(metric));
}

absl::Status ObservabilityHub::SetSampleEvery(uint32_t sample_every) {
  FRAKTOR_RETURN_IF_ERROR(CheckRange("sample_every", sample_every, 0, ObservabilityOptions::kMaxSampleEvery));
  sample_every_.store(sample_every, std::memory_order_relaxed);
  if (foreign_ != nullptr) foreign_->SetSampleEvery(sample_every);
  return absl::OkStatus();
}

MetricsSnapshot ObservabilityHub::Snapshot(Instant now) {
  MetricsSnapshot snapshot{.at = now};
  if (!enabled()) return snapshot;
  {
    MutexLock lock(mutex_);
    AppendMailboxesLocked(snapshot.metrics);
    AppendDurationsLocked(snapshot.metrics);
    AppendWorkersLocked(snapshot.metrics, now);
    AppendLatencyLocked(snapshot.metrics);
    AppendCountersLocked(snapshot.metrics);
  }
  gauges_->AppendTo(snapshot.metrics);
  std::sort(snapshot.metrics.begin(), snapshot.metrics.end(), ComesBefore);
  return snapshot;
}

void ObservabilityHub::AppendMailboxesLocked(std::vector<Metric>& metrics) const {
  const std::vector<ObservedId> ids = IdsLocked();
  std::vector<uint64_t> handled(kObservedIds);
  std::vector<uint64_t> enqueued(kObservedIds);
  std::vector<uint64_t> passed(kObservedIds);
  // A message is usually counted as enqueued first. Enqueued counts are read last, so that a depth
  // is rather too high than too low.
  for (const ObservedId id : ids) handled[id] = HandledLocked(id);
  for (const ObservedId id : ids) enqueued[id] = EnqueuedLocked(id);
  for (const ObservedId id : ids) passed[id] = PassedLocked(id);
  for (const ObservedId id : ids) {
    if (!IsObservedActor(id)) continue;
    handled[TypeOfLocked(id)] += handled[id];
    enqueued[TypeOfLocked(id)] += enqueued[id];
    passed[TypeOfLocked(id)] += passed[id];
  }
  for (const ObservedId id : ids) {
    if (!HasSeriesLocked(id)) continue;
    metrics.push_back(OfTable(kMailboxEnqueued, LabelsLocked(id), static_cast<double>(enqueued[id] + passed[id])));
    metrics.push_back(OfTable(kMailboxDepth, LabelsLocked(id), Depth(enqueued[id], handled[id])));
  }
}

void ObservabilityHub::AppendDurationsLocked(std::vector<Metric>& metrics) const {
  std::vector<std::unique_ptr<DurationTotals>> by_type(type_names_.size());
  const auto append = [&](ObservedId id, const DurationTotals& totals) {
    mutex_.AssertHeld();
    metrics.push_back(OfTable(kInvokeDuration, LabelsLocked(id), totals));
  };
  for (const ObservedId id : IdsLocked()) {
    DurationTotals totals;
    if (!AddDurationsLocked(id, totals) || totals.count() == 0) continue;
    std::unique_ptr<DurationTotals>& of_type = by_type[TypeOfLocked(id)];
    if (of_type == nullptr) of_type = std::make_unique<DurationTotals>();
    *of_type += totals;
    if (IsObservedActor(id) && HasSeriesLocked(id)) append(id, totals);
  }
  for (size_t type = 0; type < by_type.size(); ++type) {
    if (by_type[type] != nullptr) append(static_cast<ObservedId>(type), *by_type[type]);
  }
}

void ObservabilityHub::AppendWorkersLocked(std::vector<Metric>& metrics, Instant now) {
  for (auto& [name, worker] : workers_) {
    if (now > worker.since) {
      const int64_t busy_ns = worker.metrics->BusyNs(now.nanoseconds());
      const int64_t elapsed_ns = now.nanoseconds() - worker.since.nanoseconds();
      // A worker that reads its clock after the caller is slightly ahead.
      worker.ratio =
          std::clamp(static_cast<double>(busy_ns - worker.busy_ns) / static_cast<double>(elapsed_ns), 0.0, 1.0);
      worker.busy_ns = busy_ns;
      worker.since = now;
    }
    metrics.push_back(OfTable(kWorkerBusyRatio, {{"worker", name}}, worker.ratio));
  }
}

void ObservabilityHub::AppendLatencyLocked(std::vector<Metric>& metrics) const {
  DurationTotals totals = carried_latency_;
  for (const auto& [name, worker] : workers_) worker.metrics->latency().AddTo(totals);
  metrics.push_back(OfTable(kLatency, {}, totals));
}

void ObservabilityHub::AppendCountersLocked(std::vector<Metric>& metrics) const {
  size_t counter = 0;
  for (const MetricRow& row : kMetricTable) {
    for (size_t i = 0; i < row.label_values; ++i, ++counter) {
      uint64_t count = carried_counters_[counter] + foreign_->count(counter);
      for (const auto& [name, worker] : workers_) count += worker.metrics->count(counter);
      metrics.push_back(OfTable(row, {{std::string(row.labels), std::string(row.label_value(i))}}));
      metrics.back().value = static_cast<double>(count);
    }
  }
}

uint64_t ObservabilityHub::EnqueuedLocked(ObservedId id) const {
  uint64_t sum = carried_[id].enqueued + foreign_->enqueued(id);
  for (const auto& [name, worker] : workers_) sum += worker.metrics->enqueued(id);
  return sum;
}

uint64_t ObservabilityHub::HandledLocked(ObservedId id) const {
  uint64_t sum = carried_[id].handled + foreign_->handled(id);
  for (const auto& [name, worker] : workers_) sum += worker.metrics->handled(id);
  return sum;
}

uint64_t ObservabilityHub::PassedLocked(ObservedId id) const {
  uint64_t sum = carried_[id].passed;
  for (const auto& [name, worker] : workers_) sum += worker.metrics->passed(id);
  return sum;
}

bool ObservabilityHub::AddDurationsLocked(ObservedId id, DurationTotals& totals) const {
  bool any = carried_[id].durations != nullptr;
  if (any) totals += *carried_[id].durations;
  for (const auto& [name, worker] : workers_) {
    const DurationHistogram* const durations = worker.metrics->durations(id);
    if (durations == nullptr) continue;
    durations->AddTo(totals);
    any = true;
  }
  return any;
}

// Counters have one writer, so they are not reset: carried_ subtracts the counts that moved to the
// type.
void ObservabilityHub::FoldLocked(ObservedId actor) {
  const ObservedId type = TypeOfLocked(actor);
  const uint64_t enqueued = EnqueuedLocked(actor);
  const uint64_t handled = HandledLocked(actor);
  const uint64_t passed = PassedLocked(actor);
  carried_[type].enqueued += enqueued;
  carried_[type].handled += handled;
  carried_[type].passed += passed;
  carried_[actor].enqueued -= enqueued;
  carried_[actor].handled -= handled;
  carried_[actor].passed -= passed;
  DurationTotals durations;
  if (!AddDurationsLocked(actor, durations)) return;
  CarriedDurationsLocked(type) += durations;
  CarriedDurationsLocked(actor) -= durations;
}

DurationTotals& ObservabilityHub::CarriedDurationsLocked(ObservedId id) {
  std::unique_ptr<DurationTotals>& durations = carried_[id].durations;
  if (durations == nullptr) durations = std::make_unique<DurationTotals>();
  return *durations;
}

std::vector<ObservedId> ObservabilityHub::IdsLocked() const {
  std::vector<ObservedId> ids;
  ids.reserve(type_names_.size() + actors_.size());
  for (size_t i = 0; i < type_names_.size(); ++i) ids.push_back(static_cast<ObservedId>(i));
  for (size_t i = 0; i < actors_.size(); ++i) ids.push_back(static_cast<ObservedId>(kObservedTypes + i));
  return ids;
}

ObservedId ObservabilityHub::TypeOfLocked(ObservedId id) const {
  return IsObservedActor(id) ? actors_[id - kObservedTypes].type : id;
}

bool ObservabilityHub::HasSeriesLocked(ObservedId id) const {
  return !IsObservedActor(id) || actors_[id - kObservedTypes].observed;
}

MetricLabels ObservabilityHub::LabelsLocked(ObservedId id) const {
  MetricLabels labels;
  if (IsObservedActor(id)) labels.push_back({"actor", actors_[id - kObservedTypes].name});
  labels.push_back({"type", type_names_[TypeOfLocked(id)]});
  return labels;
}

}  // namespace fraktor::inline v0
