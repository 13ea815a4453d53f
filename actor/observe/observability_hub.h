// ObservabilityHub: the metrics of the scheduler, and snapshots of them.
//
//   absl::StatusOr<std::unique_ptr<ObservabilityHub>> hub = ObservabilityHub::Make({.sample_every = 1});
//   const ObservedId greeter = (*hub)->TypeId("Greeter");                     // once per type: keep it
//   absl::StatusOr<WorkerMetrics*> metrics = (*hub)->AddWorker("w-0", now);   // the counters of a worker
//   const MetricsSnapshot snapshot = (*hub)->Snapshot(toolbox.Now());         // metrics_snapshot.h has the names
//
// Recording takes no lock and no read-modify-write; see WorkerMetrics. The functions here are for
// start, end and snapshots. A hub that is off returns null for all metrics, gives every type the id
// 0, and has empty snapshots, so that recording tests one pointer.
//
// An actor that is observed alone has an id of its own instead of its type's id. In the snapshot it
// has a series of its own, and the series of its type includes it before, during and after that
// time: observing an actor changes no other series. Counts for an id after its release belong to
// the type, until another actor gets the id. The id that was released first is reused first, to
// make that rare.
//
// Memory of a hub that is on: 130 KiB for foreign threads, 66 KiB per worker, and the durations of
// WorkerMetrics.
//
// Thread safety: any thread may call anything. No call waits for a worker, and no worker waits.
#ifndef FRAKTOR_ACTOR_OBSERVE_OBSERVABILITY_HUB_H_
#define FRAKTOR_ACTOR_OBSERVE_OBSERVABILITY_HUB_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/observe/internal/foreign_metrics.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor::inline v0 {

struct ObservabilityOptions {
  bool enabled = true;
  // Each worker and each foreign thread samples one in `sample_every` of the messages that it
  // sends. 0 samples none, 1 all. At most kMaxSampleEvery.
  uint32_t sample_every = 256;
  // From 1 to 4096. Further workers are refused.
  size_t max_workers = 1024;
  // The number of types with counters; "other" counts all later types. From 1 to kObservedTypes.
  size_t max_types = actor_internal::kObservedTypes;
  // The number of types, the first ones, with durations of their own; "other" has the rest. From 1
  // to kObservedTypes.
  size_t max_timed_types = 256;
  // The number of actors that may be observed alone at one time. At most kObservedActors. Further
  // actors are refused.
  size_t max_actors = actor_internal::kObservedActors;
  // Metrics of others, each set of labels counted. At most 65536. A further one is refused.
  size_t max_gauges = 1024;
  // The sets of labels that one of those names may have. From 1 to 65536. A further one is refused.
  size_t max_label_sets = 256;

  static constexpr uint32_t kMaxSampleEvery = 1'000'000'000;

  // Returns InvalidArgument with the name of the first option that is out of its range.
  absl::Status Validate() const;
};

class ObservabilityHub {
 public:
  static absl::StatusOr<std::unique_ptr<ObservabilityHub>> Make(const ObservabilityOptions& options = {});
  ObservabilityHub(const ObservabilityHub&) = delete;
  ObservabilityHub& operator=(const ObservabilityHub&) = delete;
  ~ObservabilityHub();

  bool enabled() const { return options_.enabled; }

  // Returns the id of a type; kOtherTypes if there are too many types. Takes a lock: keep the
  // result.
  actor_internal::ObservedId TypeId(std::string_view type_name);

  // Observes one actor alone, until its id is released. ActorSystem::Observe calls it for actors.
  // ResourceExhausted if there are too many, AlreadyExists if the actor is observed already.
  // kOtherTypes if the hub is off.
  absl::StatusOr<actor_internal::ObservedId> RegisterActor(std::string_view type_name, std::string_view actor_name);
  // Returns false and does nothing if the id belongs to no observed actor.
  bool Release(actor_internal::ObservedId id);
  // The type of an id. "other" for an unused id.
  std::string TypeNameOf(actor_internal::ObservedId id);

  // Returns the counters of a worker that starts at `now`; null if the hub is off. Valid until
  // RemoveWorker. ResourceExhausted if there are too many, AlreadyExists if the name is in use.
  absl::StatusOr<actor_internal::WorkerMetrics*> AddWorker(std::string_view name, Instant now);
  // Removes a worker that has ended. Its counts stay in the totals. Null does nothing.
  void RemoveWorker(const actor_internal::WorkerMetrics* metrics);

  // The counters of all other threads; null if the hub is off.
  actor_internal::ForeignMetrics* foreign() { return foreign_; }

  // Calls `read` at each snapshot, in the thread that takes it, for as long as the registration
  // lives. If `read` throws, that snapshot does not have the metric. `read` must not take a
  // snapshot itself. It may add and remove other metrics: no lock of the hub is held. Errors:
  // InvalidArgument for an invalid name or a text that is too long (GaugeTable has the limits),
  // AlreadyExists if the name is taken with these labels, ResourceExhausted if there are too many.
  // If the hub is off, the registration is empty.
  absl::StatusOr<GaugeRegistration> AddGauge(std::string_view name, MetricLabels labels, std::function<double()> read);
  // A counter that the application increases. It is in the snapshots for as long as it lives.
  // Errors are those of AddGauge. If the hub is off, no snapshot has it.
  absl::StatusOr<MetricCounter> AddCounter(std::string_view name, MetricLabels labels, std::string_view help = {});
  // Adds what the two above add, with all that a metric can say. AlreadyExists as well if the name
  // is that of another kind.
  absl::StatusOr<GaugeRegistration> AddMetric(ReadMetric metric);

  // Changes ObservabilityOptions.sample_every. Workers see it within WorkerMetrics::kSampleStride
  // calls of Sample.
  absl::Status SetSampleEvery(uint32_t sample_every);

  // Returns all metrics. Ratios of workers are over the time since the last snapshot, or since the
  // worker was added; a snapshot at the same instant repeats them. Each counter is exact for some
  // moment during the call.
  MetricsSnapshot Snapshot(Instant now);

 private:
  // Counts that are in no worker's memory: those of workers that have ended, and those that were
  // moved from actors to types. Modulo 2^64: for an id whose actor was released it is minus the
  // count that the workers still show.
  struct Carried {
    uint64_t enqueued = 0;
    uint64_t handled = 0;
    uint64_t passed = 0;
    std::unique_ptr<DurationTotals> durations = nullptr;
  };
  struct WorkerRecord {
    std::unique_ptr<actor_internal::WorkerMetrics> metrics;
    Instant since;
    int64_t busy_ns = 0;
    double ratio = 0;
  };
  struct ActorRecord {
    std::string name;
    actor_internal::ObservedId type = actor_internal::kOtherTypes;
    bool observed = false;
  };
  using ActorKey = std::pair<actor_internal::ObservedId, std::string>;

  explicit ObservabilityHub(const ObservabilityOptions& options);

  actor_internal::ObservedId TypeIdLocked(std::string_view type_name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t EnqueuedLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HandledLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t PassedLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false if there are none.
  bool AddDurationsLocked(actor_internal::ObservedId id, DurationTotals& totals) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FoldLocked(actor_internal::ObservedId actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  DurationTotals& CarriedDurationsLocked(actor_internal::ObservedId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AppendMailboxesLocked(std::vector<Metric>& metrics) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendDurationsLocked(std::vector<Metric>& metrics) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendWorkersLocked(std::vector<Metric>& metrics, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendLatencyLocked(std::vector<Metric>& metrics) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendCountersLocked(std::vector<Metric>& metrics) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The ids that are or were in use.
  std::vector<actor_internal::ObservedId> IdsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The type of an id; the id itself if it is a type.
  actor_internal::ObservedId TypeOfLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSeriesLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MetricLabels LabelsLocked(actor_internal::ObservedId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ObservabilityOptions options_;
  // Sample reads it; a worker may use an old value for a while. Pairs with nothing.
  std::atomic<uint32_t> sample_every_;
  actor_internal::ForeignMetrics* const foreign_;  // null if the hub is off
  const std::shared_ptr<GaugeTable> gauges_;

  Mutex mutex_;
  std::vector<std::string> type_names_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, actor_internal::ObservedId> type_ids_ ABSL_GUARDED_BY(mutex_);
  // The index is the id minus kObservedTypes.
  std::vector<ActorRecord> actors_ ABSL_GUARDED_BY(mutex_);
  std::map<ActorKey, actor_internal::ObservedId> actor_ids_ ABSL_GUARDED_BY(mutex_);
  std::deque<actor_internal::ObservedId> released_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, WorkerRecord, std::less<>> workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Carried> carried_ ABSL_GUARDED_BY(mutex_);
  DurationTotals carried_latency_ ABSL_GUARDED_BY(mutex_);
  std::array<uint64_t, kRuntimeCounters> carried_counters_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_OBSERVABILITY_HUB_H_
