#include "fraktor/actor/observe/observability_hub.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/observe/gauge_table.h"
#include "fraktor/actor/observe/internal/foreign_metrics.h"
#include "fraktor/actor/observe/internal/observed_id.h"
#include "fraktor/actor/observe/internal/worker_metrics.h"
#include "fraktor/actor/observe/metric_table.h"
#include "fraktor/actor/observe/metrics_snapshot.h"
#include "fraktor/actor/observe/prometheus_text.h"
#include "fraktor/utils/time/instant.h"

namespace fraktor {

using actor_internal::IsObservedActor;
using actor_internal::kObservedActors;
using actor_internal::kObservedIds;
using actor_internal::kObservedTypes;
using actor_internal::kOtherTypes;
using actor_internal::ObservedId;
using actor_internal::WorkerMetrics;

namespace {

std::unique_ptr<ObservabilityHub> MakeHub(const ObservabilityOptions& options = {}) {
  return *ObservabilityHub::Make(options);
}

Instant At(absl::Duration since_start) { return Instant() + since_start; }

// Returns -1 if there is none.
double ValueOf(const MetricsSnapshot& snapshot, std::string_view name, const MetricLabels& labels = {}) {
  const Metric* const metric = snapshot.Find(name, labels);
  return metric == nullptr ? -1 : metric->value;
}

uint64_t SamplesOf(const MetricsSnapshot& snapshot, std::string_view name, const MetricLabels& labels = {}) {
  const Metric* const metric = snapshot.Find(name, labels);
  return metric == nullptr ? 0 : metric->summary.count;
}

int CountTrue(WorkerMetrics& worker, int calls) {
  int sampled = 0;
  for (int i = 0; i < calls; ++i) sampled += worker.Sample() ? 1 : 0;
  return sampled;
}

// SCH-11
TEST(ObservabilityHub, HasEveryMetricByItsName) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w-0", At(absl::ZeroDuration()));
  const GaugeRegistration gauge = *hub->AddGauge("scheduler.ready_queue.depth", {}, [] { return 7.0; });
  const GaugeRegistration late = *hub->AddMetric(
      {.name = std::string(kLateDeadLettersTotal), .read = [] { return 2.0; }, .kind = MetricKind::kCounter});
  const ObservedId greeter = hub->TypeId("Greeter");
  worker->BeginBusy(0);
  for (int i = 0; i < 5; ++i) worker->CountEnqueued(greeter, 1);
  worker->CountHandled(greeter, 3);
  worker->CountDeadLetter(DeadLetterReason::kMailboxFull);
  worker->RecordDuration(greeter, 2'000'000);
  worker->RecordLatency(500'000);
  worker->EndBusy(250'000'000);

  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(snapshot.at, At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, "actor.mailbox.enqueued_total", {{"type", "Greeter"}}), 5);
  EXPECT_EQ(ValueOf(snapshot, "actor.mailbox.depth", {{"type", "Greeter"}}), 2);
  EXPECT_EQ(ValueOf(snapshot, "scheduler.ready_queue.depth"), 7);
  EXPECT_DOUBLE_EQ(ValueOf(snapshot, "scheduler.worker.busy_ratio", {{"worker", "w-0"}}), 0.25);
  EXPECT_EQ(ValueOf(snapshot, "dead_letters_total", {{"reason", "mailbox_full"}}), 1);
  EXPECT_EQ(ValueOf(snapshot, "dead_letters_total", {{"reason", "stopped"}}), 0);

  const Metric* const duration = snapshot.Find("scheduler.invoke.duration_ms", {{"type", "Greeter"}});
  ASSERT_NE(duration, nullptr);
  EXPECT_EQ(duration->kind, MetricKind::kHistogram);
  EXPECT_EQ(duration->summary.count, 1u);
  EXPECT_DOUBLE_EQ(duration->summary.sum_ms, 2);
  EXPECT_NEAR(duration->summary.p50_ms, 2, 0.25);
  EXPECT_NEAR(duration->summary.p99_ms, 2, 0.25);
  const Metric* const latency = snapshot.Find("scheduler.latency_ms");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->summary.count, 1u);
  EXPECT_NEAR(latency->summary.p95_ms, 0.5, 0.0625);

  std::set<std::string> names;
  for (const Metric& metric : snapshot.metrics) names.insert(metric.name);
  std::set<std::string> rows;
  for (const MetricRow& row : kMetricTable) rows.insert(std::string(row.name));
  EXPECT_EQ(names, rows);
  for (const Metric& metric : snapshot.metrics) {
    const MetricRow* const row = FindMetricRow(metric.name);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(metric.kind, row->kind) << metric.name;
    EXPECT_EQ(metric.help, row->help) << metric.name;
    EXPECT_EQ(metric.unit, row->unit) << metric.name;
  }
}

// SCH-11
TEST(ObservabilityHub, HasOneSeriesForEachReason) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", At(absl::ZeroDuration()));
  for (size_t i = 0; i < kDeadLetterReasonCount; ++i) {
    for (size_t n = 0; n <= i; ++n) worker->CountDeadLetter(static_cast<DeadLetterReason>(i));
    hub->foreign()->CountDeadLetter(static_cast<DeadLetterReason>(i));
  }
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  for (size_t i = 0; i < kDeadLetterReasonCount; ++i) {
    const std::string reason(NameOf(static_cast<DeadLetterReason>(i)));
    EXPECT_EQ(ValueOf(snapshot, kDeadLettersTotal, {{"reason", reason}}), static_cast<double>(i + 2)) << reason;
  }
}

// SCH-11
TEST(ObservabilityHub, ListsMetricsByNameAndLabels) {
  const auto hub = MakeHub();
  for (const char* const type : {"Zebra", "Ant", "Mole"}) hub->TypeId(type);
  for (const char* const worker : {"w-1", "w-0"}) ASSERT_TRUE(hub->AddWorker(worker, Instant()).ok());
  const GaugeRegistration b = *hub->AddGauge("b", {{"z", "1"}, {"a", "2"}}, [] { return 1.0; });
  const GaugeRegistration a = *hub->AddGauge("b", {{"a", "1"}, {"z", "1"}}, [] { return 2.0; });
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  for (size_t i = 1; i < snapshot.metrics.size(); ++i) {
    const Metric& before = snapshot.metrics[i - 1];
    const Metric& after = snapshot.metrics[i];
    EXPECT_LE(before.name, after.name);
    if (before.name == after.name) {
      EXPECT_LT(before.labels.front().value, after.labels.front().value);
    }
  }
  EXPECT_EQ(ToPrometheusText(snapshot), ToPrometheusText(hub->Snapshot(At(absl::Seconds(2)))));
}

// SCH-11
TEST(ObservabilityHub, AddsUpWorkersAndOtherThreads) {
  const auto hub = MakeHub();
  const ObservedId type = hub->TypeId("T");
  WorkerMetrics* const first = *hub->AddWorker("w-0", Instant());
  WorkerMetrics* const second = *hub->AddWorker("w-1", Instant());
  first->CountEnqueued(type, 1);
  second->CountEnqueued(type, 1);
  second->CountHandled(type, 2);
  std::vector<std::thread> others;
  for (int t = 0; t < 6; ++t) {
    others.emplace_back([&] {
      for (int i = 0; i < 100; ++i) hub->foreign()->CountEnqueued(type);
      hub->foreign()->CountHandled(type, 50);
    });
  }
  for (std::thread& other : others) other.join();
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "T"}}), 602);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "T"}}), 300);
}

// SCH-11
TEST(ObservabilityHub, NeverSaysThatADepthIsBelowZero) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  worker->CountHandled(hub->TypeId("T"), 3);
  EXPECT_EQ(ValueOf(hub->Snapshot(At(absl::Seconds(1))), kMailboxDepth, {{"type", "T"}}), 0);
}

// SCH-11
TEST(ObservabilityHub, KeepsTheTotalsOfAWorkerThatHasEnded) {
  const auto hub = MakeHub();
  const ObservedId type = hub->TypeId("T");
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  worker->CountEnqueued(type, 1);
  worker->CountEnqueued(type, 1);
  worker->CountHandled(type, 1);
  worker->CountDeadLetter(DeadLetterReason::kShutdown);
  worker->RecordDuration(type, 1'000);
  worker->RecordLatency(1'000);
  hub->RemoveWorker(worker);
  hub->RemoveWorker(nullptr);
  WorkerMetrics* const next = *hub->AddWorker("w", Instant());  // the name is free again
  next->RecordDuration(type, 2'000);
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "T"}}), 2);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "T"}}), 1);
  EXPECT_EQ(ValueOf(snapshot, kDeadLettersTotal, {{"reason", "shutdown"}}), 1);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "T"}}), 2u);
  EXPECT_EQ(SamplesOf(snapshot, kLatency), 1u);
}

// SCH-11
TEST(ObservabilityHub, GivesATypeOneId) {
  const auto hub = MakeHub();
  const ObservedId a = hub->TypeId("A");
  EXPECT_EQ(hub->TypeId(std::string("A")), a);
  EXPECT_NE(hub->TypeId("B"), a);
  EXPECT_NE(a, kOtherTypes);
  EXPECT_FALSE(IsObservedActor(a));
  EXPECT_EQ(hub->TypeId("other"), kOtherTypes);
}

// SCH-11
TEST(ObservabilityHub, CountsTypesBeyondTheLimitAsOther) {
  const auto hub = MakeHub({.max_types = 3});
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  for (const char* const type : {"A", "B", "C", "D"}) worker->CountEnqueued(hub->TypeId(type), 1);
  EXPECT_EQ(hub->TypeId("C"), kOtherTypes);
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "A"}}), 1);
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "B"}}), 1);
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "other"}}), 2);
  EXPECT_EQ(snapshot.Find(kMailboxEnqueued, {{"type", "C"}}), nullptr);
}

TEST(ObservabilityHub, HasRoomForAsManyTypesAsItSays) {
  const auto hub = MakeHub();
  std::set<ObservedId> ids;
  for (size_t i = 1; i < kObservedTypes; ++i) ids.insert(hub->TypeId(absl::StrCat("T", i)));
  EXPECT_EQ(ids.size(), kObservedTypes - 1);
  EXPECT_EQ(*ids.rbegin(), kObservedTypes - 1);
  EXPECT_EQ(hub->TypeId("one more"), kOtherTypes);
}

// SCH-11
TEST(ObservabilityHub, TimesTypesBeyondTheLimitAsOther) {
  const auto hub = MakeHub({.max_timed_types = 2, .max_actors = 1});
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  for (const char* const type : {"A", "B", "C"}) worker->RecordDuration(hub->TypeId(type), 1'000);
  worker->RecordDuration(*hub->RegisterActor("B", "/user/b"), 1'000);
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "A"}}), 1u);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "other"}}), 2u);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "C"}}), 0u);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"actor", "/user/b"}, {"type", "B"}}), 1u);
}

// SCH-11
TEST(ObservabilityHub, ShowsAnActorAloneAndInItsType) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  const ObservedId type = hub->TypeId("T");
  const ObservedId actor = *hub->RegisterActor("T", "/user/a");
  EXPECT_TRUE(IsObservedActor(actor));
  worker->CountEnqueued(type, 1);
  worker->CountEnqueued(actor, 1);
  worker->CountEnqueued(actor, 1);
  worker->CountHandled(actor, 1);
  worker->RecordDuration(type, 1'000);
  worker->RecordDuration(actor, 1'000);
  const MetricLabels alone = {{"actor", "/user/a"}, {"type", "T"}};
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, alone), 2);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, alone), 1);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, alone), 1u);
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "T"}}), 3);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "T"}}), 2);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "T"}}), 2u);
}

// SCH-11
TEST(ObservabilityHub, FoldsAReleasedActorIntoItsType) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  const ObservedId actor = *hub->RegisterActor("T", "/user/a");
  worker->CountEnqueued(actor, 1);
  worker->RecordDuration(actor, 1'000);
  EXPECT_TRUE(hub->Release(actor));
  EXPECT_FALSE(hub->Release(actor));
  worker->CountEnqueued(actor, 1);  // a late sender
  worker->CountHandled(actor, 2);
  MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "T"}}), 2);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "T"}}), 0);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "T"}}), 1u);
  EXPECT_EQ(snapshot.Find(kMailboxEnqueued, {{"actor", "/user/a"}, {"type", "T"}}), nullptr);

  // The worker ends: its counts for the actor are neither lost nor counted twice.
  hub->RemoveWorker(worker);
  snapshot = hub->Snapshot(At(absl::Seconds(2)));
  EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", "T"}}), 2);
  EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", "T"}}), 1u);
}

// SCH-11
TEST(ObservabilityHub, GivesAnIdToAnotherActorOnlyWhenItsCountsAreFolded) {
  const auto hub = MakeHub({.max_actors = 1});
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  // Each id is used three times, by actors of two types in turn.
  std::vector<int> uses(kObservedIds);
  const size_t rounds = 3 * kObservedActors;
  for (size_t i = 0; i < rounds; ++i) {
    const std::string type = i % 2 == 0 ? "Even" : "Odd";
    const ObservedId id = *hub->RegisterActor(type, "/user/a");
    ++uses[id];
    worker->CountEnqueued(id, 1);
    worker->CountHandled(id, 1);
    worker->RecordDuration(id, 1'000);
    if (i % 512 == 0) {
      const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
      EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"actor", "/user/a"}, {"type", type}}), 1);
      EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"actor", "/user/a"}, {"type", type}}), 1u);
    }
    EXPECT_TRUE(hub->Release(id));
    worker->CountEnqueued(id, 1);  // late, and still counted for this type
  }
  for (size_t id = kObservedTypes; id < kObservedIds; ++id) EXPECT_EQ(uses[id], 3);
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(2)));
  for (const char* const type : {"Even", "Odd"}) {
    EXPECT_EQ(ValueOf(snapshot, kMailboxEnqueued, {{"type", type}}), static_cast<double>(rounds));
    EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", type}}), static_cast<double>(rounds / 2));
    EXPECT_EQ(SamplesOf(snapshot, kInvokeDuration, {{"type", type}}), rounds / 2);
  }
}

TEST(ObservabilityHub, RefusesActorsBeyondTheLimitAndTwice) {
  const auto hub = MakeHub({.max_actors = 2});
  const ObservedId a = *hub->RegisterActor("T", "/user/a");
  EXPECT_EQ(hub->RegisterActor("T", "/user/a").status().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(hub->RegisterActor("U", "/user/a").ok());
  const absl::Status refused = hub->RegisterActor("T", "/user/c").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "actor \"/user/c\" of type \"T\": 2 actors are observed already; release some, or raise "
            "ObservabilityOptions.max_actors");
  EXPECT_TRUE(hub->Release(a));
  EXPECT_TRUE(hub->RegisterActor("T", "/user/c").ok());
  EXPECT_FALSE(hub->Release(hub->TypeId("T")));
  EXPECT_FALSE(hub->Release(kObservedIds - 1));
  EXPECT_FALSE(hub->Release(UINT16_MAX));
}

// SCH-11
TEST(ObservabilityHub, CountsForBothAtOnceWhatHasNotWaited) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  const ObservedId type = hub->TypeId("T");
  const ObservedId actor = *hub->RegisterActor("T", "/user/a");
  worker->CountEnqueued(type, 3);
  worker->CountHandled(type, 1);
  worker->passes().Count(type);
  worker->passes().Count(actor);
  const auto expect = [&] {
    const MetricsSnapshot snapshot = hub->Snapshot(Instant());
    EXPECT_EQ(ValueOf(snapshot, "actor.mailbox.enqueued_total", {{"type", "T"}}), 5);
    EXPECT_EQ(ValueOf(snapshot, "actor.mailbox.depth", {{"type", "T"}}), 2);
  };
  expect();
  EXPECT_EQ(worker->passes().Sum(), 2u);
  hub->Release(actor);
  expect();
  hub->RemoveWorker(worker);
  expect();
}

// SCH-11
TEST(ObservabilityHub, ReadsCountersOfOthersAndSaysWhatTheyAre) {
  const auto hub = MakeHub();
  const auto counter = [](MetricLabels labels) {
    return ReadMetric{.name = "c_total",
                      .labels = std::move(labels),
                      .read = [] { return 3.0; },
                      .kind = MetricKind::kCounter,
                      .help = "What it is."};
  };
  const GaugeRegistration first = *hub->AddMetric(counter({{"l", "1"}}));
  const GaugeRegistration second = *hub->AddMetric(counter({{"l", "2"}}));
  const MetricsSnapshot snapshot = hub->Snapshot(Instant());
  const Metric* const found = snapshot.Find("c_total", {{"l", "2"}});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->kind, MetricKind::kCounter);
  EXPECT_EQ(found->value, 3);
  EXPECT_EQ(found->help, "What it is.");
  // A name has one kind.
  EXPECT_EQ(hub->AddGauge("c_total", {{"l", "3"}}, [] { return 0.0; }).status().code(),
            absl::StatusCode::kAlreadyExists);
  ReadMetric histogram = counter({{"l", "3"}});
  histogram.kind = MetricKind::kHistogram;
  EXPECT_EQ(hub->AddMetric(histogram).status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* const help : {"two\nlines", "back\\slash"}) {
    ReadMetric bad = counter({{"l", "3"}});
    bad.help = help;
    EXPECT_EQ(hub->AddMetric(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// SCH-11: a counter of the runtime is one row of the table.
TEST(ObservabilityHub, CountsEveryCounterOfTheTable) {
  const auto hub = MakeHub();
  WorkerMetrics* const ended = *hub->AddWorker("ended", At(absl::ZeroDuration()));
  WorkerMetrics* const worker = *hub->AddWorker("w", At(absl::ZeroDuration()));
  for (size_t counter = 0; counter < kRuntimeCounters; ++counter) {
    for (size_t n = 0; n <= counter; ++n) worker->Count(counter);
    ended->Count(counter);
    hub->foreign()->Count(counter);
  }
  hub->RemoveWorker(ended);
  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  size_t counter = 0;
  for (const MetricRow& row : kMetricTable) {
    for (size_t i = 0; i < row.label_values; ++i, ++counter) {
      EXPECT_EQ(ValueOf(snapshot, row.name, {{std::string(row.labels), std::string(row.label_value(i))}}),
                static_cast<double>(counter + 3))
          << row.name << " " << row.label_value(i);
    }
  }
  EXPECT_EQ(counter, kRuntimeCounters);
  EXPECT_EQ(ValueOf(snapshot, "actor.mailbox.overflow_total", {{"answer", "reject"}}),
            static_cast<double>(CounterOf(kMailboxOverflow) + 3));
}

// SCH-11
TEST(ObservabilityHub, HasCountersOfTheApplication) {
  const auto hub = MakeHub();
  {
    MetricCounter orders = *hub->AddCounter("shop.orders_total", {{"region", "eu"}}, "Orders that were accepted.");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&orders] {
        for (int n = 0; n < 1'000; ++n) orders.Add();
      });
    }
    for (std::thread& thread : threads) thread.join();
    MetricCounter moved = std::move(orders);
    moved.Add(5);
    const MetricsSnapshot snapshot = hub->Snapshot(Instant());
    const Metric* const found = snapshot.Find("shop.orders_total", {{"region", "eu"}});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->kind, MetricKind::kCounter);
    EXPECT_EQ(found->value, 4'005);
    EXPECT_EQ(found->help, "Orders that were accepted.");
    EXPECT_EQ(hub->AddCounter("shop.orders_total", {{"region", "eu"}}).status().message(),
              "metric \"shop.orders_total\": it exists with the same labels; use others, or remove it first");
  }
  EXPECT_EQ(hub->Snapshot(Instant()).Find("shop.orders_total", {{"region", "eu"}}), nullptr);
  const auto off = MakeHub({.enabled = false});
  off->AddCounter("c", {})->Add();
}

// SCH-11
TEST(ObservabilityHub, LimitsTheTextsAndLabelSetsOfMetrics) {
  const auto hub = MakeHub({.max_label_sets = 2});
  const auto message = [&](std::string_view name, MetricLabels labels) {
    return std::string(hub->AddCounter(name, std::move(labels)).status().message());
  };
  const std::string name(200, 'a');
  EXPECT_EQ(message(name, {}), "");
  EXPECT_NE(message(name + "a", {}).find("a...\": the name has 201 bytes; at most 200 are possible"),
            std::string::npos);
  EXPECT_EQ(message("m", {{"l", std::string(1024, 'v')}}), "");
  EXPECT_EQ(message("m", {{"l", std::string(1025, 'v')}}),
            "metric \"m\": the value of label \"l\" has 1025 bytes; at most 1024 are possible");
  MetricLabels labels;
  for (char c = 'a'; c <= 'q'; ++c) labels.push_back({std::string(1, c), "v"});
  EXPECT_EQ(message("m", labels), "metric \"m\": it has 17 labels; at most 16 are possible");
  labels.pop_back();
  EXPECT_EQ(message("m", labels), "");
  EXPECT_EQ(hub->AddCounter("m", {}, std::string(1025, 'h')).status().message(),
            "metric \"m\": its help has 1025 bytes; at most 1024 are possible");
  const MetricCounter one = *hub->AddCounter("n", {{"user", "1"}});
  const MetricCounter two = *hub->AddCounter("n", {{"user", "2"}});
  EXPECT_EQ(message("n", {{"user", "3"}}),
            "metric \"n\": it has 2 sets of labels already; use fewer values, or raise "
            "ObservabilityOptions.max_label_sets");
  EXPECT_EQ(message("actor.mailbox.overflow_total", {}),
            "metric \"actor.mailbox.overflow_total\": the system has a metric of that name; use another one");
}

// SCH-11
TEST(ObservabilityHub, SamplesAsOftenIfSomeMessagesAreSkipped) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  EXPECT_FALSE(worker->SamplesOften());
  int sampled = 0;
  for (int i = 0; i < 1'000; ++i) {
    worker->Skip(64);
    if (worker->IsDue()) sampled += worker->Sample() ? 1 : 0;
  }
  EXPECT_EQ(sampled, 250);
  EXPECT_TRUE((*MakeHub({.sample_every = 64})->AddWorker("w", Instant()))->SamplesOften());
  EXPECT_FALSE((*MakeHub({.sample_every = 0})->AddWorker("w", Instant()))->SamplesOften());
}

// SCH-11
TEST(ObservabilityHub, SamplesOneIn256ByDefault) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  for (int i = 1; i <= 1'024; ++i) EXPECT_EQ(worker->Sample(), i % 256 == 0) << i;
  int foreign = 0;
  for (int i = 0; i < 2'560; ++i) foreign += hub->foreign()->Sample() ? 1 : 0;
  EXPECT_EQ(foreign, 10);
}

// SCH-11
TEST(ObservabilityHub, SamplesEveryOneOrNoneOnRequest) {
  const auto every = MakeHub({.sample_every = 1});
  EXPECT_EQ(CountTrue(**every->AddWorker("w", Instant()), 5'000), 5'000);
  EXPECT_TRUE(every->foreign()->Sample());
  const auto none = MakeHub({.sample_every = 0});
  EXPECT_EQ(CountTrue(**none->AddWorker("w", Instant()), 5'000), 0);
  EXPECT_FALSE(none->foreign()->Sample());
  const auto some = MakeHub({.sample_every = 3'000});  // more than the stride
  EXPECT_EQ(CountTrue(**some->AddWorker("w", Instant()), 2'999), 0);
  EXPECT_EQ(CountTrue(**some->AddWorker("v", Instant()), 9'000), 3);
}

// SCH-11
TEST(ObservabilityHub, ChangesTheSamplingOfRunningWorkers) {
  const auto hub = MakeHub({.sample_every = 1'000'000'000});
  WorkerMetrics* const worker = *hub->AddWorker("w", Instant());
  const int stride = WorkerMetrics::kSampleStride;
  EXPECT_EQ(CountTrue(*worker, 10), 0);
  for (const uint32_t every : {1u, 16u, 0u, 4u}) {
    ASSERT_TRUE(hub->SetSampleEvery(every).ok());
    CountTrue(*worker, stride);
    EXPECT_EQ(CountTrue(*worker, 1'600), every == 0 ? 0 : 1'600 / static_cast<int>(every));
  }
  EXPECT_EQ(hub->SetSampleEvery(1'000'000'001).message(),
            "ObservabilityOptions.sample_every is 1000000001; it must be from 0 to 1000000000");
}

// SCH-11
TEST(ObservabilityHub, TellsHowBusyAWorkerWasSinceTheSnapshotBefore) {
  const auto hub = MakeHub();
  WorkerMetrics* const worker = *hub->AddWorker("w", At(absl::Seconds(10)));
  const auto ratio = [&](absl::Duration at) {
    return ValueOf(hub->Snapshot(At(at)), kWorkerBusyRatio, {{"worker", "w"}});
  };
  const auto ns = [](int seconds) { return int64_t{1'000'000'000} * seconds; };
  EXPECT_EQ(ratio(absl::Seconds(10)), 0);
  worker->BeginBusy(ns(10));
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(12)), 1);  // busy since the first instant
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(12)), 1);  // the same instant gives the same result
  worker->EndBusy(ns(13));
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(16)), 0.25);
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(20)), 0);
  worker->EndBusy(ns(21));  // it was idle already
  worker->BeginBusy(ns(22));
  worker->BeginBusy(ns(23));  // it was busy already
  worker->EndBusy(ns(24));
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(24)), 0.5);
  EXPECT_EQ(worker->BusyNs(ns(30)), ns(5));
  worker->BeginBusy(ns(31));
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(30)), 0);  // the worker read its clock after the caller
  EXPECT_DOUBLE_EQ(ratio(absl::Seconds(35)), 1);
}

// SCH-11
TEST(ObservabilityHub, ReadsGaugesUntilTheyAreRemoved) {
  const auto hub = MakeHub();
  double depth = 3;
  GaugeRegistration a = *hub->AddGauge(kReadyQueueDepth, {{"dispatcher", "default"}}, [&] { return depth; });
  GaugeRegistration b = *hub->AddGauge(kReadyQueueDepth, {{"dispatcher", "system"}}, [] { return 1.0; });
  depth = 4;
  MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(ValueOf(snapshot, kReadyQueueDepth, {{"dispatcher", "default"}}), 4);
  EXPECT_EQ(ValueOf(snapshot, kReadyQueueDepth, {{"dispatcher", "system"}}), 1);
  GaugeRegistration moved = std::move(a);
  a.Reset();  // NOLINT(bugprone-use-after-move): it has nothing to end any more
  EXPECT_NE(hub->Snapshot(At(absl::Seconds(1))).Find(kReadyQueueDepth, {{"dispatcher", "default"}}), nullptr);
  b = std::move(moved);  // ends the earlier registration of b
  snapshot = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_NE(snapshot.Find(kReadyQueueDepth, {{"dispatcher", "default"}}), nullptr);
  EXPECT_EQ(snapshot.Find(kReadyQueueDepth, {{"dispatcher", "system"}}), nullptr);
  b.Reset();
  EXPECT_EQ(hub->Snapshot(At(absl::Seconds(1))).Find(kReadyQueueDepth, {{"dispatcher", "default"}}), nullptr);
}

TEST(ObservabilityHub, LeavesOutAGaugeWhoseFunctionThrows) {
  const auto hub = MakeHub();
  bool throws = true;
  const GaugeRegistration bad = *hub->AddGauge("bad", {}, [&] {
    if (throws) throw std::runtime_error("no value");
    return 1.0;
  });
  const GaugeRegistration good = *hub->AddGauge("good", {}, [] { return 2.0; });
  const MetricsSnapshot without = hub->Snapshot(At(absl::Seconds(1)));
  EXPECT_EQ(without.Find("bad", {}), nullptr);
  EXPECT_EQ(ValueOf(without, "good", {}), 2);
  throws = false;
  EXPECT_EQ(ValueOf(hub->Snapshot(At(absl::Seconds(2))), "bad", {}), 1);
}

// A gauge takes a lock of the program, and a thread that holds that lock registers a metric.
TEST(ObservabilityHub, DoesNotHoldItsLockWhileAGaugeIsRead) {
  const auto hub = MakeHub();
  absl::Notification added;
  GaugeRegistration other;
  std::thread adder;
  const GaugeRegistration gauge = *hub->AddGauge("slow", {}, [&] {
    // Stands for the wait for the lock.
    adder = std::thread([&] {
      other = *hub->AddGauge("other", {}, [] { return 1.0; });
      added.Notify();
    });
    return added.WaitForNotificationWithTimeout(absl::Seconds(20)) ? 1.0 : 0.0;
  });
  EXPECT_EQ(ValueOf(hub->Snapshot(At(absl::Seconds(1))), "slow"), 1);
  adder.join();
}

TEST(ObservabilityHub, WaitsForTheReadOfAGaugeThatIsRemoved) {
  const auto hub = MakeHub();
  absl::Notification reading;
  std::atomic<bool> is_reading{false};
  GaugeRegistration gauge = *hub->AddGauge("slow", {}, [&] {
    is_reading.store(true);
    reading.Notify();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    is_reading.store(false);
    return 1.0;
  });
  std::thread reader([&] { hub->Snapshot(At(absl::Seconds(1))); });
  reading.WaitForNotification();
  gauge.Reset();
  EXPECT_FALSE(is_reading.load());
  reader.join();
}

TEST(ObservabilityHub, LetsAGaugeRemoveItself) {
  const auto hub = MakeHub();
  int reads = 0;
  GaugeRegistration gauge;
  gauge = *hub->AddGauge("once", {}, [&] {
    gauge.Reset();
    return static_cast<double>(++reads);
  });
  EXPECT_EQ(ValueOf(hub->Snapshot(At(absl::Seconds(1))), "once"), 1);
  EXPECT_EQ(hub->Snapshot(At(absl::Seconds(1))).Find("once", {}), nullptr);
  EXPECT_EQ(reads, 1);
}

TEST(ObservabilityHub, MayEndBeforeARegistration) {
  auto hub = MakeHub();
  GaugeRegistration gauge = *hub->AddGauge("g", {}, [] { return 1.0; });
  hub.reset();
  gauge.Reset();
}

TEST(ObservabilityHub, RefusesGaugesThatWouldSpoilThePage) {
  const auto hub = MakeHub({.max_gauges = 2});
  const auto code = [&](std::string_view name, MetricLabels labels) {
    return hub->AddGauge(name, std::move(labels), [] { return 0.0; }).status().code();
  };
  for (const char* const name : {"", "1a", "a b", "a-b", ".a", "a\n"}) {
    EXPECT_EQ(code(name, {}), absl::StatusCode::kInvalidArgument) << name;
  }
  for (const char* const label : {"", "1a", "a.b", "__a", "a b"}) {
    EXPECT_EQ(code("g", {{label, "v"}}), absl::StatusCode::kInvalidArgument) << label;
  }
  EXPECT_EQ(code("g", {{"a", "1"}, {"b", "1"}, {"a", "2"}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(hub->AddGauge("g", {}, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* const name : {"actor.mailbox.depth", "actor_mailbox_enqueued_total", "dead.letters.total",
                                 "scheduler.latency_ms.count", "scheduler.worker.busy_ratio"}) {
    EXPECT_EQ(code(name, {}), absl::StatusCode::kAlreadyExists) << name;
  }
  const GaugeRegistration first = *hub->AddGauge("a.b", {{"l", "1"}, {"k", "1"}}, [] { return 0.0; });
  EXPECT_EQ(code("a.b", {{"k", "1"}, {"l", "1"}}), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code("a_b", {}), absl::StatusCode::kAlreadyExists);
  const GaugeRegistration second = *hub->AddGauge("a.b", {{"l", "2"}, {"k", "1"}}, [] { return 0.0; });
  EXPECT_EQ(hub->AddGauge("c", {}, [] { return 0.0; }).status().message(),
            "metric \"c\": there are 2 metrics already; remove some, or raise ObservabilityOptions.max_gauges");
}

TEST(ObservabilityHub, RefusesWorkersBeyondTheLimitAndTwice) {
  const auto hub = MakeHub({.max_workers = 2});
  WorkerMetrics* const worker = *hub->AddWorker("w-0", Instant());
  EXPECT_EQ(hub->AddWorker("w-0", Instant()).status().message(),
            "worker \"w-0\" exists already; give each worker a name of its own");
  ASSERT_TRUE(hub->AddWorker("w-1", Instant()).ok());
  EXPECT_EQ(hub->AddWorker("w-2", Instant()).status().message(),
            "worker \"w-2\": there are 2 already; raise ObservabilityOptions.max_workers");
  hub->RemoveWorker(worker);
  EXPECT_TRUE(hub->AddWorker("w-2", Instant()).ok());
}

TEST(ObservabilityHub, RefusesOptionsOutOfRange) {
  const auto refused = [](const ObservabilityOptions& options) {
    return std::string(ObservabilityHub::Make(options).status().message());
  };
  EXPECT_EQ(refused({.sample_every = 1'000'000'001}),
            "ObservabilityOptions.sample_every is 1000000001; it must be from 0 to 1000000000");
  EXPECT_EQ(refused({.max_workers = 0}), "ObservabilityOptions.max_workers is 0; it must be from 1 to 4096");
  EXPECT_EQ(refused({.max_types = 1'025}), "ObservabilityOptions.max_types is 1025; it must be from 1 to 1024");
  EXPECT_EQ(refused({.max_timed_types = 0}), "ObservabilityOptions.max_timed_types is 0; it must be from 1 to 1024");
  EXPECT_EQ(refused({.max_actors = 1'025}), "ObservabilityOptions.max_actors is 1025; it must be from 0 to 1024");
  EXPECT_EQ(refused({.max_gauges = 65'537}), "ObservabilityOptions.max_gauges is 65537; it must be from 0 to 65536");
  EXPECT_EQ(refused({.max_label_sets = 0}), "ObservabilityOptions.max_label_sets is 0; it must be from 1 to 65536");
}

// SCH-11
TEST(ObservabilityHub, HasNothingForAnybodyWhenItIsOff) {
  const auto hub = MakeHub({.enabled = false});
  EXPECT_FALSE(hub->enabled());
  EXPECT_EQ(*hub->AddWorker("w", Instant()), nullptr);
  hub->RemoveWorker(nullptr);
  EXPECT_EQ(hub->foreign(), nullptr);
  EXPECT_EQ(hub->TypeId("T"), kOtherTypes);
  EXPECT_EQ(*hub->RegisterActor("T", "/user/a"), kOtherTypes);
  EXPECT_FALSE(hub->Release(kOtherTypes));
  EXPECT_FALSE(hub->Release(kObservedTypes));
  bool read = false;
  const absl::StatusOr<GaugeRegistration> gauge = hub->AddGauge("g", {}, [&] {
    read = true;
    return 1.0;
  });
  EXPECT_TRUE(gauge.ok());
  EXPECT_TRUE(hub->SetSampleEvery(1).ok());
  EXPECT_TRUE(hub->Snapshot(At(absl::Seconds(1))).metrics.empty());
  EXPECT_FALSE(read);
}

TEST(ObservabilityHub, KeepsWorkersOutOfEachOthersCacheLines) {
  EXPECT_EQ(alignof(WorkerMetrics), 64u);
  EXPECT_EQ(sizeof(WorkerMetrics) % 64, 0u);
}

// SCH-11: many threads record, others read and register meanwhile, and nothing is lost.
TEST(ObservabilityHub, LosesNothingWhileOthersReadAndRegister) {
  constexpr int kWorkers = 3;
  constexpr int kForeign = 2;
  constexpr int kMessages = 20'000;
  const auto hub = MakeHub({.sample_every = 16});
  const std::vector<ObservedId> types = {hub->TypeId("A"), hub->TypeId("B")};
  std::atomic<uint16_t> watched{*hub->RegisterActor("A", "/user/a")};  // a statistic; it pairs with nothing
  std::atomic<int> running{kWorkers + kForeign};                       // ends the readers; it pairs with nothing
  std::atomic<int> sampled{0};                                         // read after the threads were joined

  std::vector<std::thread> threads;
  for (int t = 0; t < kWorkers; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = absl::StrCat("w-", t);
      // Half way through, the worker ends and another takes its place.
      for (int life = 0; life < 2; ++life) {
        WorkerMetrics* const worker = *hub->AddWorker(name, Instant());
        int samples = 0;
        for (int i = 0; i < kMessages / 2; ++i) {
          worker->BeginBusy(i);
          const ObservedId id = i % 4 == 0 ? watched.load(std::memory_order_relaxed) : types[i % 2];
          worker->CountEnqueued(id, 1);
          if (worker->Sample()) {
            worker->RecordDuration(id, i);
            worker->RecordLatency(i);
            ++samples;
          }
          worker->CountHandled(id, 1);
          worker->CountDeadLetter(DeadLetterReason::kStopped);
          worker->EndBusy(i + 1);
        }
        sampled.fetch_add(samples, std::memory_order_relaxed);
        hub->RemoveWorker(worker);
      }
      running.fetch_sub(1, std::memory_order_relaxed);
    });
  }
  for (int t = 0; t < kForeign; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kMessages; ++i) {
        const ObservedId id = i % 4 == 0 ? watched.load(std::memory_order_relaxed) : types[i % 2];
        hub->foreign()->CountEnqueued(id);
        hub->foreign()->CountHandled(id, 1);
        hub->foreign()->CountDeadLetter(DeadLetterReason::kStopped);
      }
      running.fetch_sub(1, std::memory_order_relaxed);
    });
  }
  // A thread that registers and releases, so that ids are reused.
  threads.emplace_back([&] {
    for (int i = 0; running.load(std::memory_order_relaxed) > 0; ++i) {
      const ObservedId next = *hub->RegisterActor("A", absl::StrCat("/user/a", i));
      EXPECT_TRUE(hub->Release(watched.exchange(next, std::memory_order_relaxed)));
      const GaugeRegistration gauge = *hub->AddGauge("g", {}, [i] { return static_cast<double>(i); });
    }
  });
  double before = 0;
  for (int i = 1; running.load(std::memory_order_relaxed) > 0; ++i) {
    const MetricsSnapshot snapshot = hub->Snapshot(Instant::FromNanoseconds(i));
    const double now = ValueOf(snapshot, kMailboxEnqueued, {{"type", "A"}});
    EXPECT_GE(now, before);
    before = now;
  }
  for (std::thread& thread : threads) thread.join();

  const MetricsSnapshot snapshot = hub->Snapshot(At(absl::Seconds(1)));
  const double all = (kWorkers + kForeign) * kMessages;
  const double a = ValueOf(snapshot, kMailboxEnqueued, {{"type", "A"}});
  const double b = ValueOf(snapshot, kMailboxEnqueued, {{"type", "B"}});
  EXPECT_EQ(a, all / 2);  // every second message; half of those go to the actor that is observed alone
  EXPECT_EQ(b, all / 2);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "A"}}), 0);
  EXPECT_EQ(ValueOf(snapshot, kMailboxDepth, {{"type", "B"}}), 0);
  EXPECT_EQ(ValueOf(snapshot, kDeadLettersTotal, {{"reason", "stopped"}}), all);
  EXPECT_EQ(SamplesOf(snapshot, kLatency), static_cast<uint64_t>(sampled.load()));
  EXPECT_EQ(
      SamplesOf(snapshot, kInvokeDuration, {{"type", "A"}}) + SamplesOf(snapshot, kInvokeDuration, {{"type", "B"}}),
      static_cast<uint64_t>(sampled.load()));
}

}  // namespace
}  // namespace fraktor
