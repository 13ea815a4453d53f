// Holds docs/metrics.md and the table of metrics together.
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/utils/strings/string_view.h"

namespace fraktor {
namespace {

std::string_view NameOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "unknown";
}

std::string LineOf(const MetricRow& row) {
  std::string labels(row.labels);
  for (size_t i = 0; i < row.label_values; ++i) {
    absl::StrAppend(&labels, i == 0 ? ": " : ", ", ToAbsl(row.label_value(i)));
  }
  return absl::StrCat("| `", ToAbsl(row.name), "` | ", ToAbsl(NameOf(row.kind)), " | ", ToAbsl(row.unit), " | ", labels,
                      " | ", ToAbsl(row.help), " |");
}

// SCH-11
TEST(MetricsPage, HasOneLineForEachRowOfTheTable) {
  std::ifstream page("docs/metrics.md");
  ASSERT_TRUE(page.is_open());
  std::set<std::string> lines;
  for (std::string line; std::getline(page, line);) {
    if (line.substr(0, 3) == "| `") lines.insert(line);
  }
  for (const MetricRow& row : kMetricTable) {
    EXPECT_EQ(lines.erase(LineOf(row)), 1u) << "docs/metrics.md must have the line\n" << LineOf(row);
  }
  for (const std::string& line : lines) ADD_FAILURE() << "docs/metrics.md has a line of no metric:\n" << line;
}

// SCH-11
TEST(MetricsPage, HasATableInWhichEachMetricSaysWhatItIs) {
  std::set<std::string_view> names;
  for (const MetricRow& row : kMetricTable) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is in the table twice";
    EXPECT_FALSE(row.help.empty()) << row.name;
    EXPECT_FALSE(row.unit.empty()) << row.name;
    EXPECT_EQ(row.label_values > 0, row.label_value != nullptr) << row.name;
    if (row.label_values > 0) {
      EXPECT_EQ(row.kind, MetricKind::kCounter) << row.name;
    }
  }
}

}  // namespace
}  // namespace fraktor
