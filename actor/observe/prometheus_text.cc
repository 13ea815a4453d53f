#include "fraktor/actor/observe/prometheus_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

std::string_view HelpFor(const Metric& metric) {
  if (!metric.help.empty()) return metric.help;
  if (const MetricRow* const row = FindMetricRow(metric.name)) return row->help;
  return metric.kind == MetricKind::kCounter ? "A counter of the application." : "A gauge of the application.";
}

std::string_view TypeFor(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// Returns the shortest text that reads as the same number.
std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text;
  const std::to_chars_result result = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), result.ptr);
}

// Returns the number of bytes of the first character; 0 if it is invalid. By table 3-7 of the
// Unicode standard.
size_t Utf8Length(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) { return at(i) >= low && at(i) <= high; };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void AppendLabelValue(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const size_t length = Utf8Length(value);
    switch (value.front()) {
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        out += length == 0 ? std::string_view("\xEF\xBF\xBD") : value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendSample(std::string& out, std::string_view name, std::string_view suffix, const MetricLabels& labels,
                  std::string_view upper_bound, std::string_view value) {
  absl::StrAppend(&out, ToAbsl(name), ToAbsl(suffix));
  char separator = '{';
  for (const MetricLabel& label : labels) {
    out += separator;
    absl::StrAppend(&out, PrometheusName(label.name), "=\"");
    AppendLabelValue(out, label.value);
    out += '"';
    separator = ',';
  }
  if (!upper_bound.empty()) {
    out += separator;
    absl::StrAppend(&out, "le=\"", ToAbsl(upper_bound), "\"");
    separator = ',';
  }
  if (separator == ',') out += '}';
  absl::StrAppend(&out, " ", ToAbsl(value), "\n");
}

void AppendHistogram(std::string& out, std::string_view name, const Metric& metric) {
  const std::string count = absl::StrCat(metric.summary.count);
  for (const MetricSummary::Bucket& bucket : metric.summary.buckets) {
    AppendSample(out, name, "_bucket", metric.labels, Number(bucket.upper_ms), absl::StrCat(bucket.count));
  }
  AppendSample(out, name, "_bucket", metric.labels, "+Inf", count);
  AppendSample(out, name, "_sum", metric.labels, {}, Number(metric.summary.sum_ms));
  AppendSample(out, name, "_count", metric.labels, {}, count);
}

}  // namespace

std::string PrometheusName(std::string_view metric_name) {
  std::string name(metric_name);
  for (char& c : name) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!allowed) c = '_';
  }
  return name;
}

std::string ToPrometheusText(const MetricsSnapshot& snapshot) {
  std::string out;
  std::string_view family;
  std::string name;
  for (const Metric& metric : snapshot.metrics) {
    if (metric.name != family) {
      family = metric.name;
      name = PrometheusName(family);
      absl::StrAppend(&out, "# HELP ", name, " ", ToAbsl(HelpFor(metric)), "\n# TYPE ", name, " ",
                      ToAbsl(TypeFor(metric.kind)), "\n");
    }
    if (metric.kind == MetricKind::kHistogram) {
      AppendHistogram(out, name, metric);
    } else {
      AppendSample(out, name, {}, metric.labels, {}, Number(metric.value));
    }
  }
  return out;
}

}  // namespace fraktor::inline v0
