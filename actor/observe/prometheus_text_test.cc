#include "fraktor/actor/observe/prometheus_text.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

#include "fraktor/actor/observe/duration_histogram.h"
#include "fraktor/actor/observe/metrics_snapshot.h"

namespace fraktor {
namespace {

std::string LineOf(const std::string& label_value) {
  const std::string text = ToPrometheusText({.metrics = {{.name = "g", .labels = {{"l", label_value}}, .value = 1}}});
  const size_t begin = text.find("\ng{") + 1;
  return text.substr(begin, text.size() - begin - 1);
}

// SCH-11
TEST(PrometheusText, WritesOneFamilyAfterTheOther) {
  const MetricsSnapshot snapshot{
      .metrics = {
          {.name = "actor.mailbox.depth", .labels = {{"type", "A"}}, .kind = MetricKind::kGauge, .value = 3},
          {.name = "actor.mailbox.depth",
           .labels = {{"actor", "/user/b"}, {"type", "B"}},
           .kind = MetricKind::kGauge,
           .value = 0.5},
          {.name = "dead_letters_total", .labels = {{"reason", "stopped"}}, .kind = MetricKind::kCounter, .value = 12},
          {.name = "my.own", .labels = {}, .kind = MetricKind::kGauge, .value = -1},
          {.name = "your.own_total",
           .labels = {},
           .kind = MetricKind::kCounter,
           .value = 2,
           .summary = {},
           .help = "What you count."},
          {.name = "z.own_total", .labels = {}, .kind = MetricKind::kCounter, .value = 1},
      }};
  EXPECT_EQ(ToPrometheusText(snapshot),
            "# HELP actor_mailbox_depth Messages that wait in the mailboxes of actors of a type.\n"
            "# TYPE actor_mailbox_depth gauge\n"
            "actor_mailbox_depth{type=\"A\"} 3\n"
            "actor_mailbox_depth{actor=\"/user/b\",type=\"B\"} 0.5\n"
            "# HELP dead_letters_total Messages that reached nobody, by reason.\n"
            "# TYPE dead_letters_total counter\n"
            "dead_letters_total{reason=\"stopped\"} 12\n"
            "# HELP my_own A gauge of the application.\n"
            "# TYPE my_own gauge\n"
            "my_own -1\n"
            "# HELP your_own_total What you count.\n"
            "# TYPE your_own_total counter\n"
            "your_own_total 2\n"
            "# HELP z_own_total A counter of the application.\n"
            "# TYPE z_own_total counter\n"
            "z_own_total 1\n");
}

// SCH-11
TEST(PrometheusText, WritesHistogramsWithCumulativeBuckets) {
  DurationHistogram histogram;
  histogram.Record(1'024);           // exactly the first bound
  histogram.Record(1'025);           // just above
  histogram.Record(60'000'000'000);  // above the last bound
  DurationTotals totals;
  histogram.AddTo(totals);
  const std::string text = ToPrometheusText({.metrics = {{.name = "scheduler.latency_ms",
                                                          .labels = {{"type", "A"}},
                                                          .kind = MetricKind::kHistogram,
                                                          .value = 0,
                                                          .summary = MetricSummary::Of(totals)}}});
  EXPECT_EQ(text,
            "# HELP scheduler_latency_ms Milliseconds from sending to the handler, of sampled messages.\n"
            "# TYPE scheduler_latency_ms histogram\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"0.001024\"} 1\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"0.004096\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"0.016384\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"0.065536\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"0.262144\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"1.048576\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"4.194304\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"16.777216\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"67.108864\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"268.435456\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"1073.741824\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"4294.967296\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"17179.869184\"} 2\n"
            "scheduler_latency_ms_bucket{type=\"A\",le=\"+Inf\"} 3\n"
            "scheduler_latency_ms_sum{type=\"A\"} 60000.002049\n"
            "scheduler_latency_ms_count{type=\"A\"} 3\n");
}

// SCH-11
TEST(PrometheusText, EscapesValuesOfLabels) {
  EXPECT_EQ(LineOf("plain"), "g{l=\"plain\"} 1");
  EXPECT_EQ(LineOf(""), "g{l=\"\"} 1");
  EXPECT_EQ(LineOf("a\"b\\c\nd"), "g{l=\"a\\\"b\\\\c\\nd\"} 1");
}

TEST(PrometheusText, KeepsUtf8AndReplacesWhatIsNone) {
  EXPECT_EQ(LineOf("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"), "g{l=\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"} 1");
  EXPECT_EQ(LineOf("a\xFF"
                   "b"),
            "g{l=\"a\xEF\xBF\xBD"
            "b\"} 1");
  EXPECT_EQ(LineOf("\xE2\x82"), "g{l=\"\xEF\xBF\xBD\xEF\xBF\xBD\"} 1");                  // truncated
  EXPECT_EQ(LineOf("\xC0\x80"), "g{l=\"\xEF\xBF\xBD\xEF\xBF\xBD\"} 1");                  // overlong
  EXPECT_EQ(LineOf("\xED\xA0\x80"), "g{l=\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"} 1");  // half of a surrogate pair
}

TEST(PrometheusText, WritesNumbersThatPrometheusReads) {
  const auto text = [](double value) {
    const std::string all = ToPrometheusText({.metrics = {{.name = "g", .labels = {}, .value = value}}});
    return all.substr(all.rfind(' ') + 1);
  };
  EXPECT_EQ(text(0.1), "0.1\n");
  EXPECT_EQ(text(9'007'199'254'740'991), "9007199254740991\n");
  EXPECT_EQ(text(std::numeric_limits<double>::quiet_NaN()), "NaN\n");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "+Inf\n");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "-Inf\n");
}

TEST(PrometheusText, IsEmptyForNothing) { EXPECT_EQ(ToPrometheusText({}), ""); }

}  // namespace
}  // namespace fraktor
