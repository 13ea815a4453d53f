#include "fraktor/utils/toolbox/local_toolbox.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/utils/time/instant.h"
#include "fraktor/utils/toolbox/runtime_toolbox.h"
#include "fraktor/utils/toolbox/toolbox_under_test.h"
#include "fraktor/utils/toolbox/toolbox_worker.h"

namespace fraktor {
namespace {

using Progress = ToolboxWorker::Progress;

TEST(LocalToolbox, TimeMovesOnlyWhenItIsTold) {
  auto toolbox = LocalToolbox::Make({.wall_start = absl::FromUnixSeconds(1000)}).value();
  int fired = 0;
  toolbox->ScheduleAfter(absl::Seconds(10), [&] { ++fired; }).value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(toolbox->Now(), Instant());
  ASSERT_TRUE(toolbox->RunFor(absl::Seconds(10) - absl::Nanoseconds(1)).ok());
  EXPECT_EQ(fired, 0);
  ASSERT_TRUE(toolbox->RunFor(absl::Nanoseconds(1)).ok());
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(toolbox->Now(), Instant() + absl::Seconds(10));
  EXPECT_EQ(toolbox->WallNow(), absl::FromUnixSeconds(1010));
  EXPECT_EQ(toolbox->WallNowRoughly(), absl::FromUnixSeconds(1010));
}

TEST(LocalToolbox, ATaskSeesExactlyItsDeadline) {
  auto toolbox = LocalToolbox::Make({}).value();
  std::vector<int64_t> seen;
  toolbox
      ->SchedulePeriodic({.period = absl::Nanoseconds(1'000'000'007)},
                         [&](const TimerFiring& firing) {
                           EXPECT_EQ(firing.deadline, toolbox->Now());
                           EXPECT_EQ(firing.periods, 1u);
                           seen.push_back(toolbox->Now().nanoseconds());
                         })
      .value();
  ASSERT_TRUE(toolbox->RunFor(absl::Hours(1)).ok());
  ASSERT_EQ(seen.size(), 3599u);
  EXPECT_EQ(seen.back(), 3599 * int64_t{1'000'000'007});
  EXPECT_EQ(toolbox->Now(), Instant() + absl::Hours(1));
}

TEST(LocalToolbox, RunsForEverUntilNothingIsPending) {
  auto toolbox = LocalToolbox::Make({}).value();
  int fired = 0;
  toolbox
      ->ScheduleAfter(absl::Hours(24 * 365),
                      [&] { toolbox->ScheduleAfter(absl::Hours(24 * 365), [&] { ++fired; }).value(); })
      .value();
  ASSERT_TRUE(toolbox->RunFor(absl::InfiniteDuration()).ok());
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(toolbox->Now(), Instant() + absl::Hours(2 * 24 * 365));
}

TEST(LocalToolbox, WorkersTakeTurnsInTheOrderOfTheirStarting) {
  auto toolbox = LocalToolbox::Make({}).value();
  std::string turns;
  for (char name : {'a', 'b', 'c'}) {
    toolbox
        ->StartWorker({}, MakeWorker([&turns, name, left = 3]() mutable {
                        turns.push_back(name);
                        return --left == 0 ? Progress::kDone : Progress::kBusy;
                      }))
        .value();
  }
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(turns, "abcabcabc");
  EXPECT_EQ(toolbox->steps(), 9u);
}

TEST(LocalToolbox, AWorkerMayStartAnother) {
  auto toolbox = LocalToolbox::Make({}).value();
  int ran = 0;
  toolbox
      ->StartWorker({}, MakeWorker([&] {
                      for (int i = 0; i < 50; ++i) {
                        toolbox
                            ->StartWorker({}, MakeWorker([&] {
                                            ++ran;
                                            return Progress::kDone;
                                          }))
                            .value();
                      }
                      return Progress::kDone;
                    }))
      .value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(ran, 50);
}

TEST(LocalToolbox, SaysSoWhenItDoesNotComeToRest) {
  auto toolbox = LocalToolbox::Make({.max_steps = 1000}).value();
  toolbox->StartWorker({}, MakeWorker([] { return Progress::kBusy; })).value();
  absl::Status ran = toolbox->RunUntilIdle();
  EXPECT_EQ(ran.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      ran.message(),
      "toolbox \"local\" has not come to rest after 1000 steps; find the worker or timer that never stops, or raise "
      "max_steps. Virtual time is 0");
}

TEST(LocalToolbox, CannotBePumpedFromInside) {
  auto toolbox = LocalToolbox::Make({}).value();
  absl::Status inside;
  toolbox->ScheduleAfter(absl::ZeroDuration(), [&] { inside = toolbox->RunUntilIdle(); }).value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  EXPECT_EQ(inside.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(LocalToolbox, RunUntilSaysWhyItEnded) {
  auto toolbox = LocalToolbox::Make({}).value();
  bool set = false;
  EXPECT_EQ(toolbox->RunUntil([&] { return set; }, absl::InfiniteDuration()).code(),
            absl::StatusCode::kFailedPrecondition);
  toolbox->ScheduleAfter(absl::Seconds(5), [&] { set = true; }).value();
  EXPECT_EQ(toolbox->RunUntil([&] { return set; }, absl::Seconds(4)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(toolbox->Now(), Instant() + absl::Seconds(4));
  EXPECT_TRUE(toolbox->RunUntil([&] { return set; }, absl::Seconds(4)).ok());
  EXPECT_EQ(toolbox->Now(), Instant() + absl::Seconds(5));
  EXPECT_EQ(toolbox->RunFor(absl::Seconds(-1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(LocalToolbox, JoinSaysSoWhenTheWorkerWillNeverBeDone) {
  auto toolbox = LocalToolbox::Make({}).value();
  WorkerHandle worker = toolbox->StartWorker({.name = "sleeper"}, MakeWorker([] { return Progress::kIdle; })).value();
  absl::Status joined = worker.Join();
  EXPECT_EQ(joined.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(joined.message(),
            "worker \"sleeper\" is not done: toolbox \"local\": all workers are parked, no timer is pending, and the "
            "condition does not hold");
}

TEST(LocalToolbox, OtherThreadsMayWakeAWorkerAndTheLoopIsTold) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 2000;
  Tally woken;
  auto toolbox = LocalToolbox::Make({.on_wake = [&] { woken.Add(); }}).value();
  std::atomic<int> work = 0;
  int done = 0;
  WorkerHandle worker = toolbox
                            ->StartWorker({}, MakeWorker([&] {
                                            const int found = work.exchange(0);
                                            done += found;
                                            return found > 0 ? Progress::kBusy : Progress::kIdle;
                                          }))
                            .value();
  ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        work.fetch_add(1);
        worker.Wake();
      }
    });
  }
  // Pumps only when on_wake says so: a lost wake-up would hang here.
  for (int seen = 0; done < kThreads * kRounds;) {
    woken.WaitFor(seen + 1);
    seen = woken.count();
    ASSERT_TRUE(toolbox->RunUntilIdle().ok());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kRounds);
}

}  // namespace
}  // namespace fraktor
