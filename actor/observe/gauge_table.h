// GaugeTable: metrics that others add: a name, labels, and a function that a snapshot calls.
// Internal to the hub; use ObservabilityHub::AddGauge and AddMetric.
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_
#define FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {

class GaugeTable;

// A metric that each snapshot reads.
struct ReadMetric {
  std::string name = {};
  MetricLabels labels = {};
  std::function<double()> read = nullptr;
  // A gauge, or a counter, which only increases.
  MetricKind kind = MetricKind::kGauge;
  // One line of text, the same for all labels.
  std::string help = {};
};

// Reads a gauge until it is destroyed. When the destructor returns, the function does not run and
// will not run again. May outlive the hub.
class GaugeRegistration {
 public:
  GaugeRegistration() = default;
  GaugeRegistration(GaugeRegistration&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), number_(other.number_) {}
  GaugeRegistration& operator=(GaugeRegistration&& other) noexcept;
  ~GaugeRegistration() { Reset(); }

  // Ends the registration now. Later calls do nothing.
  void Reset();

 private:
  friend class GaugeTable;
  GaugeRegistration(std::shared_ptr<GaugeTable> table, uint64_t number) : table_(std::move(table)), number_(number) {}

  std::shared_ptr<GaugeTable> table_;
  uint64_t number_ = 0;
};

class GaugeTable : public std::enable_shared_from_this<GaugeTable> {
 public:
  explicit GaugeTable(size_t max_gauges) : max_gauges_(max_gauges) {}
  GaugeTable(const GaugeTable&) = delete;
  GaugeTable& operator=(const GaugeTable&) = delete;

  // See ObservabilityHub::AddGauge.
  absl::StatusOr<GaugeRegistration> Add(ReadMetric metric);

  // Calls all functions while it holds the lock.
  void AppendTo(std::vector<Metric>& metrics) const;

 private:
  friend class GaugeRegistration;

  struct Gauge {
    ReadMetric metric;
    std::string text_name;
  };

  void Remove(uint64_t number);

  const size_t max_gauges_;
  mutable Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Gauge> gauges_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_
