// MetricCounter and GaugeRegistration: metrics that an application adds to a hub. GaugeTable keeps
// them and is internal to the hub.
//
//   ObservabilityHub& hub = system.hub();
//   absl::StatusOr<MetricCounter> orders = hub.AddCounter("shop.orders_total", {{"region", "eu"}});
//   absl::StatusOr<GaugeRegistration> stock = hub.AddGauge("shop.stock", {}, [] { return 12.0; });
//   orders->Add();
//
// Thread safety: any thread may call anything.
#ifndef FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_
#define FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_

#include <atomic>
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

#include "fraktor/actor/observe/metric_table.h"
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
  // "messages", "ms" and so on, for readers of snapshots.
  std::string unit = {};
};

// Reads a gauge until it is destroyed. When the destructor returns, the function does not run and
// will not run again. A function may destroy its own registration: then that is its last run. May
// outlive the hub.
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

// A counter of the application, made by ObservabilityHub::AddCounter. Any thread may call Add: one
// relaxed addition.
class MetricCounter {
 public:
  MetricCounter(MetricCounter&&) = default;
  MetricCounter& operator=(MetricCounter&&) = default;

  void Add(uint64_t by = 1) { value_->fetch_add(by, std::memory_order_relaxed); }

 private:
  friend class ObservabilityHub;
  MetricCounter() = default;

  std::function<double()> Reader() const {
    return [value = value_] { return static_cast<double>(value->load(std::memory_order_relaxed)); };
  }

  // Statistics; it pairs with nothing.
  std::shared_ptr<std::atomic<uint64_t>> value_ = std::make_shared<std::atomic<uint64_t>>(0);
  GaugeRegistration registration_;
};

class GaugeTable : public std::enable_shared_from_this<GaugeTable> {
 public:
  // Longer texts and more labels are refused, so that one metric cannot fill the page.
  static constexpr size_t kMaxNameBytes = 200;
  static constexpr size_t kMaxLabels = 16;
  static constexpr size_t kMaxLabelValueBytes = 1024;
  static constexpr size_t kMaxHelpBytes = 1024;

  // `max_gauges` is the limit of all, `max_label_sets` that of one name.
  GaugeTable(size_t max_gauges, size_t max_label_sets) : max_gauges_(max_gauges), max_label_sets_(max_label_sets) {}
  GaugeTable(const GaugeTable&) = delete;
  GaugeTable& operator=(const GaugeTable&) = delete;

  // See ObservabilityHub::AddGauge.
  absl::StatusOr<GaugeRegistration> Add(ReadMetric metric);

  // Calls all functions, without the lock of the table.
  void AppendTo(std::vector<Metric>& metrics) const;

 private:
  friend class GaugeRegistration;

  struct Gauge {
    ReadMetric metric;
    std::string text_name;
  };

  void Remove(uint64_t number);

  const size_t max_gauges_;
  const size_t max_label_sets_;
  mutable Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Gauge> gauges_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_OBSERVE_GAUGE_TABLE_H_
