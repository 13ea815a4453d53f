#include "fraktor/actor/observe/gauge_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/actor/path/path_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

bool IsLetterOrUnderscore(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsLetterOrUnderscore(c) || (c >= '0' && c <= '9'); }

absl::Status CheckName(std::string_view name) {
  const bool good = !name.empty() && IsLetterOrUnderscore(name.front()) &&
                    std::all_of(name.begin(), name.end(), [](char c) { return IsWord(c) || c == '.'; });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("gauge ", QuotedForText(name),
                                                 ": use letters, digits, '_' and '.', beginning with a letter or '_'"));
}

absl::Status CheckLabels(std::string_view gauge, const MetricLabels& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string_view name = labels[i].name;
    const bool good = !name.empty() && IsLetterOrUnderscore(name.front()) && name.substr(0, 2) != "__" &&
                      std::all_of(name.begin(), name.end(), IsWord);
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat("gauge ", QuotedForText(gauge), ": label ", QuotedForText(name),
                       ": use letters, digits and '_', beginning with a letter or a single '_'"));
    }
    if (i > 0 && name == labels[i - 1].name) {
      return absl::InvalidArgumentError(absl::StrCat("gauge ", QuotedForText(gauge), ": label ", QuotedForText(name),
                                                     " is given twice; give each label once"));
    }
  }
  return absl::OkStatus();
}

// Returns whether the hub itself writes a metric of this name. Not kReadyQueueDepth: the owner of
// such a queue registers it.
bool IsTakenByTheHub(std::string_view text_name) {
  for (const std::string_view counter : {kMailboxEnqueued, kMailboxDepth, kWorkerBusyRatio, kDeadLettersTotal}) {
    if (text_name == PrometheusName(counter)) return true;
  }
  for (const std::string_view histogram : {kInvokeDuration, kLatency}) {
    const std::string own = PrometheusName(histogram);
    for (const char* const suffix : {"", "_bucket", "_sum", "_count"}) {
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
    return absl::InvalidArgumentError(absl::StrCat("gauge ", QuotedForText(name), " has no function to read it"));
  }
  if (metric.kind == MetricKind::kHistogram) {
    return absl::InvalidArgumentError(
        absl::StrCat("gauge ", QuotedForText(name), " is a histogram; one value is read"));
  }
  if (metric.help.find_first_of("\n\\") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("gauge ", QuotedForText(name), ": help ", QuotedForText(metric.help),
                                                   ": use one line without backslashes"));
  }
  std::string text_name = PrometheusName(name);
  if (IsTakenByTheHub(text_name)) {
    return absl::AlreadyExistsError(
        absl::StrCat("gauge ", QuotedForText(name), " has the name of a metric of the scheduler; use another one"));
  }
  MutexLock lock(mutex_);
  if (gauges_.size() >= max_gauges_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("gauge ", QuotedForText(name), ": there are ", max_gauges_,
                     " already; remove some, or raise ObservabilityOptions.max_gauges"));
  }
  for (const auto& [number, other] : gauges_) {
    if (other.text_name != text_name) continue;
    if (other.metric.name != name) {
      return absl::AlreadyExistsError(absl::StrCat("gauge ", QuotedForText(name), " reads like ",
                                                   QuotedForText(other.metric.name),
                                                   " in Prometheus; use another name"));
    }
    if (other.metric.labels == labels) {
      return absl::AlreadyExistsError(
          absl::StrCat("gauge ", QuotedForText(name), " exists with the same labels; use others, or remove it first"));
    }
    if (other.metric.kind != metric.kind) {
      return absl::AlreadyExistsError(
          absl::StrCat("gauge ", QuotedForText(name), " is of another kind with other labels; use another name"));
    }
  }
  const uint64_t number = next_number_++;
  gauges_.emplace(number, Gauge{.metric = std::move(metric), .text_name = std::move(text_name)});
  return GaugeRegistration(shared_from_this(), number);
}

void GaugeTable::AppendTo(std::vector<Metric>& metrics) const {
  MutexLock lock(mutex_);
  for (const auto& [number, gauge] : gauges_) {
    const ReadMetric& metric = gauge.metric;
    const double value = metric.read();
    Metric& row = metrics.emplace_back();
    row.name = metric.name;
    row.labels = metric.labels;
    row.kind = metric.kind;
    row.value = value;
    row.help = metric.help;
  }
}

void GaugeTable::Remove(uint64_t number) {
  std::function<double()> ended;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = gauges_.find(number);
  if (found == gauges_.end()) return;
  ended = std::move(found->second.metric.read);
  gauges_.erase(found);
}

}  // namespace fraktor::inline v0
