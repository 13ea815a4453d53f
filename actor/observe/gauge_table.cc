#include "fraktor/actor/observe/gauge_table.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

bool IsLetterOrUnderscore(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsLetterOrUnderscore(c) || (c >= '0' && c <= '9'); }

// An error text about a metric: "metric "a b": use letters ...".
std::string About(std::string_view name) { return absl::StrCat("metric ", QuotedForText(name), ": "); }

absl::Status CheckLength(std::string_view metric, std::string_view what, size_t bytes, size_t most) {
  if (bytes <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(About(metric), ToAbsl(what), " has ", bytes, " bytes; at most ", most, " are possible"));
}

absl::Status CheckName(std::string_view name) {
  FRAKTOR_RETURN_IF_ERROR(CheckLength(name, "the name", name.size(), GaugeTable::kMaxNameBytes));
  const bool good = !name.empty() && IsLetterOrUnderscore(name.front()) &&
                    std::all_of(name.begin(), name.end(), [](char c) { return IsWord(c) || c == '.'; });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(About(name), "use letters, digits, '_' and '.', beginning with a letter or '_'"));
}

absl::Status CheckLabels(std::string_view metric, const MetricLabels& labels) {
  if (labels.size() > GaugeTable::kMaxLabels) {
    return absl::InvalidArgumentError(absl::StrCat(About(metric), "it has ", labels.size(), " labels; at most ",
                                                   GaugeTable::kMaxLabels, " are possible"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string_view name = labels[i].name;
    FRAKTOR_RETURN_IF_ERROR(CheckLength(metric, "the name of a label", name.size(), GaugeTable::kMaxNameBytes));
    const bool good = !name.empty() && IsLetterOrUnderscore(name.front()) && name.substr(0, 2) != "__" &&
                      std::all_of(name.begin(), name.end(), IsWord);
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat(About(metric), "label ", QuotedForText(name),
                       ": use letters, digits and '_', beginning with a letter or a single '_'"));
    }
    if (i > 0 && name == labels[i - 1].name) {
      return absl::InvalidArgumentError(
          absl::StrCat(About(metric), "label ", QuotedForText(name), " is given twice; give each label once"));
    }
    FRAKTOR_RETURN_IF_ERROR(CheckLength(metric, absl::StrCat("the value of label ", QuotedForText(name)),
                                        labels[i].value.size(), GaugeTable::kMaxLabelValueBytes));
  }
  return absl::OkStatus();
}

// A read function that runs without the lock of the table, because it is code of the program and
// may take locks of the program. Its own lock lets End wait for it.
class Reading {
 public:
  explicit Reading(std::function<double()> read) : read_(std::move(read)) {}

  // Nothing after End, and if the function throws. Not inside the function itself.
  std::optional<double> Read() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (has_ended_) return std::nullopt;
    const Reading* const outer = std::exchange(read_by_this_thread_, this);
    const absl::Cleanup done = [outer] { read_by_this_thread_ = outer; };
    try {
      return read_();
    } catch (abi::__forced_unwind&) {
      throw;  // The thread is being cancelled.
    } catch (...) {
      return std::nullopt;
    }
  }

  // When it returns, the function does not run and will not run again. A function may end itself:
  // then that is its last run.
  void End() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (read_by_this_thread_ == this) {
      has_ended_ = true;  // Read holds the lock, on this thread.
      return;
    }
    std::function<double()> ended;  // Destroyed without the lock.
    MutexLock lock(mutex_);
    has_ended_ = true;
    ended = std::move(read_);
  }

 private:
  static constinit inline thread_local const Reading* read_by_this_thread_ = nullptr;

  Mutex mutex_;
  std::function<double()> read_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The function of a metric in the table: a reference to its Reading, which copies share.
struct SharedReading {
  std::shared_ptr<Reading> reading;
  double operator()() const { return reading->Read().value_or(0); }
};

Reading& ReadingOf(const ReadMetric& metric) { return *metric.read.target<SharedReading>()->reading; }

// Whether the hub writes a line of that name itself.
bool IsTakenByTheHub(std::string_view text_name) {
  for (const MetricRow& row : kMetricTable) {
    if (!row.is_of_hub) continue;
    const std::string own = PrometheusName(row.name);
    if (text_name == own) return true;
    if (row.kind != MetricKind::kHistogram) continue;
    for (const char* const suffix : {"_bucket", "_sum", "_count"}) {
      if (text_name == own + suffix) return true;
    }
  }
  return false;
}

}  // namespace

GaugeRegistration& GaugeRegistration::operator=(GaugeRegistration&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  table_ = std::exchange(other.table_, nullptr);
  number_ = other.number_;
  return *this;
}

void GaugeRegistration::Reset() {
  if (table_ == nullptr) return;
  std::exchange(table_, nullptr)->Remove(number_);
}

absl::StatusOr<GaugeRegistration> GaugeTable::Add(ReadMetric metric) {
  const std::string& name = metric.name;
  MetricLabels& labels = metric.labels;
  FRAKTOR_RETURN_IF_ERROR(CheckName(name));
  std::sort(labels.begin(), labels.end(), [](const MetricLabel& a, const MetricLabel& b) { return a.name < b.name; });
  FRAKTOR_RETURN_IF_ERROR(CheckLabels(name, labels));
  if (metric.read == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(About(name), "it has no function that reads it; set `read`"));
  }
  if (metric.kind == MetricKind::kHistogram) {
    return absl::InvalidArgumentError(
        absl::StrCat(About(name), "it is a histogram, but one value is read; use a counter or a gauge"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckLength(name, "its help", metric.help.size(), kMaxHelpBytes));
  if (metric.help.find_first_of("\n\\") != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(About(name), "its help is ", QuotedForText(metric.help), "; use one line without backslashes"));
  }
  std::string text_name = PrometheusName(name);
  if (IsTakenByTheHub(text_name)) {
    return absl::AlreadyExistsError(absl::StrCat(About(name), "the system has a metric of that name; use another one"));
  }
  if (const MetricRow* const row = FindMetricRow(name)) {
    if (metric.help.empty()) metric.help = row->help;
    if (metric.unit.empty()) metric.unit = row->unit;
  }
  MutexLock lock(mutex_);
  if (gauges_.size() >= max_gauges_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(About(name), "there are ", max_gauges_,
                     " metrics already; remove some, or raise ObservabilityOptions.max_gauges"));
  }
  size_t label_sets = 0;
  for (const auto& [number, other] : gauges_) {
    if (other.text_name != text_name) continue;
    if (other.metric.name != name) {
      return absl::AlreadyExistsError(absl::StrCat(About(name), "it reads like ", QuotedForText(other.metric.name),
                                                   " in Prometheus; use another name"));
    }
    if (other.metric.labels == labels) {
      return absl::AlreadyExistsError(
          absl::StrCat(About(name), "it exists with the same labels; use others, or remove it first"));
    }
    if (other.metric.kind != metric.kind) {
      return absl::AlreadyExistsError(
          absl::StrCat(About(name), "it is of another kind with other labels; use another name"));
    }
    ++label_sets;
  }
  if (label_sets >= max_label_sets_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(About(name), "it has ", max_label_sets_,
                     " sets of labels already; use fewer values, or raise ObservabilityOptions.max_label_sets"));
  }
  metric.read = SharedReading{std::make_shared<Reading>(std::move(metric.read))};
  const uint64_t number = next_number_++;
  gauges_.emplace(number, Gauge{.metric = std::move(metric), .text_name = std::move(text_name)});
  return GaugeRegistration(shared_from_this(), number);
}

void GaugeTable::AppendTo(std::vector<Metric>& metrics) const {
  std::vector<ReadMetric> all;
  {
    MutexLock lock(mutex_);
    all.reserve(gauges_.size());
    for (const auto& [number, gauge] : gauges_) all.push_back(gauge.metric);
  }
  for (ReadMetric& metric : all) {
    const std::optional<double> value = ReadingOf(metric).Read();
    if (!value.has_value()) continue;  // Removed meanwhile, or its function has thrown.
    Metric& row = metrics.emplace_back();
    row.name = std::move(metric.name);
    row.labels = std::move(metric.labels);
    row.kind = metric.kind;
    row.value = *value;
    row.help = std::move(metric.help);
    row.unit = std::move(metric.unit);
  }
}

void GaugeTable::Remove(uint64_t number) {
  ReadMetric ended;
  {
    MutexLock lock(mutex_);
    const auto found = gauges_.find(number);
    if (found == gauges_.end()) return;
    ended = std::move(found->second.metric);
    gauges_.erase(found);
  }
  ReadingOf(ended).End();
}

}  // namespace fraktor::inline v0
